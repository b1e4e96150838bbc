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
use serde::de::DeserializeOwned;

use crate::document::json::pretty;
use crate::format::Kind;
use crate::outline::Page;

pub use cache::not_serving;

/// A document about the state of something, or about what a command did.
pub trait StatusDocument: Debug + ToJson {
    /// Returns the page of it.
    fn page(&self) -> Page;

    /// Returns the kind, by which it is known which formats there are of it: what has metrics is a state.
    fn kind(&self) -> Kind {
        if self.metrics().is_some() { Kind::State } else { Kind::Status }
    }

    /// Returns its metrics in the text format of Prometheus, if it has some.
    fn metrics(&self) -> Option<String> {
        None
    }
}

/// A document as JSON: as it is serialized, or as it was [read](Read).
pub trait ToJson {
    /// Returns it as indented JSON, ending in a newline.
    ///
    /// # Errors
    /// If a figure cannot be written as JSON.
    fn to_json(&self) -> serde_json::Result<String>;
}

impl<T: Serialize> ToJson for T {
    fn to_json(&self) -> serde_json::Result<String> {
        pretty(self)
    }
}

impl<T> ToJson for Read<T> {
    fn to_json(&self) -> serde_json::Result<String> {
        Ok(self.json.clone())
    }
}

/// A document whose type belongs to a crate that reports do not use: its JSON, with the part of it that a
/// page shows.
#[derive(Debug)]
pub struct Read<T> {
    json: String,
    /// Part that the page shows.
    pub shown: T,
}

impl<T: DeserializeOwned> Read<T> {
    /// Reads `document`.
    ///
    /// # Errors
    /// If it is not one of this kind.
    pub fn new(document: &impl Serialize) -> serde_json::Result<Self> {
        let json = pretty(document)?;
        Ok(Self { shown: serde_json::from_slice(json.as_bytes())?, json })
    }
}
