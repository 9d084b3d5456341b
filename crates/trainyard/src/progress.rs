//! How progress looks: a bar with rate and time left on a terminal, a plain line now and then
//! elsewhere. All of it goes to stderr.

use crate::output::complain;
use base::{Observer, Progress};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Shows one stage at a time.
pub struct Screen {
    terminal: bool,
    state: Mutex<State>,
}

struct State {
    stage: String,
    bar: Option<ProgressBar>,
    /// Where the current piece of work began: when, and at how many units.
    start: Option<(Instant, u64, &'static str)>,
    last_line: Instant,
}

/// How often a plain line is printed.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

impl Screen {
    /// Looks at stderr to choose between bars and lines.
    pub fn new() -> Self {
        let state =
            State { stage: String::new(), bar: None, start: None, last_line: Instant::now() };
        Self { terminal: std::io::stderr().is_terminal(), state: Mutex::new(state) }
    }

    /// Begins a stage.
    pub fn begin(&self, stage: &str) {
        let mut state = self.lock();
        state.clear();
        state.stage = stage.to_owned();
    }

    /// Ends the stage; the bar disappears.
    pub fn end(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A panic elsewhere must not hide what is still to be shown.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.start = None;
        self.last_line = Instant::now();
    }

    fn rate_and_left(&mut self, progress: &Progress) -> (f64, Option<Duration>) {
        let fresh = match self.start {
            Some((_, done, unit)) => unit != progress.unit || progress.done < done,
            None => true,
        };
        if fresh {
            self.start = Some((Instant::now(), progress.done, progress.unit));
        }
        let (began, from, _) = self.start.unwrap_or((Instant::now(), 0, progress.unit));
        let rate = (progress.done - from) as f64 / began.elapsed().as_secs_f64().max(1e-9);
        let left = progress.total.map(|total| total.saturating_sub(progress.done) as f64 / rate);
        (rate, left.filter(|s| s.is_finite()).map(Duration::from_secs_f64))
    }
}

/// `3 min 20 s`.
pub fn duration(value: Duration) -> String {
    let seconds = value.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    }
}

/// 1234567 as `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes with a binary unit.
pub fn bytes(value: u64) -> String {
    let value = value as f64;
    match value {
        v if v < 1024.0 => format!("{v:.0} B"),
        v if v < 1024.0 * 1024.0 => format!("{:.1} KiB", v / 1024.0),
        v if v < 1024.0 * 1024.0 * 1024.0 => format!("{:.1} MiB", v / 1024.0 / 1024.0),
        v => format!("{:.2} GiB", v / 1024.0 / 1024.0 / 1024.0),
    }
}

fn rate_text(rate: f64, unit: &str) -> String {
    let number = if rate < 10.0 { format!("{rate:.1}") } else { count(rate as u64) };
    format!("{number} {unit}/s")
}

impl Observer for Screen {
    fn progress(&self, progress: Progress) {
        let mut state = self.lock();
        let (rate, left) = state.rate_and_left(&progress);
        let left = left.map_or_else(String::new, |d| format!("{} left", duration(d)));
        let rate = rate_text(rate, progress.unit);
        if self.terminal {
            show_bar(&mut state, &progress, &rate, &left);
        } else if state.last_line.elapsed() >= PLAIN_INTERVAL {
            state.last_line = Instant::now();
            let total = progress.total.map_or_else(String::new, |t| format!(" of {}", count(t)));
            let done = count(progress.done);
            let parts = [rate, left, progress.detail];
            let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let parts = parts.join(", ");
            complain(format!("{}: {done}{total} {}, {parts}", state.stage, progress.unit));
        }
    }

    fn note(&self, message: &str) {
        let state = self.lock();
        match &state.bar {
            Some(bar) => bar.println(format!("  {message}")),
            None => complain(format!("  {message}")),
        }
    }
}

fn show_bar(state: &mut State, progress: &Progress, rate: &str, left: &str) {
    let stage = state.stage.clone();
    let bar = state.bar.get_or_insert_with(|| {
        let bar = ProgressBar::new(0);
        let template = "{prefix:<22} {bar:24} {pos:>8}/{len} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(stage);
        bar
    });
    bar.set_length(progress.total.unwrap_or(progress.done));
    bar.set_position(progress.done);
    let parts = [rate, left, &progress.detail];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    bar.set_message(parts.join("  "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1234), "1,234");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(duration(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!(duration(Duration::from_secs(7260)), "2 h 01 min");
    }
}
