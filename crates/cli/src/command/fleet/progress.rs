//! Progress of a fleet: lines on stderr, or a live view with a line per host.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::Nanos;
use plumb_fleet::Controller;
use plumb_fleet::progress::{News, Rates};
use plumb_load::{Event, Observer as _};
use plumb_report::tui::Live;
use plumb_text::printable;

use crate::terminal;

/// Display of the progress.
#[derive(Default)]
pub(super) struct Progress {
    live: Option<Live>,
    expected: Option<Nanos>,
    rates: Rates,
    news: News,
    /// Remarks for the live view.
    remarks: Vec<String>,
}

impl Progress {
    /// Creates the display for a load that takes `expected`: a live view if one is wanted and there is a
    /// terminal, whose user can set `stop`.
    pub(super) fn of_load(wants_view: bool, expected: Option<Nanos>, stop: &Arc<AtomicBool>) -> Self {
        Self { live: Live::if_wanted(wants_view, "plumb fleet load", stop), expected, ..Self::default() }
    }

    /// Shows the hosts, and reports a trouble at once: on stderr, or in the remarks of the live view and
    /// again after its end.
    pub(super) fn look(&mut self, controller: &Controller, now: Nanos, trouble: Option<&str>) {
        if let Some(live) = &mut self.live {
            if let Some(line) = trouble {
                live.on(&Event::Note(line));
                self.remarks.push(line.to_owned());
            }
            let mut sample = self.rates.sample(controller, now, self.expected);
            sample.remarks.extend(self.remarks.iter().map(|line| printable(line)));
            return live.feed(sample);
        }
        let lost = self.news.lost(controller).into_iter();
        let summary = self.news.summary(controller).filter(|_| std::io::stderr().is_terminal());
        let trouble = trouble.map(str::to_owned);
        lost.chain(summary).chain(trouble).for_each(|line| terminal::say(&format!("plumb: {line}")));
    }

    /// Restores the terminal.
    pub(super) fn end(self) {
        if let Some(mut live) = self.live {
            live.on(&Event::Over);
        }
    }
}
