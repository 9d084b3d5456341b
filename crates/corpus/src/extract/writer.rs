//! Blocks of text with the indentation of lists and quotations.

/// Writes blocks one after the other.
#[derive(Default)]
pub(super) struct Writer {
    text: String,
    indent: String,
    /// What the next line begins with instead of the indentation: a list's bullet.
    bullet: Option<String>,
    tight: bool,
}

impl Writer {
    /// Writes a block of one or more lines.
    pub(super) fn block(&mut self, block: &str) {
        if block.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str(if self.tight { "\n" } else { "\n\n" });
        }
        for (i, line) in block.split('\n').enumerate() {
            if i > 0 {
                self.text.push('\n');
            }
            match self.bullet.take() {
                Some(bullet) => self.text.push_str(&bullet),
                None if line.is_empty() => self.text.push_str(self.indent.trim_end()),
                None => self.text.push_str(&self.indent),
            }
            self.text.push_str(line);
        }
    }

    /// Writes blocks with `indent` in front of their lines; the first line has `bullet` instead.
    pub(super) fn indented(
        &mut self,
        bullet: Option<&str>,
        indent: &str,
        write: impl FnOnce(&mut Self),
    ) {
        let length = self.indent.len();
        let outer = self.bullet.take();
        self.bullet = match (bullet, outer) {
            (Some(bullet), outer) => Some(outer.unwrap_or_else(|| self.indent.clone()) + bullet),
            (None, Some(outer)) => Some(outer + indent),
            (None, None) => None,
        };
        self.indent.push_str(indent);
        write(self);
        self.indent.truncate(length);
        self.bullet = None;
    }

    /// Whether blocks follow each other without blank lines, until the next call.
    pub(super) fn set_tight(&mut self, tight: bool) -> bool {
        std::mem::replace(&mut self.tight, tight)
    }

    pub(super) fn finish(self) -> String {
        self.text.trim_matches('\n').trim_end().to_owned()
    }
}
