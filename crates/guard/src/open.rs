//! Opening of targets: locate, look, judge, claim, create, open.
//!
//! Steps, in this order for safety:
//! 1. Every target is located, examined and judged; descriptors are read-only.
//! 2. Each value of `--destroy` must name one of the targets.
//! 3. Block devices are claimed, and each target to be written is examined and judged again on the descriptor
//!    from step 1, with the claim held, so that the kernel refuses later users. Files are locked as their
//!    intent requires; files locked by a cache, a drive or another run are refused.
//! 4. Files are created or resized.
//! 5. All targets are opened as devices.
//!
//! Steps 1 to 3 write nothing. If step 4 or 5 fails, the changes of step 4 are undone.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use plumb_block::{Bytes, Caching, Clock, Time};
use plumb_linux::probe::LiveProbe;
use plumb_linux::range_lock::{self, LockKind};
use plumb_linux::tree::LiveTree;
use plumb_linux::{Access, FileOptions};
use rustix::fs::{FlockOperation, OFlags, flock, fstatfs};
use rustix::io::Errno;

use crate::byte_extent::ByteExtent;
use crate::error::{Error, Kind, Result};
use crate::facts::FoundObject;
use crate::locate::{LocatedName, locate};
use crate::look::{Key, Sight, facts, look, open_same};
use crate::machine::Machine;
use crate::make::Making;
use crate::name::Name;
use crate::network;
use crate::opened::{Node, OpenedTarget, Origin, Route, TargetKind, device};
use crate::permission::{Intent, Permission};
use crate::rules::{AllowedAccess, each_word_names_a_target, judge, signs};
use crate::shared::Claim;
use crate::storage::{PartOfFile, nobody_claims};
use crate::target_request::TargetRequest;
use crate::{simulated, test_file};

/// Opens one target, which must not be a cache.
///
/// # Errors
/// Fails as [`open_all`].
pub fn open(wanted: &TargetRequest, permission: &Permission, time: &Time) -> Result<OpenedTarget> {
    let opened = open_all(std::slice::from_ref(wanted), permission, time)?;
    opened.into_iter().next().ok_or_else(|| Error::usage(&wanted.name.to_string(), "it was not opened", ""))
}

/// Opens all targets, which must not be caches, in the given order, or none of them.
///
/// A file or device may occur more than once. Requests with equal options share one device; others get a
/// device of their own on the same target.
///
/// # Errors
/// The first refusal or failure; [`Kind::Unsupported`] for a cache. Nothing has been written then, and files
/// created on the way are removed.
pub fn open_all(wanted: &[TargetRequest], permission: &Permission, time: &Time) -> Result<Vec<OpenedTarget>> {
    open_beside(Vec::new(), wanted.iter().cloned().enumerate(), permission, time)
}

/// Opens the targets of a run that are not among `opened`, and returns all in order. Each of `opened` carries
/// its index in that order. Values of `--destroy` may name any of the targets.
///
/// # Errors
/// Fails as [`open_all`].
pub fn open_beside(
    opened: Vec<(usize, OpenedTarget)>,
    wanted: impl Iterator<Item = (usize, TargetRequest)>,
    permission: &Permission,
    time: &Time,
) -> Result<Vec<OpenedTarget>> {
    let (simulated, rest): (Vec<_>, Vec<_>) = wanted.partition(|(_, want)| simulated::is_meant(&want.name));
    let (remote, known): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|(_, want)| network::is_meant(&want.name));
    let (in_directories, known): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|(_, want)| test_file::directory_of(want).is_some());
    let (mut opened, clock) = (opened, time.clock());
    opened.extend(simulated::open_all(&simulated, time)?);
    opened.extend(network::open_all(&remote, permission, &clock)?);
    opened.extend(test_file::open_all(&in_directories, &clock)?);
    let (places, of_kernel): (Vec<usize>, Vec<TargetRequest>) = known.into_iter().unzip();
    opened.extend(places.into_iter().zip(open_nodes(&of_kernel, &opened, permission, &clock)?));
    opened.sort_by_key(|(place, _)| *place);
    Ok(opened.into_iter().map(|(_, opened)| opened).collect())
}

