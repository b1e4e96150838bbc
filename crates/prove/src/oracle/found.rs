//! Tree of files in a state, read from a directory or taken from the POSIX model, for the comparison.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::posix::{Node, Tree};
use crate::recording::{Content, Contents};

/// Files, directories and symbolic links by their paths, which are relative to the root.
pub(crate) struct FoundTree(pub(super) BTreeMap<PathBuf, FoundNode>);

/// Object behind a name in a [`FoundTree`].
pub(super) enum FoundNode {
    Directory,
    Link(PathBuf),
    File(FoundFile),
}

/// Size and contents of a file.
pub(super) struct FoundFile {
    pub(super) size: u64,
    data: FoundData,
}

enum FoundData {
    /// Bytes of the whole file.
    Read(Vec<u8>),
    /// Blocks that are not zeroes, by number, in order.
    Recorded(Vec<(u64, Content)>),
}

impl FoundTree {
    /// Reads a directory and everything below it.
    ///
    /// # Errors
    /// If something cannot be read.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let (mut nodes, mut open) = (BTreeMap::new(), vec![PathBuf::new()]);
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(root.join(&directory))? {
                let entry = entry?;
                let (kind, path) = (entry.file_type()?, directory.join(entry.file_name()));
                let node = if kind.is_dir() {
                    open.push(path.clone());
                    FoundNode::Directory
                } else if kind.is_symlink() {
                    FoundNode::Link(fs::read_link(entry.path())?)
                } else if kind.is_file() {
                    let bytes = fs::read(entry.path())?;
                    FoundNode::File(FoundFile { size: bytes.len() as u64, data: FoundData::Read(bytes) })
                } else {
                    continue;
                };
                nodes.insert(path, node);
            }
        }
        Ok(Self(nodes))
    }
}

impl From<&Tree> for FoundTree {
    fn from(tree: &Tree) -> Self {
        let nodes = tree.nodes.iter().map(|(path, node)| {
            let node = match node {
                Node::Directory(_) => FoundNode::Directory,
                Node::Link(target) => FoundNode::Link(target.clone()),
                Node::File(file) => FoundNode::File(FoundFile {
                    size: file.size.0,
                    data: FoundData::Recorded(file.blocks.clone()),
                }),
            };
            (path.clone(), node)
        });
        Self(nodes.collect())
    }
}

impl FoundFile {
    /// Returns the bytes of a block that are below the size.
    pub(super) fn block<'a>(&'a self, number: u64, block: u64, contents: &'a Contents) -> &'a [u8] {
        let start = number * block;
        let length = self.size.saturating_sub(start).min(block) as usize;
        match &self.data {
            FoundData::Read(bytes) => &bytes[start.min(self.size) as usize..][..length],
            FoundData::Recorded(blocks) => {
                let place = blocks.binary_search_by_key(&number, |(number, _)| *number);
                let content = place.map_or(Content::ZEROES, |place| blocks[place].1);
                &contents.bytes(content)[..length]
            }
        }
    }
}
