//! Safety rules: decide from the facts about a target what may be done with it. Pure functions; no other
//! module decides.
//!
//! | found | to read | to write |
//! |---|---|---|
//! | nothing | error | created, if a size is given |
//! | directory, character device, ... | error | error |
//! | file of a kernel file system (/proc, /sys, configfs, debugfs, tracefs, cgroup, ...) | no | no |
//! | file created by plumb, without a signature | yes | yes |
//! | any other file without a signature | yes | `--overwrite` or `--destroy PATH` |
//! | file that has a signature, is behind a loop device, or has unknown uses | yes | `--destroy PATH` |
//! | block device without a sign of use | yes | `--overwrite` or `--destroy ID` |
//! | block device that is mounted, held, behind a loop device, or has a signature | yes | `--destroy ID` |
//! | block device that is read-only, or has unknown uses | yes | no |
//! | active swap space, file or device | yes | no: the kernel refuses each write (ETXTBSY), and the contents are the memory of running programs |
//! | file from which plumb serves a drive or a cache, or part of a file or device from which it serves a cache | yes | no |
//!
//! A part of a file or device is judged by the uses that extend into the part and by the signatures of the
//! whole, except the logs of caches in other parts.
//!
//! Storage below a target counts as the target ([`plumb_linux::inventory::Storage`]): a loop device over a
//! mounted device, part of a file in use, swap space or the medium of a drive is itself in use.
//!
//! Signatures are those that [`crate::signature`] knows, and those that blkid(8) reports where it is
//! installed.
//!
//! A device to be cached keeps its contents, so only the log of another cache prevents its use; that requires
//! `--destroy`. The marker decides which cache a device needs ([`crate::cache`]).
//!
//! Changing the length of a file is a write, even if the file is then only read. A file created by plumb in
//! which somebody has since made a file system is judged as any other file, regardless of its mark.

use plumb_block::Bytes;
use plumb_text::shell_word;

use crate::error::{Error, Kind, Result};
use crate::facts::{BlockFacts, Contents, FileFacts, FoundObject, Missing, Use};
use crate::permission::{Intent, Permission};

/// Access allowed by the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedAccess {
    /// Open read-only.
    Read,
    /// Open for writing.
    Write {
        /// True to claim a block device exclusively; false if the user permits destroying it while it is
        /// in use.
        exclusive: bool,
    },
    /// Create a file of this size.
    Make(Bytes),
    /// Change the length of the file to this size, then read or write it.
    Resize(Bytes),
}

/// Judges the access to `target`, its name in messages.
///
/// # Errors
/// The refusal, with finding and remedy.
pub fn judge(
    target: &str,
    found: &FoundObject,
    intent: Intent,
    permission: &Permission,
) -> Result<AllowedAccess> {
    match found {
        FoundObject::Missing(missing) => judge_missing(target, missing, intent, permission),
        FoundObject::Directory => Err(Error::usage(
            target,
            "it is a directory",
            "name a file in it, or give a size for a test file there",
        )),
        FoundObject::Other(what) => {
            Err(Error::usage(target, format!("it is a {what}"), "name a file or a block device"))
        }
        FoundObject::Kernel(system) => Err(kernel_file(target, system)),
        FoundObject::File(file) => judge_file(target, file, intent, permission),
        FoundObject::Block(block) => judge_block(target, block, intent, permission),
    }
}

fn judge_missing(
    target: &str,
    missing: &Missing,
    intent: Intent,
    permission: &Permission,
) -> Result<AllowedAccess> {
    let give = format!("give {} to have it made", permission.size_words);
    let none = |found: &str, remedy: &str| Err(Error::new(Kind::NotFound, target, found, remedy));
    if let (Missing::CanBeMade, Some(part)) = (missing, intent.part) {
        let make = format!("make it first, `fallocate -l {}` or longer", part.range().end);
        return none("there is no such file, so no part of it can be used", &make);
    }
    match (missing, intent.size) {
        (Missing::NoDirectory, _) => none("there is no such directory", "make it, or name another place"),
        (Missing::DanglingLink, _) => none(
            "it is a link that leads nowhere, or to a file without a name",
            "remove the link, or name a file",
        ),
        (Missing::InDev, _) => {
            none("there is no such device", "`plumb survey --all` lists those that there are")
        }
        (Missing::CanBeMade, Some(Bytes(0))) => {
            Err(Error::usage(target, "a file of no bytes cannot be measured", "name a size above 0"))
        }
        (Missing::CanBeMade, Some(size)) => Ok(AllowedAccess::Make(size)),
        (Missing::CanBeMade, None) if intent.writes => {
            Err(Error::usage(target, "there is no such file", give))
        }
        (Missing::CanBeMade, None) => none("there is no such file", &format!("check the name, or {give}")),
    }
}

