//! Progress in the style of DiskSpd's `-P`: only a dot on stdout for a certain number of operations.

use std::io::Write as _;

use plumb_load::{Event, Observer, Progress};

/// Printer of dots.
#[derive(Debug)]
pub struct Dots {
    every: Option<u32>,
    printed: u64,
}

impl Dots {
    /// Creates a printer of a dot for `every` operations; `None` prints none.
    pub fn every(every: Option<u32>) -> Self {
        Self { every, printed: 0 }
    }

    fn print(text: &str) {
        let mut stdout = std::io::stdout().lock();
        if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            // A closed stdout is noticed when the results are printed.
        }
    }
}

impl Observer for Dots {
    fn on(&mut self, event: &Event<'_>) {
        match event {
            Event::Progress { progress, .. } => self.progress(progress),
            Event::Over if self.printed > 0 => Self::print("\n"),
            _ => {}
        }
    }
}

impl Dots {
    fn progress(&mut self, progress: &Progress) {
        let Some(every) = self.every else { return };
        let due = progress.total.operations() / u64::from(every);
        let missing = due.saturating_sub(self.printed);
        self.printed += missing;
        Self::print(&".".repeat(missing as usize));
    }
}
