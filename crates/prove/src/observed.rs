//! Results of checks, indexed by the contents that the checks read.
//!
//! A deterministic checker that reads the same blocks with the same contents gives the same result, whatever
//! the other blocks hold. The lookup of a state follows the reads of earlier checks, block by block. If all
//! contents match, the earlier result holds for this state, and nothing is mounted. A checker that is not
//! deterministic is detected when it gives different results for the same reads.

use std::collections::HashMap;

use crate::recording::Content;

/// Results of checks.
#[derive(Debug)]
pub struct ObservedResults<R> {
    /// Trees of reads, by the required acknowledgement.
    roots: HashMap<Option<u64>, Node<R>>,
}

#[derive(Debug)]
enum Node<R> {
    /// Result of the reads on the path to this node.
    Result(R),
    /// The check read block `lba` next; `after` holds the continuation for each content.
    Read { lba: u64, after: HashMap<Content, Node<R>> },
}

/// Two checks read the same contents and gave different results: the checker depends on something else, such
/// as the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the checker gave different results after reading the same data")]
pub struct NotDeterministic;

impl<R> Default for ObservedResults<R> {
    fn default() -> Self {
        Self { roots: HashMap::new() }
    }
}

impl<R: PartialEq> ObservedResults<R> {
    /// Returns the result of an earlier check that also holds for a state with this `content` in its blocks.
    pub fn result(&self, required: Option<u64>, mut content: impl FnMut(u64) -> Content) -> Option<&R> {
        let mut node = self.roots.get(&required)?;
        loop {
            match node {
                Node::Result(result) => return Some(result),
                Node::Read { lba, after } => node = after.get(&content(*lba))?,
            }
        }
    }

    /// Adds a check that had to find `required`: the blocks that it read, in the order of their first reads,
    /// and its result. Blocks that hold the same in every state may be left out. Reads in another order than
    /// those of earlier checks may be ignored.
    ///
    /// # Errors
    /// If an earlier check read the same contents and gave another result.
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

/// Builds a chain of reads that ends with the result.
fn chain<R>(read: &[(u64, Content)], result: R) -> Node<R> {
    read.iter().rev().fold(Node::Result(result), |after, (lba, content)| Node::Read {
        lba: *lba,
        after: HashMap::from([(*content, after)]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checker that reads block 0, and depending on its content block 1 or block 2.
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