/// Checks that a result may replace the file at `path`: the file is not in use, not part of a cache or drive,
/// and bears no signature. Writes nothing.
///
/// # Errors
/// The refusal, which no option overrides.
pub fn may_be_replaced(path: &Path) -> Result<()> {
    let (tree, probe) = (LiveTree::new(), LiveProbe::new());
    let machine = Machine::new(&tree, &probe);
    let permission = Permission { overwrite: true, ..Permission::default() };
    let options = FileOptions::write_direct();
    let wanted = TargetRequest { name: Name::Path(path.to_owned()), intent: Intent::WRITE, options };
    let judged = plans(&machine, &[wanted], &[], &permission);
    let judged = judged.and_then(|plans| claims(&machine, &plans, &permission));
    judged.map(drop).map_err(|refusal| match refusal.kind() {
        Kind::Refused => {
            let found = refusal.found();
            Error::refused(
                refusal.target(),
                found,
                "name another file for the result; --overwrite cannot override that",
            )
        }
        _ => refusal,
    })
}

/// Opens files and block devices.
fn open_nodes(
    wanted: &[TargetRequest],
    others: &[(usize, OpenedTarget)],
    permission: &Permission,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<OpenedTarget>> {
    let (tree, probe) = (LiveTree::new(), LiveProbe::new());
    let machine = Machine::new(&tree, &probe);
    let plans = plans(&machine, wanted, others, permission)?;
    let mut opening = Opening { clock, opened: Vec::new(), claims: claims(&machine, &plans, permission)? };
    match opening.all(&plans) {
        Ok(()) => Ok(opening.opened),
        Err(error) => {
            let mut error = error;
            for opened in &mut opening.opened {
                error = error.after_clearing_up(opened.remove_if_made());
            }
            Err(error)
        }
    }
}

/// A target allowed by the rules.
struct Plan {
    located: LocatedName,
    sight: Sight,
    intent: Intent,
    allowed: AllowedAccess,
    options: FileOptions,
    notes: Vec<String>,
}

impl Plan {
    /// Returns true for a file that plumb may overwrite without permission.
    fn is_ours(&self) -> bool {
        let found = &self.sight.found;
        matches!(found, FoundObject::File(_))
            && judge(&self.located.shown, found, Intent::WRITE, &Permission::default()).is_ok()
    }

    fn key(&self) -> Option<Key> {
        self.sight.open.as_ref().map(|(_, key)| *key)
    }
}

/// Performs steps 1 and 2.
fn plans(
    machine: &Machine<'_>,
    wanted: &[TargetRequest],
    others: &[(usize, OpenedTarget)],
    permission: &Permission,
) -> Result<Vec<Plan>> {
    let mut seen = Vec::new();
    for want in wanted {
        let located = locate(machine, &want.name)?.within(want.intent.part);
        let mut sight = look(machine, &located)?;
        if permission.overwrite && (want.intent.writes || want.intent.size.is_some()) {
            sight.ask_blkid();
        }
        seen.push((want, located, sight));
    }
    let of_others = others.iter().map(|(_, other)| (other.shown.as_str(), other.identity.as_slice()));
    let called: Vec<(&str, &[String])> = seen
        .iter()
        .map(|(_, located, sight)| (located.shown.as_str(), identities(&sight.found)))
        .chain(of_others)
        .collect();
    each_word_names_a_target(permission, &called)?;
    seen.into_iter().map(|(want, located, sight)| plan(want, located, sight, permission)).collect()
}

/// Returns the refusal of a block device that the kernel reports as busy although no table shows a use. It
/// replaces the refusal by contents, whose advice on erasing would be wrong for a device in use.
fn in_use(located: &LocatedName, sight: &Sight) -> Option<Error> {
    let (FoundObject::Block(block), Some((_, key))) = (&sight.found, &sight.open) else { return None };
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK;
    let claim = open_same(&located.path, &located.shown, flags, *key);
    claim.err().filter(|error| block.uses.is_empty() && error.kind() == Kind::Refused)
}

fn plan(want: &TargetRequest, located: LocatedName, sight: Sight, permission: &Permission) -> Result<Plan> {
    let allowed = judge(&located.shown, &sight.found, want.intent, permission)
        .map_err(|refusal| in_use(&located, &sight).unwrap_or(refusal))?;
    let access = if want.intent.writes { Access::ReadWrite } else { Access::ReadOnly };
    let mut options = FileOptions { access, ..want.options };
    let mut notes = Vec::new();
    if located.by_number {
        notes.push(format!("{} is {}", want.name, located.path.display()));
        if options.opening.caching != Caching::Direct {
            options.opening.caching = Caching::Direct;
            notes.push(format!(
                "{} is a disk by number, which is always read and written past the page cache",
                want.name
            ));
        }
    }
    if allowed != AllowedAccess::Read && permission.destroys(identities(&sight.found)) {
        let signs = match &sight.found {
            FoundObject::File(file) => signs(&file.contents, &file.uses),
            FoundObject::Block(block) => signs(&block.contents, &block.uses),
            _ => Vec::new(),
        };
        let what = if signs.is_empty() { String::new() } else { format!(", although {}", signs.join(", ")) };
        notes.push(format!("{} is overwritten, as --destroy allows{what}", located.shown));
    }
    Ok(Plan { located, sight, intent: want.intent, allowed, options, notes })
}

fn identities(found: &FoundObject) -> &[String] {
    match found {
        FoundObject::File(file) => &file.identities,
        FoundObject::Block(block) => &block.identities,
        _ => &[],
    }
}

/// Performs step 3.
fn claims(machine: &Machine<'_>, plans: &[Plan], permission: &Permission) -> Result<Vec<(Key, Claim)>> {
    let mut claims: Vec<(Key, Claim)> = Vec::new();
    for plan in plans {
        let Some((file, key)) = &plan.sight.open else { continue };
        if plan.allowed == AllowedAccess::Read {
            continue;
        }
        let is_claimed = claims.iter().any(|(claimed, _)| claimed.is_same_storage(*key));
        if !is_claimed {
            let lock = refuse_locked(plan, file, strictest_lock(plans, plan))?;
            claims.extend(lock.map(|lock| (*key, lock)));
        }
        // Users of separate parts of one device share its claim.
        if plan.allowed == (AllowedAccess::Write { exclusive: true })
            && plan.located.part.is_none()
            && !is_claimed
        {
            let flags = OFlags::RDWR | OFlags::EXCL | OFlags::NONBLOCK;
            let claim = open_same(&plan.located.path, &plan.located.shown, flags, *key)?;
            claims.push((*key, Arc::new(claim)));
        }
        let machine = machine.now();
        let found = facts(&machine, &plan.located, file.as_fd())?;
        let part = PartOfFile { file: file.as_fd(), part: plan.located.part };
        nobody_claims(&machine, &found, &part, &plan.located.shown)?;
        let allowed = judge(&plan.located.shown, &found, plan.intent, permission)?;
        if allowed != plan.allowed || identities(&found) != identities(&plan.sight.found) {
            let found = "it changed while plumb looked at it, and nothing was written";
            return Err(Error::refused(&plan.located.shown, found, "find out what uses it, then try again"));
        }
    }
    Ok(claims)
}

/// Upper bound of the byte range checked for locks. Shared claims use a lock beyond it.
const BYTES_MAX: u64 = i64::MAX as u64 - 1;

/// Reason for refusing a file locked by a cache, a simulated drive or a run.
pub const HELD: &str = "another cache, drive or run of plumb has it, or it was named twice";

/// File systems that implement flock(2) by byte-range locks: NFS, CIFS, SMB and 9p (linux/magic.h). Such a
/// lock keeps other clients from writing, or is mistaken for the lock of a cache.
const LOCKS_BYTES: [u64; 4] = [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997];

/// Returns the strictest lock that any of `plans` requires for the file of `plan`.
fn strictest_lock(plans: &[Plan], plan: &Plan) -> Option<LockKind> {
    let is_same = |other: &Plan| {
        other.located.path == plan.located.path || (plan.key().is_some() && plan.key() == other.key())
    };
    plans.iter().filter(|other| is_same(other)).filter_map(|other| other.intent.lock).max()
}

/// Refuses a file, or a part of a file or device, that is locked by a cache, a simulated drive or another
/// run. For whole block devices the kernel's exclusive claim does the same. Returns the lock to keep.
fn refuse_locked(plan: &Plan, file: &Arc<OwnedFd>, lock: Option<LockKind>) -> Result<Option<Claim>> {
    let shown = &plan.located.shown;
    let bytes = plan.located.part.map_or(0..BYTES_MAX, ByteExtent::range);
    if range_lock::is_locked(file, bytes).is_ok_and(|is_locked| is_locked) {
        return Err(held_error(shown, "a cache or another program has locked it, or a part of it"));
    }
    if matches!(plan.sight.found, FoundObject::File(_)) { lock_file(shown, file, lock) } else { Ok(None) }
}

fn held_error(shown: &str, found: &str) -> Error {
    let remedy = "stop that one first (`plumb cache status`, `plumb drive status`); --destroy cannot override \
                  that";
    Error::refused(shown, found, remedy)
}

/// Locks `file` and returns the lock to keep; if `lock` is `None`, only checks that it could be locked.
fn lock_file(shown: &str, file: &Arc<OwnedFd>, lock: Option<LockKind>) -> Result<Option<Claim>> {
    let locks_bytes = fstatfs(file).is_ok_and(|system| LOCKS_BYTES.contains(&(system.f_type as u64)));
    let kept = lock.filter(|_| !locks_bytes);
    let shared = FlockOperation::NonBlockingLockShared;
    let is_alone = kept == Some(LockKind::Exclusive);
    match flock(file, if is_alone { FlockOperation::NonBlockingLockExclusive } else { shared }) {
        Err(Errno::WOULDBLOCK) if is_alone && flock(file, shared).is_ok() => {
            let found = "another run of plumb writes to it, and this one verifies what it writes";
            Err(Error::refused(shown, found, "wait until that run has ended, or name another file"))
        }
        Err(Errno::WOULDBLOCK) => {
            Err(held_error(shown, "a cache, a drive or a run of plumb that verifies what it writes has it"))
        }
        // The file system does not support locks.
        Err(_) => Ok(None),
        Ok(()) if kept.is_some() => Ok(Some(Arc::clone(file))),
        Ok(()) => {
            let unlocked = flock(file, FlockOperation::Unlock);
            unlocked.map(|()| None).map_err(|errno| Error::os(shown, "unlock", errno))
        }
    }
}

/// Performs steps 4 and 5.
struct Opening<'a> {
    clock: &'a Arc<dyn Clock>,
    claims: Vec<(Key, Claim)>,
    opened: Vec<OpenedTarget>,
}

