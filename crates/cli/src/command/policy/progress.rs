//! Progress on stderr: a line for each disk, and on a terminal the step that runs and how long it will take.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plumb_block::{Nanos, shell_word};
use plumb_policy::apply::{Event, Progress};
use plumb_report::quantity::counted;

use crate::terminal;

/// Tells people what happens.
pub(super) struct TerminalProgress {
    bar: ProgressBar,
}

impl TerminalProgress {
    /// Lines on stderr, and a bar if that is a terminal.
    pub(super) fn on_stderr() -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}  {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar }
    }

    fn say(&self, line: &str) {
        self.bar.suspend(|| terminal::say(&format!("plumb: {line}")));
    }
}

impl Drop for TerminalProgress {
    /// Takes the bar away.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for TerminalProgress {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Begun { disks: 0, .. } => self.say("nothing to change"),
            Event::Begun { disks, journal } => {
                self.bar.set_length(*disks as u64);
                let word = shell_word(&journal.to_string_lossy());
                let journal = journal.display();
                self.say(&format!(
                    "{} to change; what is done is written to {journal}",
                    counted(*disks as u64, "disk")
                ));
                self.say(&format!("interrupted, `plumb policy apply --resume {word}` goes on, and `plumb policy rollback {word}` goes back"));
            }
            Event::WaveBegun { wave: 0, .. } => self.say("the canary, one disk alone"),
            Event::WaveBegun { wave, disks } => {
                self.say(&format!("wave {wave}, {}", counted(*disks as u64, "disk")))
            }
            Event::DiskBegun { disk, done, total, remaining } => {
                self.bar.set_position(*done as u64);
                self.say(&format!("{disk}, {} of {total}{}", done + 1, left(*remaining)));
            }
            Event::Step { disk, step, steps, words } => {
                self.bar.set_message(format!("{disk}: step {} of {steps}, {words}", step + 1));
            }
            Event::DiskEnded { disk, verified: true, settled_in } => {
                self.say(&format!("{disk} was read back and is as it should be (settled in {settled_in})"));
            }
            Event::DiskEnded { disk, verified: false, .. } => {
                self.say(&format!("{disk} is NOT as it should be"))
            }
            Event::WaveEnded { wave } => self.say(&format!("wave {wave} was read back again")),
        }
    }
}

fn left(remaining: Option<Nanos>) -> String {
    remaining.map_or_else(String::new, |time| format!(", {:.0} s left", time.as_secs_f64().ceil()))
}
