//! Mount options that affect the durability of a sync or an O_DIRECT write, each with the file that it was
//! read from.

use plumb_linux::tree::mountinfo::Mount;
use plumb_text::shell_word;

use super::file_system::EXT4_SYSTEMS;
use super::mounts::MOUNTINFO;
use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::SYNC_OPTION;

/// Options that suppress a file system's flushes. ext4, btrfs, f2fs, gfs2, nilfs2: `nobarrier`; ext3 and old
/// ext4: `barrier=0`; reiserfs: `barrier=none`; f2fs: `fsync_mode=nobarrier`; cifs: `nostrictsync` (fsync
/// sends no SMB FLUSH). xfs lost `nobarrier` in Linux 4.19.
const BARRIERS_OFF: [&str; 6] =
    ["nobarrier", "barrier=0", "barrier=none", "barrier=off", "fsync_mode=nobarrier", "nostrictsync"];

/// Options that weaken the order between data and metadata but omit no flush: ext4(5).
const LAX_ORDER: [&str; 2] = ["data=writeback", "journal_async_commit"];

/// Options that sync calls before they return: mount(8).
const SYNCHRONOUS: [&str; 2] = [SYNC_OPTION, "dirsync"];

/// An option in force.
struct MountOption {
    /// File that lists the option.
    source: String,
    /// Option as listed: `data=journal`.
    text: String,
}

impl Surveyor<'_> {
    /// Records the options of the file system `node`, whose devices are known, and their consequences.
    pub(super) fn options(&self, node: &mut Node, mount: &Mount) {
        let listed = self.ext_options(node, mount);
        // The mount table omits options set in the superblock of an ext3 or ext4.
        let complete = !listed.is_empty() || !matches!(mount.kind.as_str(), "ext3" | "ext4");
        let mut options: Vec<MountOption> = Vec::new();
        let of_mount = mount.options.iter().filter(|option| SYNCHRONOUS.contains(&option.as_str()));
        let shown = mount.super_options.iter().chain(of_mount);
        let shown = shown.map(|text| MountOption { source: MOUNTINFO.to_owned(), text: text.clone() });
        for option in shown.chain(listed) {
            if !is_set(&options, &option.text) {
                options.push(option);
            }
        }
        self.fast_commits(node, mount);
        for option in &options {
            record(node, option, &self.remount_of(mount));
        }
        let overwrites = matches!(mount.kind.as_str(), "ext2" | "ext3" | "ext4" | "xfs");
        if overwrites && complete && !is_set(&options, "data=journal") {
            node.mark(Mark::DirectInPlace);
        }
    }

    fn remount_of<'m>(&self, mount: &'m Mount) -> Remount<'m> {
        let enter = self.namespace_of(mount).map(|process| format!("nsenter --target {process} --mount "));
        Remount { kind: &mount.kind, enter: enter.unwrap_or_default(), point: shell_word(&mount.point) }
    }

    /// Records fast commits, which are not in the mount table (fs/ext4/fast_commit.c, ext4_fc_info_show).
    fn fast_commits(&self, node: &mut Node, mount: &Mount) {
        let Some(device) = node.below.first().filter(|_| mount.kind == "ext4") else { return };
        let file = format!("{EXT4_SYSTEMS}/{device}/fc_info");
        let text = self.tree.text(&file).unwrap_or_default();
        let count = text.lines().find_map(|line| line.trim().strip_suffix(" commits")?.parse::<u64>().ok());
        if let Some(count) = count.filter(|count| *count > 0) {
            let means = "fast_commit: a sync of a small change writes a few blocks of the journal in place of a whole \
                         commit, with the same flush";
            node.saw(file, format!("{count} commits"), means);
        }
    }

    /// Returns all options of a mounted ext2, ext3 or ext4, including defaults: fs/ext4/sysfs.c. The ext4
    /// driver serves all three and keeps their files in one directory; a separate ext2 driver has none.
    fn ext_options(&self, node: &Node, mount: &Mount) -> Vec<MountOption> {
        let Some(device) = node.below.first() else { return Vec::new() };
        if !matches!(mount.kind.as_str(), "ext2" | "ext3" | "ext4") {
            return Vec::new();
        }
        let source = format!("{EXT4_SYSTEMS}/{device}/options");
        let text = self.tree.text(&source).unwrap_or_default();
        text.lines().map(|text| MountOption { source: source.clone(), text: text.to_owned() }).collect()
    }
}

fn is_set(options: &[MountOption], text: &str) -> bool {
    options.iter().any(|option| option.text == text)
}

/// Parts of the commands that remount a file system.
struct Remount<'a> {
    kind: &'a str,
    /// Prefix of each command: empty, or a command that enters the mount namespace of a process.
    enter: String,
    /// Mount point, quoted for a shell.
    point: String,
}

/// Adds evidence and a mark if the option matters.
fn record(node: &mut Node, option: &MountOption, mount: &Remount<'_>) {
    let MountOption { source, text } = option;
    match text.as_str() {
        off if BARRIERS_OFF.contains(&off) => {
            node.saw(source, text, "the file system issues no flush");
            node.mark(Mark::BarriersOff { option: text.clone(), restore: restore(off, mount) });
        }
        lax if LAX_ORDER.contains(&lax) => {
            node.saw(source, text, "order between data and metadata is given up");
            node.mark(Mark::LaxOrder { option: text.clone() });
        }
        "noauto_da_alloc" => {
            node.saw(source, text, "a file that replaces another is not written out by itself");
            node.mark(Mark::ReplacesUnsynced { option: text.clone() });
        }
        "barrier" => node.saw(source, text, "a sync issues flushes"),
        "data=journal" => {
            node.saw(source, text, "data goes through the journal, and O_DIRECT through the page cache");
        }
        synchronous if SYNCHRONOUS.contains(&synchronous) => {
            let what = if text == SYNC_OPTION { "write" } else { "change of a directory" };
            node.saw(source, text, format!("every {what} is synced before its call returns"));
            node.mark(Mark::Synchronous { option: text.clone() });
        }
        _ => {}
    }
}

/// Returns the command that enables flushes of the file system of `mount` again. f2fs has `barrier` since
/// Linux 6.1; cifs ignores a remount.
fn restore(option: &str, mount: &Remount<'_>) -> String {
    let Remount { kind, enter, point } = mount;
    let on = match (option, *kind) {
        ("fsync_mode=nobarrier", _) => "fsync_mode=posix",
        ("barrier=none", _) => "barrier=flush",
        ("nostrictsync", _) => {
            return format!("{enter}umount {point} && {enter}mount -o strictsync {point}");
        }
        (_, "ocfs2") => "barrier=1",
        _ => "barrier",
    };
    format!("{enter}mount -o remount,{on} {point}")
}
