//! The tasks that began while it was observed: one that ends before it is looked up is known by nothing else.

use std::collections::HashMap;

use plumb_block::Nanos;

/// A name as the kernel has it; zeroes follow.
pub(crate) type Name = [u8; 16];

/// Knows the tasks that have not ended. Each is forgotten at its end, so it takes room for those that run.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    by_number: HashMap<u32, Task>,
}

#[derive(Debug, Clone, Copy)]
struct Task {
    name: Name,
    /// The task that made it and when; `None` of one that had begun before it was observed.
    made: Option<(u32, Nanos)>,
}

impl Tasks {
    /// Notes that `parent` makes `task`, a process or a thread.
    pub(crate) fn began(&mut self, at: Nanos, parent: u32, task: u32, name: Name) {
        self.by_number.insert(task, Task { name, made: Some((parent, at)) });
    }

    /// Names a task from now on.
    pub(crate) fn named(&mut self, task: u32, name: Name) {
        self.by_number.entry(task).or_insert(Task { name, made: None }).name = name;
    }

    /// Notes that a task has ended; what it did before has been taken.
    pub(crate) fn ended(&mut self, task: u32) {
        self.by_number.remove(&task);
    }

    /// Notes that events were lost: who began and who ended is no longer known.
    pub(crate) fn forget(&mut self) {
        self.by_number.clear();
    }

    /// Returns the name of a task.
    pub(crate) fn name(&self, task: u32) -> Option<String> {
        let name = self.by_number.get(&task)?.name;
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Some(String::from_utf8_lossy(&name[..length]).into_owned())
    }

    /// Returns a task and those that it descends from, the nearest first, up to one that began before it was
    /// observed, or has ended.
    pub(crate) fn lineage(&self, task: u32) -> impl Iterator<Item = u32> {
        // The number of one that has ended may be another's by now: that one is younger than its supposed
        // child.
        let parent =
            |(task, until): &(u32, Nanos)| self.by_number.get(task)?.made.filter(|(_, began)| began < until);
        std::iter::successors(Some((task, Nanos(u64::MAX))), parent).map(|(task, _)| task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: Name = *b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

    #[test]
    fn who_has_ended_takes_no_room() {
        let mut tasks = Tasks::default();
        for (at, task) in (1..=1000).zip(100..) {
            tasks.began(Nanos(at), 1, task, NAME);
            tasks.named(task, *b"sqlite3\0\0\0\0\0\0\0\0\0");
            assert_eq!(tasks.name(task).as_deref(), Some("sqlite3"));
            tasks.ended(task);
            assert_eq!(tasks.name(task), None);
        }
        assert_eq!(tasks.by_number.len(), 0);
    }

    #[test]
    fn a_task_descends_from_those_that_made_it_and_from_no_younger_one() {
        let mut tasks = Tasks::default();
        tasks.began(Nanos(1), 7, 20, NAME);
        tasks.began(Nanos(2), 20, 30, NAME);
        let of = |tasks: &Tasks, task| tasks.lineage(task).collect::<Vec<_>>();
        assert_eq!((of(&tasks, 30), of(&tasks, 7)), (vec![30, 20, 7], vec![7]));
        tasks.ended(20);
        assert_eq!(of(&tasks, 30), [30, 20]);
        // The number of the parent is given again, to a child of its child.
        tasks.began(Nanos(3), 30, 20, NAME);
        assert_eq!(of(&tasks, 30), [30, 20]);
        tasks.forget();
        assert_eq!(of(&tasks, 30), [30]);
    }
}
