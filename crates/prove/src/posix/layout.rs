//! Meaning of the blocks of the drive that a [`Model`](super::Model) records, and the tree of files in a
//! state.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use plumb_block::Bytes;
use serde::{Deserialize, Serialize};

use crate::recording::{Content, Contents};

/// File, directory or symbolic link, by a number that is not reused. 0 means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Inode(pub(super) u64);

impl Inode {
    /// Root directory.
    pub const ROOT: Self = Self(1);
}

/// Part of a file system that survives or is lost independently.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spot {
    /// Block of a file, by its number in the file.
    Data(Inode, u64),
    /// Size of a file.
    Size(Inode),
    /// Entry of a directory.
    Entry(Inode, OsString),
}

impl Spot {
    /// Returns the file or directory that the spot belongs to.
    pub const fn inode(&self) -> Inode {
        match self {
            Self::Data(inode, _) | Self::Size(inode) | Self::Entry(inode, _) => *inode,
        }
    }
}

/// Kind of an inode, with the attributes that a cut cannot change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Object {
    /// File with these permissions.
    File(u32),
    /// Directory with these permissions.
    Directory(u32),
    /// Symbolic link to this path.
    Link(PathBuf),
}

/// Spots and inodes of a recording, by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// By block of the drive.
    pub spots: Vec<Spot>,
    /// By number, from 1.
    pub objects: Vec<Object>,
}

impl Layout {
    /// Returns the inode in the content of an entry; `None` for a removed entry.
    pub fn inode_in(&self, contents: &Contents, content: Content) -> Option<Inode> {
        Some(Inode(number(contents, content))).filter(|inode| self.object(*inode).is_some())
    }

    /// Returns the kind of an inode; `None` if there is no such inode.
    pub fn object(&self, inode: Inode) -> Option<&Object> {
        self.objects.get((inode.0 as usize).checked_sub(1)?)
    }
}

/// A [`Layout`] with its spots in the order needed for a walk.
#[derive(Debug, Clone, Default)]
pub struct Index {
    pub(crate) layout: Layout,
    places: BTreeMap<Spot, u64>,
}

/// Contents of a state, by block of the drive.
pub type ContentOf<'c> = &'c mut dyn FnMut(u64) -> Content;

/// Function that is called for each name in a tree.
pub(crate) type Visit<'v, E> = &'v mut dyn FnMut(&Path, Inode, ContentOf<'_>) -> Result<(), E>;

impl Index {
    /// Indexes the spots of a layout.
    pub fn new(layout: Layout) -> Self {
        let places = (0..).zip(&layout.spots).map(|(place, spot)| (spot.clone(), place)).collect();
        Self { layout, places }
    }

    /// Returns the block of the drive for a spot; `None` if the spot never changed.
    pub(crate) fn place(&self, spot: &Spot) -> Option<u64> {
        self.places.get(spot).copied()
    }

    /// Returns the block of the drive for a spot, allocated if necessary.
    pub(super) fn place_or_new(&mut self, spot: &Spot) -> u64 {
        if let Some(place) = self.place(spot) {
            return place;
        }
        let place = self.layout.spots.len() as u64;
        self.layout.spots.push(spot.clone());
        self.places.insert(spot.clone(), place);
        place
    }

    /// Returns the data blocks of a file from number `from` on, with their blocks of the drive, in order.
    pub(crate) fn data(&self, file: Inode, from: u64) -> impl Iterator<Item = (u64, u64)> {
        let range = self.places.range(Spot::Data(file, from)..=Spot::Data(file, u64::MAX));
        range.map(|(spot, place)| match spot {
            Spot::Data(_, number) => (*number, *place),
            Spot::Size(_) | Spot::Entry(..) => (u64::MAX, *place),
        })
    }

    /// Returns the entries of a directory, ordered by name.
    pub(super) fn entries(&self, directory: Inode) -> impl Iterator<Item = (&OsStr, u64)> {
        let from = Spot::Entry(directory, OsString::new());
        self.places.range(from..).map_while(move |(spot, place)| match spot {
            Spot::Entry(of, name) if *of == directory => Some((name.as_os_str(), *place)),
            _ => None,
        })
    }

    /// Calls `visit` for each name in the tree of a state, a directory before its entries.
    pub(crate) fn walk<E>(
        &self,
        contents: &Contents,
        content: ContentOf<'_>,
        visit: Visit<'_, E>,
    ) -> Result<(), E> {
        // No directory has two names, so there is no cycle; the limit ends the walk in any case.
        let depth_max = self.layout.objects.len();
        let mut open = vec![(Inode::ROOT, PathBuf::new())];
        while let Some((directory, path)) = open.pop() {
            for (name, place) in self.entries(directory) {
                let Some(inode) = self.layout.inode_in(contents, content(place)) else { continue };
                let path = path.join(name);
                visit(&path, inode, content)?;
                let is_directory = matches!(self.layout.object(inode), Some(Object::Directory(_)));
                if is_directory && path.components().count() <= depth_max {
                    open.push((inode, path));
                }
            }
        }
        Ok(())
    }

    /// Returns the size of a file in a state.
    pub(super) fn size(&self, file: Inode, contents: &Contents, content: ContentOf<'_>) -> u64 {
        self.place(&Spot::Size(file)).map_or(0, |place| number(contents, content(place)))
    }

    /// Returns the blocks of a file in a state that are not zeroes, by their numbers in the file.
    pub(super) fn blocks(
        &self,
        file: Inode,
        size: u64,
        logical_block: Bytes,
        content: ContentOf<'_>,
    ) -> Vec<(u64, Content)> {
        let end = size.div_ceil(logical_block.0);
        let below = self.data(file, 0).take_while(|(number, _)| *number < end);
        let blocks = below.map(|(number, place)| (number, content(place)));
        blocks.filter(|(_, content)| *content != Content::ZEROES).collect()
    }
}

/// Returns the number stored in the content of a size or of an entry.
pub(crate) fn number(contents: &Contents, content: Content) -> u64 {
    contents.bytes(content).iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