fn judge_file(
    target: &str,
    file: &FileFacts,
    intent: Intent,
    permission: &Permission,
) -> Result<AllowedAccess> {
    let other = intent.size.filter(|size| *size > file.size || (intent.cuts && *size < file.size));
    if file.size == Bytes(0) && other.is_none() {
        let give = format!("give {} to have it made longer", permission.size_words);
        return Err(Error::usage(target, "the file is empty", give));
    }
    if let (Some(size), Some(part)) = (other, intent.part) {
        let found = format!("the part has {} bytes, but {} were requested", part.length, size.0);
        return Err(Error::usage(target, found, "name a larger part, or a size that it has"));
    }
    let allowed = match (other, intent.writes) {
        (Some(size), _) => AllowedAccess::Resize(size),
        (None, true) => AllowedAccess::Write { exclusive: false },
        (None, false) => return Ok(AllowedAccess::Read),
    };
    never_written(target, &file.uses)?;
    if permission.destroys(&file.identities) {
        return Ok(allowed);
    }
    let mut found = signs(&file.contents, &file.uses);
    if !found.is_empty() || file.unseen.is_some() {
        found.extend(file.unseen.as_ref().map(|unseen| unseen_words(unseen)));
        if (file.made_by_plumb || file.changed_since_made) && file.contents != Contents::BLANK {
            found.insert(0, "plumb made this file, but somebody has used it since".to_owned());
        }
        let remedy = how_to_destroy(&file.uses, &file.contents, &file.identities);
        let remedy = with_erasing(&file.contents, file.identities.first(), remedy);
        return Err(Error::refused(target, found.join(", "), remedy));
    }
    if file.made_by_plumb || permission.overwrite {
        return Ok(allowed);
    }
    let mut found = vec!["it is a file that plumb did not make".to_owned()];
    found.extend(other.map(|size| match (file.size.to_string(), size.to_string()) {
        (has, needed) if has == needed => format!("it has {} bytes, but {} are needed", file.size.0, size.0),
        (has, needed) => format!("it has {has}, but {needed} are needed"),
    }));
    if file.changed_since_made {
        found[0] = "plumb made this file, but somebody has used it since".to_owned();
    }
    Err(Error::refused(
        target,
        found.join(", "),
        "if its contents may be lost, add --overwrite; otherwise name another file",
    ))
}

fn judge_block(
    target: &str,
    block: &BlockFacts,
    intent: Intent,
    permission: &Permission,
) -> Result<AllowedAccess> {
    if let Some(size) = intent.size.filter(|size| *size > block.size) {
        let what = if intent.part.is_some() { "part" } else { "device" };
        let found = format!("the {what} has {} bytes, but {} were requested", block.size.0, size.0);
        return Err(Error::usage(target, found, "name a size that it has"));
    }
    if !intent.writes {
        return Ok(AllowedAccess::Read);
    }
    if let Some(unseen) = &block.unseen {
        return Err(Error::refused(
            target,
            unseen_words(unseen),
            "run where /proc and /sys are those of the machine",
        ));
    }
    if block.read_only {
        // Kernel names contain no colon; the name of an export is its URI.
        let remedy = match block.kernel_name.contains(':') {
            true => "have its server export it for writing, if it may be written".to_owned(),
            false => format!("`blockdev --setrw {}` where it may be written", shell_word(&block.node())),
        };
        return Err(Error::refused(target, "the device is read-only", remedy));
    }
    never_written(target, &block.uses)?;
    let found = signs(&block.contents, &block.uses);
    let in_use = !block.uses.is_empty();
    if permission.destroys(&block.identities) {
        return Ok(AllowedAccess::Write { exclusive: !in_use });
    }
    if !found.is_empty() {
        let node = (!block.kernel_name.contains(':')).then(|| block.node()).filter(|_| block.uses.is_empty());
        let remedy = how_to_destroy(&block.uses, &block.contents, &block.identities);
        let remedy = with_erasing(&block.contents, node.as_ref(), remedy);
        return Err(Error::refused(target, found.join(", "), remedy));
    }
    if !permission.overwrite {
        let found = "it is a block device, and all that is on it would be overwritten";
        return Err(Error::refused(
            target,
            found,
            "if its contents may be lost, add --overwrite; otherwise name a file",
        ));
    }
    Ok(AllowedAccess::Write { exclusive: true })
}

/// Refuses a device to be cached that holds the log of another cache, which may have the only copy of written
/// data, unless the user permits destroying it.
///
/// # Errors
/// The refusal.
pub fn judge_cached(
    target: &str,
    contents: &Contents,
    identities: &[String],
    permission: &Permission,
) -> Result<()> {
    if !contents.is_of_a_log() || permission.destroys(identities) {
        return Ok(());
    }
    Err(Error::refused(target, signs(contents, &[]).join(", "), how_to_destroy(&[], contents, identities)))
}

