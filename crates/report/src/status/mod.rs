//! Documents of how something is (a disk, a cache, a drive), and of what a command did. Each makes a [`Page`]
//! of itself, which every format sets in its own way.

mod cache;
mod cache_advice;
mod drive;
mod policy_disk;
mod policy_outcome;
mod policy_plan;
mod policy_show;
mod power;
mod raid;
mod restore;

use std::fmt::Debug;

use serde::Serialize;

use crate::document::json::pretty;
use crate::format::Kind;
use crate::outline::Page;

pub use cache::not_serving;

/// A document about the state of something, or about what a command did.
pub trait StatusDocument: Debug {
    /// Returns the page of it.
    fn page(&self) -> Page;

    /// Returns the kind, by which it is known which formats there are of it: what has metrics is a state.
    fn kind(&self) -> Kind {
        if self.metrics().is_some() { Kind::State } else { Kind::Status }
    }

    /// Returns its metrics in the text format of Prometheus, if it has some.
    fn metrics(&self) -> Option<String>;

    /// Returns it as indented JSON, ending in a newline.
    ///
    /// # Errors
    /// If a figure cannot be written as JSON.
    fn to_json(&self) -> serde_json::Result<String>;
}

/// Content of a document's page; the document as it is serialized is its JSON.
pub(crate) trait Sections {
    /// Command that the page is of.
    const TITLE: &str;

    /// Adds the document's sections to its page.
    fn add_to(&self, page: &mut Page);

    /// Returns the document's metrics in the text format of Prometheus, if it has some.
    fn metrics(&self) -> Option<String> {
        None
    }
}

impl<T: Sections + Serialize + Debug> StatusDocument for T {
    fn page(&self) -> Page {
        let mut page = Page { title: T::TITLE, ..Page::default() };
        self.add_to(&mut page);
        page
    }

    fn metrics(&self) -> Option<String> {
        Sections::metrics(self)
    }

    fn to_json(&self) -> serde_json::Result<String> {
        pretty(self)
    }
}
