//! Tree of files in a state, in memory and in a directory.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use plumb_block::Bytes;

use super::layout::{ContentOf, Index, Inode, Object};
use crate::recording::{Content, Contents};

/// Permissions of a directory while it is filled.
const OPEN_DIRECTORY: u32 = 0o700;

/// Files, directories and symbolic links by their paths, which are relative to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Nodes by path. A directory precedes its entries.
    pub nodes: BTreeMap<PathBuf, Node>,
    /// Size of a block of the files.
    pub block: Bytes,
}

/// One name in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// Directory with these permissions.
    Directory(u32),
    /// Symbolic link to this path.
    Link(PathBuf),
    /// Name of a file.
    File(FileContents),
}

/// File in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContents {
    /// Number of the file. All names of one file have the same.
    pub inode: Inode,
    /// Permissions of the file.
    pub mode: u32,
    /// Size of the file.
    pub size: Bytes,
    /// Blocks that are not zeroes, by their numbers, in order.
    pub blocks: Vec<(u64, Content)>,
}

impl Index {
    /// Returns the tree of a state; `content` returns the content of each block of the drive.
    pub fn tree(&self, contents: &Contents, block: Bytes, content: ContentOf<'_>) -> Tree {
        let mut nodes = BTreeMap::new();
        let walked = self.walk(contents, content, &mut |path, inode, content| {
            let node = match self.layout.object(inode) {
                Some(Object::Directory(mode)) => Node::Directory(*mode),
                Some(Object::Link(target)) => Node::Link(target.clone()),
                Some(Object::File(mode)) => {
                    let size = self.size(inode, contents, content);
                    let blocks = self.blocks(inode, size, block, content);
                    Node::File(FileContents { inode, mode: *mode, size: Bytes(size), blocks })
                }
                None => return Ok::<(), Infallible>(()),
            };
            nodes.insert(path.to_owned(), node);
            Ok(())
        });
        walked.unwrap_or_else(|never| match never {});
        Tree { nodes, block }
    }
}

impl Tree {
    /// Creates the tree in an empty directory, without syncing it.
    ///
    /// # Errors
    /// Those of mkdir(2), open(2), write(2), link(2), symlink(2) and chmod(2).
    pub fn make_in(&self, directory: &Path, contents: &Contents) -> io::Result<()> {
        let mut made: HashMap<Inode, PathBuf> = HashMap::new();
        for (path, node) in &self.nodes {
            let path = directory.join(path);
            match node {
                Node::Directory(_) => {
                    fs::create_dir(&path)?;
                    fs::set_permissions(&path, Permissions::from_mode(OPEN_DIRECTORY))?;
                }
                Node::Link(target) => symlink(target, &path)?,
                Node::File(file) => match made.get(&file.inode) {
                    Some(first) => fs::hard_link(first, &path)?,
                    None => {
                        self.make_file(file, &path, contents)?;
                        made.insert(file.inode, path);
                    }
                },
            }
        }
        // Innermost directories first: a directory may deny access to its owner.
        for (path, node) in self.nodes.iter().rev() {
            if let Node::Directory(mode) = node {
                fs::set_permissions(directory.join(path), Permissions::from_mode(*mode))?;
            }
        }
        Ok(())
    }

    fn make_file(&self, of: &FileContents, path: &Path, contents: &Contents) -> io::Result<()> {
        let file = File::create_new(path)?;
        let mut length = 0;
        for (number, content) in &of.blocks {
            let at = number * self.block.0;
            let bytes = contents.bytes(*content);
            let within = (of.size.0 - at).min(bytes.len() as u64) as usize;
            file.write_all_at(&bytes[..within], at)?;
            length = at + within as u64;
        }
        if length != of.size.0 {
            file.set_len(of.size.0)?;
        }
        file.set_permissions(Permissions::from_mode(of.mode))
    }
}
