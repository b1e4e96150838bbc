//! Roles of the blocks of a drive: the file that owns each block, or the part of the file system that it
//! belongs to.
//!
//! Blocks of files and directories come from FIEMAP, the rest from the file system's own layout: `dumpe2fs`
//! and `debugfs` for ext4, the superblock for XFS (Documentation/filesystems/xfs, section "Superblocks"), the
//! chunk tree for btrfs, whose FIEMAP returns logical addresses.
//!
//! Limitations: the roles describe the layout at one moment. Blocks of files removed earlier are unknown, and
//! so are blocks of XFS other than the log and the headers of the allocation groups. Without the tool of a
//! file system its part is unknown.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_linux::{child, extents};

use crate::file_system::FileSystem;
use crate::posix::{Inode, Layout, Spot};
use crate::recording::{Event, Recording};

/// Offsets of the superblocks of btrfs, and the length of each.
const BTRFS_SUPERBLOCKS: ([u64; 2], u64) = ([64 << 10, 64 << 20], 4096);

/// Role of each range of bytes of a drive, and the file that owns it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    /// By first byte: the byte after the last one, the file relative to the mount, and the role.
    ranges: BTreeMap<u64, (u64, Option<PathBuf>, String)>,
}

impl Roles {
    /// Reads the roles of the file system on `device` that is mounted at `mount`. Recently written data is
    /// known only after a sync.
    pub fn new(mount: &Path, device: &Path, file_system: FileSystem) -> Self {
        Self::without(mount, device, file_system, &[])
    }

    /// Reads the roles as [`new`](Self::new) does, except for these names in the root directory, at which
    /// other drives are mounted.
    pub(crate) fn without(mount: &Path, device: &Path, file_system: FileSystem, except: &[&Path]) -> Self {
        let mut roles = Self::default();
        let mut chunks = Vec::new();
        match file_system {
            FileSystem::None | FileSystem::Posix | FileSystem::PosixGarbage => return roles,
            // Only files are known, from FIEMAP.
            FileSystem::F2fs => {}
            FileSystem::Ext4 => roles.ext4(device),
            // Without a readable superblock the layout is unknown.
            FileSystem::Xfs => roles.xfs(device).unwrap_or_default(),
            FileSystem::Btrfs => chunks = roles.btrfs(device),
        }
        roles.file(mount, Path::new(""), "directory", &chunks);
        for entry in std::fs::read_dir(mount).into_iter().flatten().flatten() {
            if !except.contains(&Path::new(&entry.file_name())) {
                roles.files(mount, Path::new(&entry.file_name()), &chunks);
            }
        }
        roles
    }

    /// Returns the use of the byte at `offset` of the drive: the file that owns it, relative to the mount,
    /// and its role: `data`, `directory`, `journal`, `inode table`, `superblock`, `log`, `tree`... `None` if
    /// unknown.
    pub fn role(&self, offset: u64) -> (Option<&Path>, Option<&str>) {
        let range = self.ranges.range(..=offset).next_back().map(|(_, range)| range);
        range
            .filter(|(end, ..)| offset < *end)
            .map_or((None, None), |(_, file, role)| (file.as_deref(), Some(role.as_str())))
    }

    /// Returns the longest range of a drive of `size` bytes without a known role.
    pub fn longest_gap(&self, size: u64) -> Range<u64> {
        let (mut longest, mut begin) = (0..0, 0);
        let known = self.ranges.iter().map(|(start, (end, ..))| (*start, *end));
        for (start, end) in known.chain([(size, size)]) {
            if start.min(size).saturating_sub(begin) > longest.end - longest.start {
                longest = begin..start.min(size);
            }
            begin = begin.max(end);
        }
        longest
    }

