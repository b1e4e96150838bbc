//! Progress without redrawing: few lines on stderr, which do not flood a log.

use plumb_block::{Clock as _, Nanos, RealClock};

use crate::streams;

/// Minimum time between two lines.
const EVERY: Nanos = Nanos::secs(10);
/// Environment variable that requests every line, with the value `all`.
const VARIABLE: &str = "PLUMB_PROGRESS";

/// Lines of progress, at most one every ten seconds. An early line waits, and is printed at the next call
/// unless a newer one replaces it.
#[derive(Debug, Default)]
pub struct ProgressLines {
    /// True if every line is printed at once.
    is_unbounded: bool,
    clock: RealClock,
    last: Option<Nanos>,
    waiting: Option<String>,
}

impl ProgressLines {
    /// Creates lines according to the environment.
    pub fn from_environment() -> Self {
        Self { is_unbounded: std::env::var(VARIABLE).is_ok_and(|value| value == "all"), ..Self::default() }
    }

    /// Creates lines for a short activity: even the first comes after ten seconds.
    pub fn later() -> Self {
        Self { last: Some(Nanos::ZERO), ..Self::default() }
    }

    /// Prints `line` on stderr now, or once it is due.
    pub fn say(&mut self, line: &str) {
        self.put(line);
        self.look();
    }

    /// Prints the waiting line if it is due.
    pub fn look(&mut self) {
        if let Some(line) = self.due(self.clock.now()) {
            streams::say(&format!("plumb: {line}"));
        }
    }

    fn put(&mut self, line: &str) {
        self.waiting = Some(line.to_owned());
    }

    /// Returns the line that is due at `now`.
    fn due(&mut self, now: Nanos) -> Option<String> {
        let is_early = self.last.is_some_and(|last| now.since(last) < EVERY);
        if is_early && !self.is_unbounded {
            return None;
        }
        let line = self.waiting.take()?;
        self.last = Some(now);
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of printed lines if one comes every 100 ms for a minute.
    fn lines_in_a_minute(mut lines: ProgressLines) -> usize {
        let out = (0..600).filter(|number| {
            lines.put(&format!("phase {number}"));
            lines.due(Nanos::millis(100) * *number).is_some()
        });
        out.count()
    }

    #[test]
    fn at_most_one_line_goes_out_every_ten_seconds() {
        assert_eq!(lines_in_a_minute(ProgressLines::default()), 6);
        assert_eq!(lines_in_a_minute(ProgressLines { is_unbounded: true, ..Default::default() }), 600);
    }

    #[test]
    fn the_newest_line_that_came_early_goes_out_later() {
        let mut lines = ProgressLines::default();
        lines.put("laying out");
        assert_eq!(lines.due(Nanos::ZERO).as_deref(), Some("laying out"));
        for line in ["warming up", "measuring"] {
            lines.put(line);
            assert_eq!(lines.due(Nanos::secs(1)), None);
        }
        assert_eq!(lines.due(EVERY).as_deref(), Some("measuring"));
        assert_eq!(lines.due(EVERY * 3), None, "it is said once");
    }
}
