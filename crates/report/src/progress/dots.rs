//! Progress as DiskSpd's `-P` shows it: a dot on stdout for every so many operations; and nothing else.

use std::io::Write as _;

use plumb_load::{Event, Observer, Progress};

/// Prints dots, if any.
#[derive(Debug)]
pub struct Dots {
    every: Option<u32>,
    printed: u64,
}

impl Dots {
    /// Returns one for `every` so many operations; `None`: none.
    pub fn every(every: Option<u32>) -> Self {
        Self { every, printed: 0 }
    }

    fn print(text: &str) {
        let mut stdout = std::io::stdout().lock();
        if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            // The results will find that nobody reads.
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