    /// Returns the roles of the blocks of a [`Layout`] before an event of its recording. A file has the name
    /// of that moment, or its last one.
    pub fn of_layout(layout: &Layout, recording: &Recording, event: usize) -> Self {
        let mut names: BTreeMap<Inode, (Inode, PathBuf)> = BTreeMap::new();
        for (_, happened) in recording.events.iter().take(event) {
            let Event::Submitted(id) = happened else { continue };
            let command = &recording.commands[id.0 as usize];
            let Some(Spot::Entry(directory, name)) = layout.spots.get(command.range.lba.0 as usize) else {
                continue;
            };
            if let Some(inode) = layout.inode_in(&recording.contents, command.content(command.range.lba.0)) {
                names.insert(inode, (*directory, name.into()));
            }
        }
        let path = |inode: Inode| {
            let (mut path, mut at) = (PathBuf::new(), inode);
            // A directory that was moved below another one has only one name at a time.
            for _ in 0..names.len() {
                let Some((directory, name)) = names.get(&at) else { break };
                path = if path.as_os_str().is_empty() { name.clone() } else { name.join(path) };
                at = *directory;
            }
            path
        };
        let mut roles = Self::default();
        let block = recording.logical_block.0;
        for (place, spot) in (0..).zip(&layout.spots) {
            let (file, role) = match spot {
                Spot::Data(inode, _) => (path(*inode), "data"),
                Spot::Size(inode) => (path(*inode), "size"),
                Spot::Entry(directory, name) => (path(*directory).join(name), "name"),
            };
            roles.add(place * block, block, Some(&file), role);
        }
        roles
    }

    fn add(&mut self, start: u64, length: u64, file: Option<&Path>, role: &str) {
        if length > 0 {
            let end = start.saturating_add(length);
            self.ranges.insert(start, (end, file.map(Path::to_owned), role.to_owned()));
        }
    }

    /// Adds a file, or a directory and all files below it. Files that cannot be opened, or disappear
    /// meanwhile, are skipped.
    fn files(&mut self, mount: &Path, name: &Path, chunks: &[Chunk]) {
        let path = mount.join(name);
        match std::fs::symlink_metadata(&path).map(|metadata| metadata.file_type()) {
            Ok(kind) if kind.is_dir() => self.file(&path, name, "directory", chunks),
            Ok(kind) if kind.is_file() => return self.file(&path, name, "data", chunks),
            _ => return,
        }
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            self.files(mount, &name.join(entry.file_name()), chunks);
        }
    }

    fn file(&mut self, path: &Path, name: &Path, role: &str, chunks: &[Chunk]) {
        let placed = File::open(path).and_then(|file| extents::on_device(file.as_fd()));
        for Range { start, end } in placed.unwrap_or_default() {
            let chunk = chunks.iter().find(|chunk| chunk.logical.contains(&start));
            let copies = chunk.map_or(vec![start], |chunk| {
                chunk.physical.iter().map(|physical| physical + (start - chunk.logical.start)).collect()
            });
            for copy in copies {
                self.add(copy, end - start, Some(name), role);
            }
        }
    }

    fn ext4(&mut self, device: &Path) {
        let layout = tool_output("dumpe2fs", &[], device);
        let Some(block) =
            layout.lines().find_map(|line| line.strip_prefix("Block size:")?.trim().parse().ok())
        else {
            return;
        };
        // `  Primary superblock at 0, Group descriptors at 1-1`, `  Inode table at 41-1064 (+41)`.
        for part in layout.lines().filter(|line| line.starts_with("  ")).flat_map(|line| line.split(", ")) {
            let Some((name, place)) = part.trim().split_once(" at ") else { continue };
            let role = match name {
                "Primary superblock" | "Backup superblock" => "superblock".to_owned(),
                name => name.to_lowercase(),
            };
            self.blocks(place.split(' ').next().unwrap_or_default(), block, &role);
        }
        // `(0-9):15-24, (10-24):26-40`.
        let journal = tool_output("debugfs", &["-R", "stat <8>"], device);
        for part in journal.split_once("EXTENTS:").map_or("", |(_, extents)| extents).split(", ") {
            self.blocks(part.rsplit(':').next().unwrap_or_default().trim(), block, "journal");
        }
    }

    /// Parses blocks as `17` or `17-20`.
    fn blocks(&mut self, text: &str, block: u64, role: &str) {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        if let (Ok(first), Ok(last)) = (first.parse::<u64>(), last.parse::<u64>()) {
            self.add(first * block, (last + 1).saturating_sub(first) * block, None, role);
        }
    }

    fn xfs(&mut self, device: &Path) -> io::Result<()> {
        let mut superblock = [0; 512];
        File::open(device)?.read_exact_at(&mut superblock, 0)?;
        let number = |at: usize, length: usize| {
            superblock[at..at + length].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        if &superblock[..4] != b"XFSB" {
            return Ok(());
        }
        // sb_blocksize, sb_logstart, sb_agblocks, sb_agcount, sb_logblocks, sb_sectsize, sb_agblklog.
        let (block, log_start, group) = (number(4, 4), number(48, 8), number(84, 4));
        let (groups, log_blocks, sector, shift) =
            (number(88, 4), number(96, 4), number(102, 2), number(124, 1).min(63));
        for number in 0..groups {
            let start = number * group * block;
            self.add(start, sector, None, "superblock");
            self.add(start + sector, 3 * sector, None, "allocation group header");
        }
        let first = (log_start >> shift) * group + (log_start & ((1 << shift) - 1));
        if log_start > 0 {
            self.add(first * block, log_blocks * block, None, "log");
        }
        Ok(())
    }

    fn btrfs(&mut self, device: &Path) -> Vec<Chunk> {
        let (places, length) = BTRFS_SUPERBLOCKS;
        for place in places {
            self.add(place, length, None, "superblock");
        }
        let chunks = Chunk::parse_all(&tool_output(
            "btrfs",
            &["inspect-internal", "dump-tree", "-t", "chunk"],
            device,
        ));
        for chunk in chunks.iter().filter(|chunk| !chunk.is_data) {
            for physical in &chunk.physical {
                self.add(*physical, chunk.logical.end - chunk.logical.start, None, "tree");
            }
        }
        chunks
    }
}

