//! Histories of commands on two blocks, and their enumeration.

use plumb_block::conformance::{History, Version};
use plumb_block::{Lba, LbaRange};
use plumb_crash::{Kind, Landing, Moment, Promise, Window};

pub(crate) const BLOCKS: usize = 2;

/// Event that can be submitted: a flush, or a command on blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Letter {
    Flush,
    On(Kind, u64, u64),
}

/// One event of a history. Commands are numbered from 1 in the order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Submit(Letter),
    Complete(u64),
    Fail(u64),
}

/// A command of a history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SubmittedCommand {
    pub(crate) letter: Letter,
    pub(crate) submitted: Moment,
    pub(crate) completed: Option<Moment>,
    pub(crate) is_failed: bool,
}

pub(crate) fn range(first: u64, nlb: u64) -> LbaRange {
    LbaRange::new(Lba(first), nlb)
}

/// All histories of at most `commands` submissions over an alphabet, without those equivalent to another one:
///
/// - the first command that lies on one block lies on block 0 (the blocks are alike);
/// - submissions that follow each other come in the order of the alphabet, and completions and failures that
///   follow each other in the order of numbers: exchanging them changes neither what is older than what nor
///   what a flush covers.
pub(crate) struct Every<'a> {
    pub(crate) alphabet: &'a [Letter],
    pub(crate) commands: usize,
    pub(crate) with_failures: bool,
}

impl Every<'_> {
    /// Visits each history, which extends another one by an event. `start` is the state before any event, and
    /// `step` returns the state after one more.
    pub(crate) fn walk<S>(&self, start: &S, step: &mut impl FnMut(&S, &[Event], Event) -> S) -> u64 {
        self.walk_from(start, &mut Vec::new(), step)
    }

    fn walk_from<S>(
        &self,
        state: &S,
        events: &mut Vec<Event>,
        step: &mut impl FnMut(&S, &[Event], Event) -> S,
    ) -> u64 {
        let mut count = 1;
        for event in self.next(events) {
            let after = step(state, events, event);
            events.push(event);
            count += self.walk_from(&after, events, step);
            events.pop();
        }
        count
    }

    fn next(&self, events: &[Event]) -> Vec<Event> {
        let submitted = events.iter().filter(|event| matches!(event, Event::Submit(_))).count();
        let mut next = Vec::new();
        if submitted < self.commands {
            let place = |letter| self.alphabet.iter().position(|one| *one == letter).unwrap();
            let least = match events.last() {
                Some(Event::Submit(letter)) => place(*letter),
                _ => 0,
            };
            let is_canonical = |letter: &&Letter| {
                let on_one = |letter: &Letter| matches!(letter, Letter::On(_, _, 1));
                let has_one = events.iter().any(|event| matches!(event, Event::Submit(one) if on_one(one)));
                has_one || !matches!(letter, Letter::On(_, 1, 1))
            };
            next.extend(self.alphabet[least..].iter().filter(is_canonical).map(|one| Event::Submit(*one)));
        }
        let least = match events.last() {
            Some(Event::Complete(id) | Event::Fail(id)) => *id,
            _ => 0,
        };
        for id in least + 1..=submitted as u64 {
            let is_over =
                |event: &Event| matches!(event, Event::Complete(one) | Event::Fail(one) if *one == id);
            if events.iter().any(is_over) {
                continue;
            }
            next.push(Event::Complete(id));
            if self.with_failures {
                next.push(Event::Fail(id));
            }
        }
        next
    }
}

/// A history, with the window and the oracle.
#[derive(Clone)]
pub(crate) struct Both {
    pub(crate) window: Window<u64>,
    /// Number of the command whose version was stored last, for each block.
    pub(crate) stored: [u64; BLOCKS],
    pub(crate) oracle: [History<u64>; BLOCKS],
    pub(crate) commands: Vec<SubmittedCommand>,
    pub(crate) now: Moment,
}

