//! Sites and paths that are never taken.

use crate::error::Error;
use crate::settings::Blocklists;
use base::{Digest, Hasher};
use std::collections::BTreeSet;
use std::path::Path;

/// A blocklist ready for use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocklist {
    domains: BTreeSet<String>,
    /// Patterns `host/path` with `*`, each beginning where the address begins.
    urls: Vec<String>,
    /// Digests of the files that the entries came from.
    files: Vec<Digest>,
}

impl Blocklist {
    /// Joins the recipe's own entries and those of its files.
    pub(crate) fn load(settings: &Blocklists, base_dir: &Path) -> Result<Self, Error> {
        let mut list = Self::default();
        for domain in &settings.domains {
            list.add(domain, "corpus.blocklists.domains")?;
        }
        for url in &settings.urls {
            list.add(url, "corpus.blocklists.urls")?;
        }
        for file in &settings.files {
            let bytes = base::read(&base_dir.join(file))?;
            for (i, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
                let entry = line.split('#').next().unwrap_or_default().trim();
                if !entry.is_empty() {
                    list.add(entry, &format!("{file}, line {}", i + 1))?;
                }
            }
            list.files.push(Digest::of_bytes(&bytes));
        }
        Ok(list)
    }

    /// The digest of the files that the entries came from.
    pub(crate) fn digest(&self) -> Digest {
        let mut hasher = Hasher::new();
        self.files.iter().for_each(|file| {
            hasher.field(&file.0);
        });
        hasher.finish()
    }

    fn add(&mut self, entry: &str, place: &str) -> Result<(), Error> {
        let entry = entry.split_once("://").map_or(entry, |(_, rest)| rest).to_lowercase();
        if entry.contains(char::is_whitespace) || entry.is_empty() {
            let problem = format!("{entry:?} is neither a domain nor a pattern host/path");
            return Err(Error::BadSetting { key: place.into(), problem });
        }
        if entry.contains('/') || entry.contains('*') {
            self.urls.push(entry);
        } else {
            self.domains.insert(entry.trim_start_matches('.').trim_end_matches('.').to_owned());
        }
        Ok(())
    }

    /// The rule and the entry that an address falls under.
    pub(crate) fn blocks(&self, url: &str) -> Option<(&'static str, String)> {
        if self.domains.is_empty() && self.urls.is_empty() {
            return None;
        }
        let address = url.to_lowercase();
        let (host, path) = match address.split_once("://") {
            Some((_, rest)) => {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                (host_name(&rest[..end]), &rest[end..])
            }
            None => ("", address.as_str()),
        };
        let mut domain = host;
        while !domain.is_empty() {
            if self.domains.contains(domain) {
                return Some(("domain", domain.to_owned()));
            }
            domain = domain.split_once('.').map_or("", |(_, parent)| parent);
        }
        let whole = if host.is_empty() {
            format!("/{}", path.trim_start_matches('/'))
        } else {
            format!("{host}{path}")
        };
        let pattern = self.urls.iter().find(|pattern| covers(pattern.as_bytes(), whole.as_bytes()));
        pattern.map(|pattern| ("url", pattern.clone()))
    }
}

/// A host without user name, port and closing dot.
fn host_name(authority: &str) -> &str {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    host.trim_end_matches('.')
}

/// Whether the pattern covers a beginning of the text; `*` stands for any characters. Linear in the
/// text for each `*`, without recursion.
fn covers(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if p == pattern.len() {
            return true;
        }
        if pattern[p] == b'*' {
            p += 1;
            star = Some((p, t));
        } else if t < text.len() && pattern[p] == text[t] {
            (p, t) = (p + 1, t + 1);
        } else {
            match star {
                Some((after, from)) if from < text.len() => {
                    (p, t) = (after, from + 1);
                    star = Some((after, from + 1));
                }
                _ => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_cover_their_sub_domains_and_patterns_their_beginnings() {
        let settings = Blocklists {
            domains: vec!["Bad.org".into()],
            urls: vec!["half.org/private".into(), "*/cgi-bin/*.pl".into()],
            files: vec![],
        };
        let list = Blocklist::load(&settings, Path::new(".")).unwrap();
        let check = |url: &str, expected: Option<&str>| {
            assert_eq!(list.blocks(url).map(|(rule, _)| rule), expected, "{url}");
        };
        check("https://bad.org/x", Some("domain"));
        check("http://user@www.BAD.org.:8080", Some("domain"));
        check("https://notbad.org/bad.org", None);
        check("https://half.org/private/a", Some("url"));
        check("https://half.org/public", None);
        check("https://any.org/cgi-bin/x/y.pl?z", Some("url"));
        check("docs/cgi-bin/y.pl", Some("url"));
        check("docs/y.pl", None);
    }

    #[test]
    fn files_are_read_and_bad_lines_located() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("list"), "# comment\nbad.org # why\n\n").unwrap();
        let settings = Blocklists { files: vec!["list".into()], ..Blocklists::default() };
        assert!(
            Blocklist::load(&settings, folder.path()).unwrap().blocks("http://a.bad.org").is_some()
        );
        std::fs::write(folder.path().join("list"), "a.org\nb c\n").unwrap();
        let error = Blocklist::load(&settings, folder.path()).unwrap_err().to_string();
        assert!(error.contains("list, line 2"), "{error}");
    }
}
