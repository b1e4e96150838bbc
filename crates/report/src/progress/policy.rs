//! Progress of a change of disks. On a terminal: a line for each disk, the current step and the remaining
//! time; otherwise as few lines as for a run. Every disk with a problem is reported.

use std::cell::RefCell;
use std::io::IsTerminal as _;

use indicatif::ProgressBar;
use plumb_block::Nanos;
use plumb_policy::apply::Event;
use plumb_text::shell_word;

use super::bar::redrawn;
use super::lines::ProgressLines;
use crate::quantity::counted;
use crate::streams;

/// Reports events to the user.
#[derive(Debug)]
pub struct PolicyProgress {
    bar: ProgressBar,
    /// Lines where stderr is not a terminal.
    lines: Option<RefCell<ProgressLines>>,
}

impl PolicyProgress {
    /// Creates a progress of lines on stderr, and a bar if that is a terminal.
    pub fn on_stderr() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let lines = (!is_terminal).then(|| ProgressLines::from_environment().into());
        Self { bar: redrawn(1, "{bar:24} {pos}/{len}  {msg}"), lines }
    }

    /// Shows the progress.
    fn progress(&self, line: &str) {
        match &self.lines {
            Some(lines) => lines.borrow_mut().say(line),
            None => self.say(line),
        }
    }

    fn say(&self, line: &str) {
        self.bar.suspend(|| streams::say(&format!("plumb: {line}")));
    }

    /// Shows an event.
    pub fn on(&self, event: &Event<'_>) {
        match event {
            Event::Begun { disks: 0, .. } => self.say("nothing to change"),
            Event::Begun { disks, journal } => {
                self.bar.set_length(*disks as u64);
                let word = shell_word(&journal.to_string_lossy());
                let journal = journal.display();
                self.say(&format!(
                    "{} to change; each step is recorded in {journal}",
                    counted(*disks as u64, "disk")
                ));
                self.say(&format!(
                    "if interrupted: `plumb policy apply --resume {word}` continues, `plumb policy rollback \
                     {word}` restores the old state"
                ));
            }
            Event::WaveBegun { wave: 0, .. } => self.progress("the canary, one disk alone"),
            Event::WaveBegun { wave, disks } => {
                self.progress(&format!("wave {wave}, {}", counted(*disks as u64, "disk")))
            }
            Event::DiskBegun { disk, done, total, remaining } => {
                self.bar.set_position(*done as u64);
                self.progress(&format!("{disk}, {} of {total}{}", done + 1, left(*remaining)));
            }
            Event::Step { disk, step, steps, words } => {
                self.bar.set_message(format!("{disk}: step {} of {steps}, {words}", step + 1));
            }
            Event::DiskEnded { disk, verified: true, settled_in } => {
                self.progress(&format!(
                    "{disk} was read back and is as it should be (settled in {settled_in})"
                ));
            }
            Event::DiskEnded { disk, verified: false, .. } => {
                self.say(&format!("{disk} is NOT as it should be"))
            }
            Event::WaveEnded { wave } => self.progress(&format!("wave {wave} was read back again")),
        }
    }
}

impl Drop for PolicyProgress {
    /// Removes the bar.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn left(remaining: Option<Nanos>) -> String {
    remaining.map_or_else(String::new, |time| format!(", {:.0} s left", time.as_secs_f64().ceil()))
}