impl Both {
    pub(crate) fn new(promise: Promise) -> Self {
        Self {
            window: Window::new(promise),
            stored: [0; BLOCKS],
            oracle: [History::starting_with(0), History::starting_with(0)],
            commands: Vec::new(),
            now: 0,
        }
    }

    /// Applies an event to both.
    pub(crate) fn tell(&mut self, event: Event, landing: Landing) {
        match event {
            Event::Submit(letter) => {
                let id = self.commands.len() as u64 + 1;
                self.tell_window(|window, _| submit(window, id, letter));
            }
            Event::Complete(id) => self.tell_window(|window, store| window.complete(id, landing, store)),
            Event::Fail(id) => self.tell_window(|window, _| window.fail(id)),
        }
        self.tell_oracle(event);
    }

    pub(crate) fn tell_window(
        &mut self,
        tell: impl FnOnce(&mut Window<u64>, &mut dyn FnMut(LbaRange, &u64)),
    ) {
        let stored = &mut self.stored;
        tell(&mut self.window, &mut |range, id| {
            stored[range.lba.0 as usize..range.end().0 as usize].fill(*id);
        });
    }

    pub(crate) fn tell_oracle(&mut self, event: Event) {
        self.now += 1;
        let (now, promise) = (self.now, self.window.promise());
        match event {
            Event::Submit(letter) => {
                let one = SubmittedCommand { letter, submitted: now, completed: None, is_failed: false };
                self.commands.push(one);
                let content = self.commands.len() as u64;
                self.each_block(content, |history, kind| {
                    history.versions.push(Version::submitted(content, now, kind.displaces()));
                });
            }
            Event::Complete(id) => {
                let command = &mut self.commands[id as usize - 1];
                command.completed = Some(now);
                let submitted = command.submitted;
                if command.letter == Letter::Flush {
                    self.oracle.iter_mut().for_each(|history| history.flushed(submitted));
                }
                self.each_block(id, |history, kind| {
                    for version in history.versions.iter_mut().filter(|version| version.content == id) {
                        version.completed = Some(now);
                        version.is_durable = kind.is_fua() || !promise.volatile;
                    }
                });
            }
            Event::Fail(id) => {
                self.commands[id as usize - 1].is_failed = true;
                self.each_block(id, |history, _| {
                    let versions = history.versions.iter_mut();
                    versions.filter(|one| one.content == id).for_each(|one| one.is_lost_track_of = true);
                });
            }
        }
    }

    fn each_block(&mut self, id: u64, mut call: impl FnMut(&mut History<u64>, Kind)) {
        if let Letter::On(kind, first, nlb) = self.commands[id as usize - 1].letter {
            for block in first..first + nlb {
                call(&mut self.oracle[block as usize], kind);
            }
        }
    }

    /// Returns the oracle's answer: the versions that a block may hold after a cut at this moment, and true
    /// if it may be unreadable.
    pub(crate) fn legal(&self, block: usize) -> (Vec<u64>, bool) {
        let history = &self.oracle[block];
        let legal = history.survivors(self.now + 1);
        let mut versions: Vec<u64> =
            legal.versions.iter().map(|index| history.versions[*index].content).collect();
        versions.sort_unstable();
        (versions, legal.may_be_unreadable)
    }
}

pub(crate) fn submit(window: &mut Window<u64>, id: u64, letter: Letter) {
    match letter {
        Letter::Flush => window.submit_flush(id),
        Letter::On(kind, first, nlb) => window.submit(id, kind, range(first, nlb), id),
    }
}

/// Returns writes, FUA writes and discards of block 0, block 1 or both, and flushes.
pub(crate) fn letters(zeroes: bool) -> Vec<Letter> {
    let kinds = [Kind::Write { fua: false }, Kind::Write { fua: true }, Kind::Discard { zeroes }];
    let places = [(0, 1), (1, 1), (0, 2)];
    let on = kinds.iter().flat_map(|kind| places.map(|(first, nlb)| Letter::On(*kind, first, nlb)));
    on.chain([Letter::Flush]).collect()
}
