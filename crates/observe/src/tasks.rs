//! Tasks that began during the observation: a task that ends before it is looked up is known only from its
//! events.

use std::collections::HashMap;

use plumb_block::Nanos;

/// Name from the kernel, padded with zeroes.
pub(crate) type Name = [u8; 16];

/// Tasks that have not ended. Each is removed at its end, so the memory depends on the running tasks.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    by_number: HashMap<u32, Task>,
}

#[derive(Debug, Clone, Copy)]
struct Task {
    name: Name,
    /// Parent task and time of creation; `None` for a task that began before the observation.
    made: Option<(u32, Nanos)>,
}

impl Tasks {
    /// Records that `parent` creates `task`, a process or a thread.
    pub(crate) fn began(&mut self, at: Nanos, parent: u32, task: u32, name: Name) {
        self.by_number.insert(task, Task { name, made: Some((parent, at)) });
    }

    /// Sets the name of a task.
    pub(crate) fn named(&mut self, task: u32, name: Name) {
        self.by_number.entry(task).or_insert(Task { name, made: None }).name = name;
    }

    /// Records that a task has ended; its earlier events have been handled.
    pub(crate) fn ended(&mut self, task: u32) {
        self.by_number.remove(&task);
    }

    /// Records that events were lost: the begin and the end of tasks are no longer known.
    pub(crate) fn forget(&mut self) {
        self.by_number.clear();
    }

    /// Returns the name of a task.
    pub(crate) fn name(&self, task: u32) -> Option<String> {
        let name = self.by_number.get(&task)?.name;
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Some(String::from_utf8_lossy(&name[..length]).into_owned())
    }

    /// Returns a task and its ancestors, the nearest first, up to one that began before the observation or
    /// has ended.
    pub(crate) fn lineage(&self, task: u32) -> impl Iterator<Item = u32> {
        // The number of an ended parent may belong to a new task, which is then younger than its supposed
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
