//! What was last said of pages and is not in the tables of the map yet.
//!
//! A page written at random is far from the processor, and waiting for one after the other is most of what a write
//! costs. Of several together none waits for another. Whoever looks at a page in between finds it here.

use super::page_map::Tag;

/// So many are brought to the tables together: what a processor can ask of memory at a time, a few times over.
const TOGETHER: usize = 32;

/// Pages with what they hold from now on, the latest last.
#[derive(Debug, Default)]
pub(super) struct Recent {
    pages: Vec<u64>,
    tags: Vec<Tag>,
}

impl Recent {
    /// Says what a page holds; whether it is time to bring all of them to the tables.
    #[inline]
    pub(super) fn put(&mut self, page: u64, tag: Tag) -> bool {
        self.pages.push(page);
        self.tags.push(tag);
        self.pages.len() >= TOGETHER
    }

    /// What was last said of a page, if anything was.
    #[inline]
    pub(super) fn of(&self, page: u64) -> Option<Tag> {
        let place = self.pages.iter().rposition(|one| *one == page)?;
        Some(self.tags[place])
    }

    /// The first page from this one on of which something was said.
    pub(super) fn next_from(&self, page: u64) -> Option<u64> {
        self.pages.iter().copied().filter(|one| *one >= page).min()
    }

    /// Their pages.
    pub(super) fn pages(&self) -> &[u64] {
        &self.pages
    }

    pub(super) const fn len(&self) -> usize {
        self.pages.len()
    }

    pub(super) fn get(&self, place: usize) -> (u64, Tag) {
        (self.pages[place], self.tags[place])
    }

    pub(super) fn clear(&mut self) {
        self.pages.clear();
        self.tags.clear();
    }
}
