//! Results of checks by what the checks have read.
//!
//! A checker that reads the same blocks and finds the same in them comes to the same result, whatever is in
//! the blocks that it does not read. So a state is looked up by asking, block after block, for what an
//! earlier check has read; if one has found just that in all of them, its result is that of the state, and
//! nothing is mounted. This holds for checkers that follow from what they read alone; one that does not is
//! found out when it comes to different results by the same reads.

use std::collections::HashMap;

use crate::recording::Content;

/// The results of checks.
#[derive(Debug)]
pub struct ObservedResults<R> {
    /// By what had to be found.
    roots: HashMap<Option<u64>, Node<R>>,
}

#[derive(Debug)]
enum Node<R> {
    /// All that was read until here led to this.
    Result(R),
    /// The check read a block next; `after` has what came after each content.
    Read { lba: u64, after: HashMap<Content, Node<R>> },
}

/// Two checks read the same and came to different results: the checker depends on something else, such as the
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the checker gave different results after reading the same data")]
pub struct NotDeterministic;

impl<R> Default for ObservedResults<R> {
    fn default() -> Self {
        Self { roots: HashMap::new() }
    }
}

impl<R: PartialEq> ObservedResults<R> {
    /// Returns the result of an earlier check that must be that of a state which holds `content` in its
    /// blocks.
    pub fn result(&self, required: Option<u64>, mut content: impl FnMut(u64) -> Content) -> Option<&R> {
        let mut node = self.roots.get(&required)?;
        loop {
            match node {
                Node::Result(result) => return Some(result),
                Node::Read { lba, after } => node = after.get(&content(*lba))?,
            }
        }
    }

    /// Learns from a check that had to find `required`: what it read, each block once, in the order in which
    /// it first did, and its result. Blocks that hold the same in every state may be left out. Reads in
    /// another order than those of earlier checks may teach nothing.
    ///
    /// # Errors
    /// If an earlier check read the same, and came to another result.
    pub fn learn(
        &mut self,
        required: Option<u64>,
        read: &[(u64, Content)],
        result: R,
    ) -> Result<(), NotDeterministic> {
        let by_block: HashMap<u64, Content> = read.iter().copied().collect();
        let mut asked: Vec<u64> = Vec::new();
        let mut node = match self.roots.entry(required) {
            std::collections::hash_map::Entry::Occupied(root) => root.into_mut(),
            std::collections::hash_map::Entry::Vacant(root) => {
                root.insert(chain(read, result));
                return Ok(());
            }
        };
        loop {
            match node {
                Node::Result(known) => return if *known == result { Ok(()) } else { Err(NotDeterministic) },
                Node::Read { lba, after } => {
                    let Some(content) = by_block.get(lba) else { return Ok(()) };
                    asked.push(*lba);
                    match after.entry(*content) {
                        std::collections::hash_map::Entry::Occupied(next) => node = next.into_mut(),
                        std::collections::hash_map::Entry::Vacant(place) => {
                            let rest: Vec<_> =
                                read.iter().filter(|(lba, _)| !asked.contains(lba)).copied().collect();
                            place.insert(chain(&rest, result));
                            return Ok(());
                        }
                    }
                }
            }
        }
    }
}

/// One read after the other, and then the result.
fn chain<R>(read: &[(u64, Content)], result: R) -> Node<R> {
    read.iter().rev().fold(Node::Result(result), |after, (lba, content)| Node::Read {
        lba: *lba,
        after: HashMap::from([(*content, after)]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a checker that looks at block 0, and by what it finds there at block 1 or at block 2.
    fn check(blocks: [u32; 4]) -> (Vec<(u64, Content)>, u32) {
        let next = if blocks[0] == 0 { 1 } else { 2 };
        let read = [0, next].map(|lba| (lba as u64, Content(blocks[lba])));
        (read.to_vec(), blocks[0] * 10 + blocks[next])
    }

    #[test]
    fn only_what_is_read_counts() {
        let mut observed = ObservedResults::default();
        let mut checks = 0;
        for number in 0..81_u32 {
            let blocks = [number % 3, number / 3 % 3, number / 9 % 3, number / 27];
            let content = |lba: u64| Content(blocks[lba as usize]);
            let (read, result) = check(blocks);
            match observed.result(Some(1), content) {
                Some(known) => assert_eq!(*known, result, "{blocks:?}"),
                None => {
                    checks += 1;
                    observed.learn(Some(1), &read, result).unwrap();
                }
            }
        }
        assert_eq!(checks, 9);
        assert_eq!(observed.result(Some(2), |_| Content(0)), None, "something else has to be found");
    }

    #[test]
    fn a_checker_that_depends_on_something_else_is_found_out() {
        let mut observed = ObservedResults::default();
        let read = [(4, Content(1)), (7, Content(2))];
        observed.learn(None, &read, "intact").unwrap();
        let other_order = [read[1], read[0]];
        assert_eq!(observed.learn(None, &other_order, "intact"), Ok(()));
        assert_eq!(observed.learn(None, &other_order, "lost"), Err(NotDeterministic));
    }
}