/// Returns the descriptions of contents and uses that argue against writing.
pub fn signs(contents: &Contents, uses: &[Use]) -> Vec<String> {
    let mut signs: Vec<String> = uses.iter().map(ToString::to_string).collect();
    if *contents != Contents::BLANK {
        signs.insert(0, format!("it holds {contents}"));
    }
    signs
}

/// Returns the command that detaches the loop device `by` from its file.
pub fn detaching(by: &str) -> String {
    format!("losetup -d {}", shell_word(&format!("/dev/{by}")))
}

/// Refuses uses that `--destroy` cannot override: active swap space, and files and devices from which a drive
/// or a cache is served.
///
/// # Errors
/// The refusal.
pub fn never_written(target: &str, uses: &[Use]) -> Result<()> {
    let remedy = |one: &Use| {
        match one {
        Use::Swap { device } if device == "the file" => Some("run swapoff on it first".to_owned()),
        Use::Swap { device } if device.starts_with('/') => Some(format!("run `swapoff {}` first", shell_word(device))),
        Use::Swap { device } => {
            Some(format!("run `swapoff {}` first", shell_word(&format!("/dev/{device}"))))
        }
        Use::Locked { .. } => Some(
            "stop what has locked it (`plumb cache status`, `plumb drive status`); --destroy cannot override that"
                .to_owned(),
        ),
        Use::Mounted { .. } | Use::Held { .. } | Use::Loop { .. } => None,
    }
    };
    match uses.iter().find_map(|one| Some((one, remedy(one)?))) {
        Some((found, remedy)) => Err(Error::refused(target, found.to_string(), remedy)),
        None => Ok(()),
    }
}

/// Creates the refusal of a file of a kernel file system, such as /proc.
pub fn kernel_file(target: &str, system: &str) -> Error {
    let found = format!("it is a file of the kernel ({system}), which stores nothing");
    Error::refused(target, found, "name a file on a disk, or a block device")
}

/// Returns the finding for a target whose uses cannot be determined, for the reason `unseen`.
pub fn unseen_words(unseen: &str) -> String {
    format!("what uses it cannot be seen: {unseen}")
}

pub(crate) fn how_to_destroy(uses: &[Use], contents: &Contents, identities: &[String]) -> String {
    let first = match uses.first() {
        Some(Use::Mounted { .. }) => "unmount it, or name another target",
        Some(Use::Swap { .. }) => "run swapoff, or name another target",
        Some(Use::Held { .. }) => "remove what uses it, or name another target",
        Some(Use::Loop { by, .. }) => &format!("detach it ({}), or name another target", detaching(by)),
        Some(Use::Locked { .. }) => "stop what has locked it, or name another target",
        None if contents.is_of_a_cache() => {
            "take the cache out first (`plumb cache status`, `plumb cache detach`), or name another target"
        }
        None => "name another target",
    };
    match identities.first() {
        Some(identity) => {
            format!("{first}; only if everything on it may be lost, add --destroy {}", shell_word(identity))
        }
        None => first.to_owned(),
    }
}

/// Returns `remedy`, with the command that erases `path` if only copies of superblocks remain there, which
/// wipefs(8) does not find.
fn with_erasing(contents: &Contents, path: Option<&String>, remedy: String) -> String {
    let (Some(places), Some(path)) = (contents.only_copies(), path) else { return remedy };
    let sector = 512;
    let erase = |at: &u64| {
        let seek = at / sector;
        format!(
            "`dd if=/dev/zero of={} bs={sector} seek={seek} count=1 conv=notrunc,fsync`",
            shell_word(path)
        )
    };
    let commands: Vec<String> = places.iter().map(erase).collect();
    format!("if that is a leftover, erase it with {}; otherwise {remedy}", commands.join(" and "))
}

/// Checks that each value of `--destroy` names one of the targets, given by name and identities.
///
/// # Errors
/// The refusal, with the value and the identities of the targets.
pub fn each_word_names_a_target(permission: &Permission, targets: &[(&str, &[String])]) -> Result<()> {
    for typed in &permission.destroy {
        if !targets.iter().any(|(_, identities)| Permission::is_one_of(typed, identities)) {
            let called = |(target, identities): &(&str, &[String])| {
                let identity =
                    identities.first().map_or_else(|| "nothing".to_owned(), |word| shell_word(word));
                format!("{identity} for {target}")
            };
            let called: Vec<String> = targets.iter().map(called).collect();
            let found = "it names none of the targets, and nothing was written";
            let remedy = format!("give {}", called.join(", "));
            return Err(Error::refused(&format!("--destroy {}", shell_word(typed)), found, remedy));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
