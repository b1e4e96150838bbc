//! Enumerates every state that a power cut may leave after ten commands of a small journal, and counts those
//! in which the journal would be read wrongly.
//!
//! ```sh
//! cargo run -p plumb-examples --bin crash_states
//! ```
//!
//! The journal occupies blocks 1 to 4, its head is in block 0. An entry is written, and then the head that
//! counts it. Between the two there is a flush, or there is none: that is the argument.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use plumb_block::{Lba, LbaRange};
use plumb_crash::{Grain, Kind, Landing, Options, Promise, Survivor, Window};

/// The block that says how many entries there are.
const HEAD: Lba = Lba(0);

/// Value that a block holds: of the head, the number of entries that it counts; of an entry, its number.
type Number = u64;

/// A drive with a volatile cache, and the commands that it has completed.
struct Drive {
    window: Window<Number>,
    /// Durable value of each block.
    stored: [Number; 5],
    commands: u64,
}

impl Drive {
    fn new() -> Self {
        Self { window: Window::new(Promise::VOLATILE), stored: [0; 5], commands: 0 }
    }

    fn write(&mut self, lba: Lba, number: Number) {
        self.commands += 1;
        let write = Kind::Write { fua: false };
        self.window.submit(self.commands, write, LbaRange::new(lba, 1), number);
        self.complete();
    }

    fn flush(&mut self) {
        self.commands += 1;
        self.window.submit_flush(self.commands);
        self.complete();
    }

    fn complete(&mut self) {
        let stored = &mut self.stored;
        let mut store = |range: LbaRange, number: &Number| stored[range.lba.0 as usize] = *number;
        self.window.complete(self.commands, Landing::AtCompletion, &mut store);
    }

    /// Returns every state that a cut of the power now may leave.
    fn states(&self) -> BTreeSet<[Number; 5]> {
        let options = Options { grain: Grain::Blocks, unreadable: false };
        let mut states = BTreeSet::new();
        let visited = self.window.enumerate(options, &mut |outcome| {
            let mut state = self.stored;
            for (range, survivor) in outcome {
                if let Survivor::Command(id) = survivor
                    && let Some(command) = self.window.command(*id)
                {
                    state[range.lba.0 as usize] = command.content;
                }
            }
            states.insert(state);
            ControlFlow::Continue(())
        });
        assert!(visited.is_continue(), "no state was left out");
        states
    }
}

/// Writes entries until there were ten commands; prints and returns how many states there are, and how many
/// are wrong.
fn run(flushes_before_head: bool) -> (usize, usize) {
    let (mut drive, mut all, mut wrong) = (Drive::new(), BTreeSet::new(), BTreeSet::new());
    for entry in 1.. {
        drive.write(Lba(entry), entry);
        if flushes_before_head {
            drive.flush();
        }
        drive.write(HEAD, entry);
        for state in drive.states() {
            // The head counts an entry that is not there.
            let is_wrong = (1..=state[0]).any(|entry| state[entry as usize] != entry);
            if is_wrong {
                wrong.insert(state);
            }
            all.insert(state);
        }
        if drive.commands >= 8 {
            break;
        }
    }
    (all.len(), wrong.len())
}

fn main() {
    for (words, flushes_before_head) in [("without a flush", false), ("with a flush", true)] {
        let (all, wrong) = run(flushes_before_head);
        println!("{words} before the head: {all} states, {wrong} with a head that counts what is not there");
    }
}

#[cfg(test)]
mod tests {
    use super::run;

    #[test]
    fn only_a_flush_orders_an_entry_before_its_head() {
        assert!(run(false).1 > 0);
        assert_eq!(run(true).1, 0);
    }
}