impl Opening<'_> {
    fn all(&mut self, plans: &[Plan]) -> Result<()> {
        let mut sizes = sizes_wanted(plans);
        for plan in plans {
            // The first plan of a path creates or resizes the file.
            let making = make(plan, sizes.remove(plan.located.path.as_path()))?;
            let opened = self.one(plan, making, strictest_lock(plans, plan))?;
            self.opened.push(opened);
        }
        Ok(())
    }

    /// Opens the target of `plan`. On failure undoes `making`, unless another process has locked the new file
    /// since.
    fn one(&mut self, plan: &Plan, making: Option<Making>, lock: Option<LockKind>) -> Result<OpenedTarget> {
        making.iter().try_for_each(|making| self.lock_new(making, lock))?;
        match (self.device_of(plan, making.as_ref()), making) {
            (Ok(opened), None) => Ok(opened),
            (Ok(opened), Some(making)) => {
                let block = opened.device.info().logical_block;
                let holes = making.before().0.next_multiple_of(block.0)..making.size().round_down(block).0;
                let appends = plan.options.append.is_some();
                let needs_layout = Some(holes).filter(|holes| !holes.is_empty() && !appends);
                let made = making.is_new();
                let ours = made || opened.ours;
                Ok(OpenedTarget {
                    made,
                    ours,
                    needs_layout,
                    making: Some(making).filter(|_| !appends),
                    ..opened
                })
            }
            (Err(error), making) => Err(error.after_clearing_up(making.map_or(Ok(()), Making::undo))),
        }
    }

    /// Locks a new file, which did not exist in step 3.
    fn lock_new(&mut self, making: &Making, lock: Option<LockKind>) -> Result<()> {
        if making.is_new() {
            let lock = lock_file(making.shown(), &Arc::new(making.duplicate()?), lock)?;
            let key = making.key()?;
            self.claims.extend(lock.map(|lock| (key, lock)));
        }
        Ok(())
    }

    fn device_of(&self, plan: &Plan, making: Option<&Making>) -> Result<OpenedTarget> {
        let LocatedName { path, shown, .. } = &plan.located;
        let nodes = || self.opened.iter().filter_map(|opened| Some((opened, opened.origin.node()?)));
        let same_path = || nodes().find(|(_, node)| node.path == *path).map(|(_, node)| node.key);
        let made = making.map(Making::key).transpose()?;
        let Some(key) = made.or(plan.key()).or_else(same_path) else {
            return Err(Error::usage(shown, "the file no longer exists", "find out what removed it"));
        };
        let is_block = matches!(plan.sight.found, FoundObject::Block(_));
        let is_its = |(claimed, _): &&(Key, Claim)| claimed.is_same_storage(key);
        let claim = self.claims.iter().find(is_its).map(|(_, claim)| Arc::clone(claim));
        let same = nodes().find(|(_, node)| node.key == key && node.options == plan.options);
        let (device, route) = match same {
            Some((opened, _)) => (Arc::clone(&opened.device), opened.route.clone()),
            None => {
                let clock = Arc::clone(self.clock);
                let (device, engine) = device(&plan.located, key, plan.options, claim.clone(), clock)?;
                (device, Route::Kernel(engine))
            }
        };
        let length_now = || rustix::fs::lstat(path).map_or(0, |there| there.st_size.cast_unsigned());
        let length = making.map_or_else(length_now, |making| making.size().0);
        Ok(OpenedTarget {
            route,
            shown: shown.clone(),
            kind: if is_block { TargetKind::BlockDevice } else { TargetKind::RegularFile },
            made: false,
            ours: plan.is_ours(),
            size: device.info().size,
            identity: identities(&plan.sight.found).first().filter(|_| is_block).cloned(),
            notes: plan.notes.clone(),
            needs_layout: None,
            counters: None,
            origin: Origin::Node(Node {
                path: path.clone(),
                options: plan.options,
                key,
                claim,
                length,
                change: OnceLock::new(),
            }),
            making: None,
            device,
        })
    }
}

