//! Documents of a status (of a disk, a cache, a drive), and of the results of commands. Each creates a
//! [`Page`], which every format lays out in its own way.

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

/// Document of a status, or of the result of a command.
pub trait StatusDocument: Debug {
    /// Returns the page of the document.
    fn page(&self) -> Page;

    /// Returns the kind, which determines the formats: a document with metrics is a state.
    fn kind(&self) -> Kind {
        if self.metrics().is_some() { Kind::State } else { Kind::Status }
    }

    /// Returns the metrics in the text format of Prometheus; `None` if there are none.
    fn metrics(&self) -> Option<String>;

    /// Returns the document as indented JSON, ended by a newline.
    ///
    /// # Errors
    /// If a figure cannot be written as JSON.
    fn to_json(&self) -> serde_json::Result<String>;
}

/// Content of a document's page. The JSON form is the serialized document.
pub(crate) trait Sections {
    /// Command of the page.
    const TITLE: &str;

    /// Adds the document's sections to its page.
    fn add_to(&self, page: &mut Page);

    /// Returns the metrics in the text format of Prometheus; `None` if there are none.
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
