//! A recorded tree in one text file: `tree.json`.
//!
//! ```json
//! { "schema": "plumb/tree/1",
//!   "relative": { ".": "/srv/db" },
//!   "stat": { "/srv/db": { "kind": "directory", "device": "8:1", "mount": 27 } },
//!   "tree": {
//!     "sys": { "block": { "sda": ["link", "../devices/pci0000:00/.../block/sda"] },
//!              "devices": { "...": { "size": "1953525168\n", "vpd_pg80": ["hex", "0080"], "wwid": ["denied"],
//!                                    "power": null } } } } }
//! ```
//!
//! An object is a directory, a string a file; `null` is a name that appeared in a listing but was never read.
//! Links, bytes that are not UTF-8 and refusals are arrays, so that git and tar preserve them. Everything
//! else does not exist.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::absence::{Absence, Answer};
use super::resolve::resolve;
use super::{Attributes, Stat, Tree, WriteLimits};
use crate::recorded::{self, RecordedError};

mod node;

use node::{Content, Node};

/// A tree that answers from memory. It is loaded from a file, or built with the `put_` methods in tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedTree {
    schema: String,
    /// Relative paths that were queried, with their absolute paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    relative: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    stat: BTreeMap<String, Stat>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<String, Attributes>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    write_limits: BTreeMap<String, WriteLimits>,
    tree: Node,
}

impl Default for RecordedTree {
    fn default() -> Self {
        Self::new()
    }
}

impl RecordedTree {
    /// Name and version of the format.
    pub const SCHEMA: &str = "plumb/tree/1";

    /// Creates an empty tree.
    pub fn new() -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            relative: BTreeMap::new(),
            stat: BTreeMap::new(),
            attributes: BTreeMap::new(),
            write_limits: BTreeMap::new(),
            tree: Node::directory(),
        }
    }

    /// Reads `tree.json`.
    ///
    /// # Errors
    /// [`RecordedError`] names the file and the problem.
    pub fn load(file: &Path) -> Result<Self, RecordedError> {
        recorded::load(file, Self::SCHEMA)
    }

    /// Encodes the tree as `tree.json`, one name on each line.
    ///
    /// # Errors
    /// Fails as [`recorded::encode`] does.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        recorded::encode(self)
    }

    /// Adds a file at `path` with these bytes; replaces a file, but not a directory.
    pub fn put_bytes(&mut self, path: &str, bytes: &[u8]) {
        self.tree.put(path, Node::file(bytes));
    }

    /// Adds a file at `path` with this text.
    pub fn put_text(&mut self, path: &str, text: &str) {
        self.put_bytes(path, text.as_bytes());
    }

    /// Adds a symbolic link at `path`.
    pub fn put_link(&mut self, path: &str, target: &str) {
        self.tree.put(path, Node::link(target));
    }

    /// Adds a refusal at `path`. [`Absence::NotThere`] and [`Absence::NotRecorded`] have no effect.
    pub fn put_absence(&mut self, path: &str, absence: Absence) {
        if let Some(node) = Node::absence(absence) {
            self.tree.put(path, node);
        }
    }

    /// Adds a directory at `path` with these names, as yet unread.
    pub fn put_names(&mut self, path: &str, names: &[String]) {
        self.tree.put(path, Node::directory());
        for name in names {
            self.tree.put(&format!("{path}/{name}"), Node::unread());
        }
    }

    /// Records the stat(2) result for `path`.
    pub fn put_stat(&mut self, path: &str, stat: Stat) {
        self.stat.insert(path.to_owned(), stat);
    }

    /// Sets the attributes of the file or directory at `path`.
    pub fn put_attributes(&mut self, path: &str, attributes: Attributes) {
        self.attributes.insert(path.to_owned(), attributes);
    }

    /// Records the limits of writes to the file at `path`.
    pub fn put_write_limits(&mut self, path: &str, limits: WriteLimits) {
        self.write_limits.insert(path.to_owned(), limits);
    }

    /// Records the absolute path of a relative path.
    pub(crate) fn put_relative(&mut self, path: &str, canonical: &str) {
        self.relative.insert(path.to_owned(), canonical.to_owned());
    }

    /// Removes `path` and everything below it.
    pub fn remove(&mut self, path: &str) {
        self.tree.remove(path);
        self.stat.remove(path);
    }

    /// Returns the path of every file, link and refusal, in order.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.tree.walk(&mut String::new(), &mut paths);
        paths
    }

    fn find(&self, path: &str) -> Answer<&Node> {
        self.tree.at(&self.resolved(path)?).ok_or(Absence::NotThere)
    }

    /// Returns `path` without links.
    fn resolved(&self, path: &str) -> Answer<String> {
        resolve(path, |at| match self.tree.at(at).map(Node::content) {
            Some(Content::Link(target)) => Ok(target.to_string()),
            _ => Err(Absence::NotThere),
        })
    }
}

impl Tree for RecordedTree {
    fn read(&self, path: &str) -> Answer<Vec<u8>> {
        match self.find(path)?.content() {
            Content::Text(text) => Ok(text.as_bytes().to_vec()),
            Content::Bytes(bytes) => Ok(bytes.to_vec()),
            Content::Unread => Err(Absence::NotRecorded),
            Content::Absent(absence) => Err(*absence),
            Content::Directory(_) | Content::Link(_) => Err(Absence::NotThere),
        }
    }