/// Creates the file of `plan`, or changes its length, if its size differs from `size`.
fn make(plan: &Plan, size: Option<Bytes>) -> Result<Option<Making>> {
    let LocatedName { path, shown, .. } = &plan.located;
    let Some(size) = size else { return Ok(None) };
    match (&plan.sight.found, plan.key()) {
        (FoundObject::File(file), Some(key)) if size != file.size => {
            Making::resize(path, shown, key, file.size, size).map(Some)
        }
        (FoundObject::Missing(_), _) => Making::create(path, shown, size).map(Some),
        _ => Ok(None),
    }
}

/// Returns the size to create or resize each path to: the largest requested.
fn sizes_wanted(plans: &[Plan]) -> HashMap<&Path, Bytes> {
    let mut sizes = HashMap::new();
    for plan in plans {
        if let AllowedAccess::Make(size) | AllowedAccess::Resize(size) = plan.allowed {
            let largest = sizes.entry(plan.located.path.as_path()).or_insert(size);
            *largest = size.max(*largest);
        }
    }
    // A plan that accepts the present length has no size to set, but the file must not be cut below it.
    for plan in
        plans.iter().filter(|plan| matches!(plan.allowed, AllowedAccess::Read | AllowedAccess::Write { .. }))
    {
        if let (FoundObject::File(file), Some(size)) =
            (&plan.sight.found, sizes.get_mut(plan.located.path.as_path()))
        {
            *size = file.size.max(*size);
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn what_changes_between_the_two_looks_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let (tree, probe) = (LiveTree::new(), LiveProbe::new());
        let machine = Machine::new(&tree, &probe);
        let name = Name::parse(&path).unwrap();
        let wanted = [TargetRequest { name, intent: Intent::WRITE, options: FileOptions::write_buffered() }];
        let permission = Permission { overwrite: true, ..Permission::default() };
        std::fs::write(&path, vec![7; 8192]).unwrap();
        let planned = plans(&machine, &wanted, &[], &permission).unwrap();
        assert!(claims(&machine, &planned, &permission).is_ok());
        // The permission of the first look no longer applies.
        let refused = claims(&machine, &planned, &Permission::default()).unwrap_err();
        assert_eq!(refused.kind(), Kind::Refused);
        // A file emptied since the first look is refused.
        std::fs::write(&path, "").unwrap();
        assert!(claims(&machine, &planned, &permission).is_err());
        // A replaced file is not opened.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, vec![8; 8192]).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(plumb_block::RealClock::start());
        let mut opening = Opening { clock: &clock, claims: Vec::new(), opened: Vec::new() };
        let refused = opening.all(&planned).unwrap_err();
        assert!(refused.found().contains("something else took its place"), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), vec![8; 8192]);
    }

    #[test]
    fn a_new_file_that_somebody_has_locked_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let (tree, probe) = (LiveTree::new(), LiveProbe::new());
        let machine = Machine::new(&tree, &probe);
        let (name, intent) = (Name::parse(&path).unwrap(), Intent::WRITE.sized(Bytes(8192)));
        let wanted = [TargetRequest { name, intent, options: FileOptions::write_buffered() }];
        let planned = plans(&machine, &wanted, &[], &Permission::default()).unwrap();
        let making = Making::create(&path, "x", Bytes(8192)).unwrap();
        let theirs = std::fs::File::open(&path).unwrap();
        flock(&theirs, FlockOperation::NonBlockingLockExclusive).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(plumb_block::RealClock::start());
        let mut opening = Opening { clock: &clock, claims: Vec::new(), opened: Vec::new() };
        let refused = opening.one(&planned[0], Some(making), Some(LockKind::Shared)).unwrap_err();
        assert!(refused.kind() == Kind::Refused && path.exists(), "{refused}");
    }

    #[test]
    fn bytes_that_somebody_appends_during_a_run_stay() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("x");
        let name = Name::parse(&path).unwrap();
        let time = Time::real();
        let intent = Intent { cuts: true, ..Intent::WRITE.sized(Bytes::mib(1)) };
        let run = |append: Option<Bytes>| {
            let options = FileOptions { append, ..FileOptions::write_buffered() };
            let wanted = TargetRequest { name: name.clone(), intent, options };
            open(&wanted, &Permission::default(), &time).map(|mut opened| {
                opened.laid_out();
                opened
            })
        };
        let append = |bytes: &[u8]| {
            let file = std::fs::File::options().append(true).open(&path);
            std::io::Write::write_all(&mut file.unwrap(), bytes).unwrap();
        };
        let first = run(None).unwrap();
        append(b"precious");
        first.mark_as_left();
        let Err(refused) = run(None) else { panic!("cut to its length") };
        let expected = "somebody has used it since, it has 1048584 bytes, but 1048576 are needed";
        assert!(refused.found().ends_with(expected), "{}", refused.found());
        assert!(!first.remove_if_ours().unwrap() && path.exists());
        std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
        assert!(first.remove_if_ours().unwrap() && !path.exists());
        // A run that appends changes the length itself.
        let appending = run(Some(Bytes::mib(1))).unwrap();
        append(&[7; 4096]);
        appending.mark_as_left();
        assert!(appending.remove_if_ours().unwrap());
    }

    #[test]
    fn another_answer_of_the_rules_is_refused_even_if_it_allows_as_much() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, vec![7; 8192]).unwrap();
        let (tree, probe) = (LiveTree::new(), LiveProbe::new());
        let machine = Machine::new(&tree, &probe);
        let name = Name::parse(&path).unwrap();
        let intent = Intent::WRITE.sized(Bytes(16384));
        let wanted = [TargetRequest { name, intent, options: FileOptions::write_buffered() }];
        let permission = Permission { overwrite: true, ..Permission::default() };
        let planned = plans(&machine, &wanted, &[], &permission).unwrap();
        // After a write by another process, undoing would cut the file that was to grow.
        std::fs::write(&path, vec![7; 16384]).unwrap();
        let refused = claims(&machine, &planned, &permission).unwrap_err();
        assert!(refused.found().contains("changed while plumb looked at it"), "{refused}");
    }

    #[test]
    fn a_sign_of_use_that_appears_between_the_two_looks_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ours");
        let size = Bytes(8192);
        let made = Making::create(&path, "ours", size).unwrap();
        let (tree, probe) = (LiveTree::new(), LiveProbe::new());
        let machine = Machine::new(&tree, &probe);
        let name = Name::parse(&path).unwrap();
        let wanted = [TargetRequest { name, intent: Intent::WRITE, options: FileOptions::write_buffered() }];
        let Ok(planned) = plans(&machine, &wanted, &[], &Permission::default()) else {
            return plumb_testkit::skip("the temporary directory keeps no extended attributes");
        };
        assert_eq!(rustix::io::pwrite(&made, b"XFSB", 0), Ok(4));
        let refused = claims(&machine, &planned, &Permission::default()).unwrap_err();
        assert!(refused.found().contains("it holds xfs"), "{refused}");
    }
}