/// Chunk of btrfs: a range of logical addresses, and the offsets of its copies on the only device.
#[derive(Debug, PartialEq, Eq)]
struct Chunk {
    logical: Range<u64>,
    physical: Vec<u64>,
    is_data: bool,
}

impl Chunk {
    /// From the lines of `btrfs inspect-internal dump-tree`:
    /// `item 1 key (FIRST_CHUNK_TREE CHUNK_ITEM 13631488) ...`,
    /// `length 8388608 owner 2 stripe_len 65536 type DATA|single`, `stripe 0 devid 1 offset 13631488`.
    fn parse_all(tree: &str) -> Vec<Self> {
        let mut chunks: Vec<Self> = Vec::new();
        for line in tree.lines().map(str::trim) {
            let words: Vec<&str> = line.split([' ', ')']).collect();
            let after = |word: &str| {
                let place = words.iter().position(|one| *one == word)?;
                words.get(place + 1)?.parse::<u64>().ok()
            };
            if let Some(start) = after("CHUNK_ITEM") {
                chunks.push(Self { logical: start..start, physical: Vec::new(), is_data: false });
            }
            let Some(chunk) = chunks.last_mut() else { continue };
            match words[0] {
                "length" => {
                    chunk.logical.end = chunk.logical.start + after("length").unwrap_or(0);
                    chunk.is_data = line.contains("type DATA");
                }
                "stripe" => chunk.physical.extend(after("offset")),
                _ => {}
            }
        }
        chunks
    }
}

/// Returns the output of a tool for a device; empty if the tool is missing or does not end.
fn tool_output(program: &str, arguments: &[&str], device: &Path) -> String {
    let mut command = Command::new(program);
    command.args(arguments).arg(device);
    let output = child::output(command);
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_is_that_of_which_nothing_is_known() {
        let mut roles = Roles::default();
        assert_eq!(roles.longest_gap(100), 0..100);
        roles.add(10, 20, None, "journal");
        roles.add(90, 10, Some(Path::new("f")), "data");
        assert_eq!(roles.longest_gap(100), 30..90);
        assert_eq!((roles.role(29), roles.role(30)), ((None, Some("journal")), (None, None)));
        assert_eq!(roles.role(99), (Some(Path::new("f")), Some("data")));
    }

    #[test]
    fn chunks_are_read_with_all_their_copies() {
        let tree = "\titem 3 key (FIRST_CHUNK_TREE CHUNK_ITEM 30408704) itemoff 15881 itemsize 112\n\t\tlength 33554432 owner 2 \
                    stripe_len 65536 type METADATA|DUP\n\t\tnum_stripes 2 sub_stripes 1\n\t\t\tstripe 0 devid 1 offset 38797312\n\
                    \t\t\tstripe 1 devid 1 offset 72351744\n";
        let chunk =
            Chunk { logical: 30_408_704..63_963_136, physical: vec![38_797_312, 72_351_744], is_data: false };
        assert_eq!(Chunk::parse_all(tree), [chunk]);
    }
}