    fn list(&self, path: &str) -> Answer<Vec<String>> {
        match self.find(path)?.content() {
            Content::Directory(entries) => Ok(entries.keys().map(ToString::to_string).collect()),
            Content::Unread => Err(Absence::NotRecorded),
            Content::Absent(absence) => Err(*absence),
            _ => Err(Absence::NotThere),
        }
    }

    fn link(&self, path: &str) -> Answer<String> {
        let (parent, name) = path.trim_end_matches('/').rsplit_once('/').ok_or(Absence::NotThere)?;
        let parent = self.tree.at(&self.resolved(parent)?);
        match parent.and_then(|node| node.child(name)).map(Node::content) {
            Some(Content::Link(target)) => Ok(target.to_string()),
            Some(Content::Unread) => Err(Absence::NotRecorded),
            Some(Content::Absent(absence)) => Err(*absence),
            _ => Err(Absence::NotThere),
        }
    }

    fn stat(&self, path: &str) -> Answer<Stat> {
        if let Some(stat) = self.stat.get(path) {
            return Ok(*stat);
        }
        let resolved = self.canonical(path)?;
        match self.stat.get(&resolved) {
            Some(stat) => Ok(*stat),
            None => Err(Absence::NotRecorded),
        }
    }

    fn attributes(&self, path: &str) -> Answer<Attributes> {
        let known = |path: &str| self.attributes.get(path).copied();
        known(path).or_else(|| known(&self.canonical(path).ok()?)).ok_or(Absence::NotRecorded)
    }

    fn write_limits(&self, path: &str) -> Answer<WriteLimits> {
        let known = |path: &str| self.write_limits.get(path).copied();
        known(path).or_else(|| known(&self.canonical(path).ok()?)).ok_or(Absence::NotRecorded)
    }

    fn canonical(&self, path: &str) -> Answer<String> {
        if let Some(canonical) = self.relative.get(path) {
            return Ok(canonical.clone());
        }
        if !path.starts_with('/') {
            return Err(Absence::NotThere);
        }
        let place = self.resolved(path)?;
        let known = self.tree.at(&place).is_some() || self.stat.contains_key(&place);
        if known { Ok(place) } else { Err(Absence::NotThere) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{DeviceNumber, FileKind};

    fn small() -> RecordedTree {
        let mut tree = RecordedTree::new();
        tree.put_link("/sys/block/sda", "../devices/ata1/block/sda");
        tree.put_text("/sys/devices/ata1/block/sda/size", "8\n");
        tree.put_bytes("/sys/devices/ata1/vpd_pg80", &[0, 0x80, 0xff]);
        tree.put_link("/sys/devices/ata1/block/sda/up", "../size");
        tree.put_absence("/sys/devices/ata1/secret", Absence::Denied);
        tree.put_names("/sys/devices/ata1/block/sda", &["queue".into(), "size".into()]);
        let number = DeviceNumber { major: 8, minor: 0 };
        tree.put_stat(
            "/srv",
            Stat { kind: FileKind::Directory, device: number, node: None, mount: Some(27) },
        );
        tree.put_relative(".", "/srv");
        tree
    }

    #[test]
    fn answers_survive_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tree.json");
        std::fs::write(&file, small().to_json().unwrap()).unwrap();
        let tree = RecordedTree::load(&file).unwrap();
        assert_eq!(tree, small());
        assert_eq!(tree.text("/sys/block/sda/size").unwrap(), "8");
        assert_eq!(tree.read("/sys/devices/ata1/vpd_pg80").unwrap(), [0, 0x80, 0xff]);
        assert_eq!(tree.read("/sys/devices/ata1/secret"), Err(Absence::Denied));
        assert_eq!(tree.read("/sys/block/sda/ro"), Err(Absence::NotThere));
        assert_eq!(tree.list("/sys/block/sda/queue"), Err(Absence::NotRecorded));
        assert_eq!(tree.list("/sys/block/sda").unwrap(), ["queue", "size", "up"]);
        assert_eq!(tree.canonical("/sys/block/sda").unwrap(), "/sys/devices/ata1/block/sda");
        assert_eq!(tree.canonical(".").unwrap(), "/srv");
        assert_eq!(tree.canonical("/none"), Err(Absence::NotThere));
        assert_eq!(tree.link("/sys/block/sda/up").unwrap(), "../size");
        assert_eq!(tree.text("/sys/block/sda/up"), Err(Absence::NotThere));
        assert_eq!(tree.stat("/srv").unwrap().mount, Some(27));
    }

    #[test]
    fn what_is_no_recorded_tree_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tree.json");
        for (text, expected) in [
            ("{", "not a recording"),
            ("{\"schema\":\"plumb/tree/9\",\"tree\":{}}", "plumb/tree/9"),
            ("{\"schema\":\"plumb/tree/1\",\"tree\":{\"a\":[\"link\"]}}", "not a recording"),
            ("{\"schema\":\"plumb/tree/1\",\"tree\":{\"a\":[\"hex\",\"0\"]}}", "not a recording"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = RecordedTree::load(&file).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn every_file_can_be_taken_away() {
        let mut tree = small();
        for path in tree.paths() {
            tree.remove(&path);
        }
        assert_eq!(tree.paths(), Vec::<String>::new());
    }
}
