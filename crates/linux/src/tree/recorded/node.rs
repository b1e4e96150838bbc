//! An entry of a recorded tree, and its JSON format.

use std::collections::BTreeMap;
use std::fmt;

use plumb_block::Errno;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::tree::Absence;
use plumb_state::hex;

/// Maximum depth, larger than in any path of the kernel; prevents hostile recordings from exhausting the
/// stack.
const DEPTH_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node(Content);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Directory(BTreeMap<Box<str>, Node>),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    Link(Box<str>),
    Absent(Absence),
    /// Name that appeared in a listing but was never read.
    Unread,
}

impl Node {
    pub(super) fn directory() -> Self {
        Self(Content::Directory(BTreeMap::new()))
    }

    pub(super) fn file(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self(Content::Text(text.into())),
            Err(_) => Self(Content::Bytes(bytes.into())),
        }
    }

    pub(super) fn link(target: &str) -> Self {
        Self(Content::Link(target.into()))
    }

    pub(super) fn unread() -> Self {
        Self(Content::Unread)
    }

    pub(super) fn absence(absence: Absence) -> Option<Self> {
        match absence {
            Absence::Denied | Absence::Failed(_) => Some(Self(Content::Absent(absence))),
            Absence::NotThere | Absence::NotRecorded => None,
        }
    }

    pub(super) fn content(&self) -> &Content {
        &self.0
    }

    /// Returns the entry called `name`.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        match &self.0 {
            Content::Directory(entries) => entries.get(name),
            _ => None,
        }
    }

    /// Returns the node at `path`, which must not contain links.
    pub(super) fn at(&self, path: &str) -> Option<&Self> {
        parts(path).try_fold(self, |node, name| node.child(name))
    }

    /// Puts `new` at `path` and creates the directories above it. Known entries stay: a directory is not
    /// replaced, an unread name replaces nothing, and nothing is put behind a link.
    pub(super) fn put(&mut self, path: &str, new: Self) {
        let mut node = self;
        for part in parts(path).take(DEPTH_MAX) {
            match node.0 {
                Content::Directory(_) => {}
                // An entry behind a link is recorded at the link's target.
                Content::Link(_) => return,
                _ => node.0 = Content::Directory(BTreeMap::new()),
            }
            let Content::Directory(entries) = &mut node.0 else { return };
            node = entries.entry(part.into()).or_insert_with(Self::unread);
        }
        if !matches!(node.0, Content::Directory(_)) && (new.0 != Content::Unread) {
            *node = new;
        }
    }

    pub(super) fn remove(&mut self, path: &str) {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut node = self;
        for part in parts(parent) {
            let Content::Directory(entries) = &mut node.0 else { return };
            let Some(next) = entries.get_mut(part) else { return };
            node = next;
        }
        if let Content::Directory(entries) = &mut node.0 {
            entries.remove(name);
        }
    }

    /// Adds the paths of all entries below that are not directories.
    pub(super) fn walk(&self, at: &mut String, paths: &mut Vec<String>) {
        let Content::Directory(entries) = &self.0 else {
            if self.0 != Content::Unread {
                paths.push(at.clone());
            }
            return;
        };
        for (name, node) in entries {
            let length = at.len();
            at.push('/');
            at.push_str(name);
            node.walk(at, paths);
            at.truncate(length);
        }
    }
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Content::Directory(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (name, node) in entries {
                    map.serialize_entry(name, node)?;
                }
                map.end()
            }
            Content::Text(text) => serializer.serialize_str(text),
            Content::Bytes(bytes) => ("hex", hex::encode(bytes)).serialize(serializer),
            Content::Link(target) => ("link", target).serialize(serializer),
            Content::Absent(Absence::Failed(errno)) => ("errno", errno.0).serialize(serializer),
            Content::Absent(_) => ["denied"].serialize(serializer),
            Content::Unread => serializer.serialize_unit(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a directory {}, a text, null, or [\"link\"|\"hex\"|\"errno\"|\"denied\", ...]")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::unread())
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node(Content::Text(text.into())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((name, node)) = map.next_entry::<Box<str>, Node>()? {
            entries.insert(name, node);
        }
        Ok(Node(Content::Directory(entries)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let tag: String = seq.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let missing = || A::Error::invalid_length(1, &NodeVisitor);
        let content = match tag.as_str() {
            "link" => Content::Link(seq.next_element::<Box<str>>()?.ok_or_else(missing)?),
            "hex" => {
                let digits: String = seq.next_element()?.ok_or_else(missing)?;
                Content::Bytes(hex::decode(&digits).map_err(A::Error::custom)?.into())
            }
            "errno" => Content::Absent(Absence::Failed(Errno(seq.next_element()?.ok_or_else(missing)?))),
            "denied" => Content::Absent(Absence::Denied),
            other => return Err(A::Error::unknown_variant(other, &["link", "hex", "errno", "denied"])),
        };
        Ok(Node(content))
    }
}
