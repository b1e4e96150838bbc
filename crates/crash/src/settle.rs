//! Removal of commands from the window: they become durable and displace older ones, or are withdrawn.

use plumb_block::LbaRange;

use crate::command::Command;
use crate::window::Window;

impl<T: Clone> Window<T> {
    /// Makes a completed command durable from now on.
    pub(crate) fn make_durable(&mut self, id: u64, store: &mut (impl FnMut(LbaRange, &T) + ?Sized)) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        command.is_durable = true;
        let range = command.range;
        // Fast path: the only command over its blocks, which is the usual case.
        if command.kind.displaces() && self.versions.take_exact(range, |ids| *ids == [id]) {
            store(range, &command.content);
            self.commands.remove(&id);
            return;
        }
        // A discard that may do nothing remains one of the candidates until something newer is durable.
        if command.kind.displaces() {
            self.for_each_run(range, |window, run| window.decide(run, id, store));
        }
    }

    /// Removes a command as if it had never existed.
    pub fn withdraw(&mut self, id: u64) {
        let Some(command) = self.commands.remove(&id) else { return };
        if command.is_at_risk() {
            self.at_risk_blocks -= command.live_blocks;
        }
        self.for_each_run(command.range, |window, run| {
            if let Some(ids) = window.versions.starting_at(run.lba) {
                ids.retain(|other| *other != id);
                window.retire(run);
            }
        });
    }

    /// Calls `call` for each run that is completely within `range`. A run that crosses an end of `range` is
    /// left out: the command of `range` is no longer relevant there.
    fn for_each_run(&mut self, range: LbaRange, mut call: impl FnMut(&mut Self, LbaRange)) {
        let mut rest = range;
        while let Some((run, _)) = self.versions.first_over(rest) {
            if run.lba >= range.lba && run.end() <= range.end() {
                call(self, run);
            }
            rest = LbaRange::new(run.end(), range.end().0.saturating_sub(run.end().0));
        }
    }

    /// Makes the command durable in this run: stores it and removes everything older.
    fn decide(&mut self, run: LbaRange, id: u64, store: &mut (impl FnMut(LbaRange, &T) + ?Sized)) {
        let Some(ids) = self.versions.starting_at(run.lba) else { return };
        if let [only] = ids[..] {
            if only == id {
                store(run, &self.commands[&id].content);
                self.versions.remove_at(run.lba);
                self.release(id, run);
            }
            return;
        }
        if !ids.contains(&id) {
            return;
        }
        let one = &self.commands[&id];
        let landed_later =
            |other: &u64| self.commands[other].is_decisive() && self.commands[other].landed() > one.landed();
        // Content already stored by a durable command stays if that command landed later.
        if !ids.iter().any(landed_later) {
            store(run, &one.content);
        }
        let is_gone = |other: &u64| self.commands[other].span.is_older_than(one.span);
        let gone: Vec<u64> = ids.extract_if(.., |other| is_gone(other)).collect();
        for other in gone {
            self.release(other, run);
        }
        self.retire(run);
    }

    /// Removes the durable commands from a run once all other commands there are newer: no other version can
    /// precede them any more, and the stored content is that of the durable command that landed last. If that
    /// one is unknown, they stay.
    fn retire(&mut self, run: LbaRange) {
        let Some(ids) = self.versions.starting_at(run.lba) else { return };
        let (decisive, others): (Vec<u64>, Vec<u64>) =
            ids.iter().partition(|id| self.commands[*id].is_decisive());
        let commands = |ids: &'_ [u64]| ids.iter().map(|id| &self.commands[id]).collect::<Vec<&Command<T>>>();
        let last = commands(&decisive).iter().map(|one| one.span.completed).max();
        let is_newer = |one: &&Command<T>| last.is_none_or(|last| last < one.span.submitted);
        let is_known = |one: &&Command<T>| one.landing != crate::Landing::Unknown;
        let is_decided = decisive.len() == 1 || commands(&decisive).iter().all(is_known);
        if decisive.is_empty() || !is_decided || !commands(&others).iter().all(is_newer) {
            if ids.is_empty() {
                self.versions.remove_at(run.lba);
            }
            return;
        }
        if others.is_empty() {
            self.versions.remove_at(run.lba);
        } else {
            *ids = others;
        }
        for id in decisive {
            self.release(id, run);
        }
    }

    /// Removes a command from a run, and from the window if it is nowhere relevant.
    fn release(&mut self, id: u64, run: LbaRange) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        command.live_blocks -= run.nlb;
        let (is_at_risk, is_over) = (command.is_at_risk(), command.live_blocks == 0);
        if is_at_risk {
            self.at_risk_blocks -= run.nlb;
        }
        if is_over {
            self.commands.remove(&id);
        }
    }
}
