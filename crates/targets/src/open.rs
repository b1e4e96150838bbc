//! From what was typed to open devices, past the rules.
//!
//! The order is what makes it safe:
//! 1. every target is located, looked at and judged; nothing is open but for reading;
//! 2. every word typed for `--destroy` must name one of them;
//! 3. block devices are claimed, and every target that is to be written is looked at and judged again, on the
//!    descriptor from step 1 with the claim held: who comes later is refused by the kernel; files that a
//!    cache or a drive is served from are refused;
//! 4. files are made, or made longer;
//! 5. all are opened as devices.
//!
//! Steps 1 to 3 write nothing. If 4 or 5 fail, what 4 has made is undone.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use plumb_block::{Bytes, Caching, Clock, RealClock, Time};
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_linux::{Access, FileOptions, range_lock};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::byte_extent::ByteExtent;
use crate::error::{Error, Kind, Result};
use crate::facts::FoundObject;
use crate::guard::{AllowedAccess, each_word_names_a_target, judge, signs};
use crate::locate::{LocatedName, locate};
use crate::look::{Key, Sight, facts, look, open_same};
use crate::machine::Machine;
use crate::make::Making;
use crate::name::Name;
use crate::network;
use crate::opened::{Node, OpenedTarget, Origin, Route, TargetKind, device};
use crate::permission::{Intent, Permission};
use crate::shared::Claim;
use crate::storage::{PartOfFile, nobody_claims};
use crate::target_request::TargetRequest;
use crate::time::time_of;
use crate::{cache, simulated, test_file};

/// Opens one target: [`open_all`] for a caller that has just one.
///
/// # Errors
/// As [`open_all`].
pub fn open(
    name: &Name,
    intent: Intent,
    permission: &Permission,
    options: FileOptions,
    clock: &Arc<dyn Clock>,
) -> Result<OpenedTarget> {
    let wanted = TargetRequest { name: name.clone(), intent, options };
    one(&wanted, permission, &Time::Real(Arc::clone(clock)))
}

fn one(wanted: &TargetRequest, permission: &Permission, time: &Time) -> Result<OpenedTarget> {
    let opened = open_all(std::slice::from_ref(wanted), permission, time)?;
    opened.into_iter().next().ok_or_else(|| Error::usage(&wanted.name.to_string(), "it was not opened", ""))
}

/// Opens a target of any kind to be looked at. A simulated drive is in a world of its own.
///
/// # Errors
/// As [`open_all`].
pub fn open_to_read(name: Name) -> Result<OpenedTarget> {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let time = time_of([&name], &clock);
    let options = FileOptions::read_direct();
    one(&TargetRequest { name, intent: Intent::READ, options }, &Permission::default(), &time)
}

/// Opens to be looked at what the kernel does not know: a simulated drive, an export of an NBD server, a
/// cache. `None` for a path.
///
/// # Errors
/// As [`open_all`].
pub fn open_foreign(typed: &OsStr) -> Result<Option<OpenedTarget>> {
    // A word that is not a name with a scheme is a path, whatever it looks like.
    let Ok(name @ Name::Scheme { .. }) = Name::parse(typed) else { return Ok(None) };
    Ok(Some(open_to_read(name)?).filter(|opened| opened.kind.device_kind().is_some()))
}

/// Opens all targets of a run, in the order given, or none.
///
/// The same file or device may be wanted more than once: if it is wanted in the same way, the device is
/// shared, else it is opened again beside the first.
///
/// # Errors
/// The first refusal or failure. Nothing was written then, and nothing that was made is left behind.
pub fn open_all(wanted: &[TargetRequest], permission: &Permission, time: &Time) -> Result<Vec<OpenedTarget>> {
    let places = || wanted.iter().cloned().enumerate();
    let (simulated, rest): (Vec<_>, Vec<_>) = places().partition(|(_, want)| simulated::is_meant(&want.name));
    let (caches, rest): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|(_, want)| cache::is_meant(&want.name));
    let (remote, known): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|(_, want)| network::is_meant(&want.name));
    let (in_directories, known): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|(_, want)| test_file::directory_of(want).is_some());
    let clock = time.clock();
    let mut opened = simulated::open_all(&simulated, time)?;
    opened.extend(cache::open_all(&caches, permission, time)?);
    opened.extend(network::open_all(&remote, permission, &clock)?);
    opened.extend(test_file::open_all(&in_directories, &clock)?);
    let (places, of_kernel): (Vec<usize>, Vec<TargetRequest>) = known.into_iter().unzip();
    opened.extend(places.into_iter().zip(open_nodes(&of_kernel, &opened, permission, &clock)?));
    opened.sort_by_key(|(place, _)| *place);
    Ok(opened.into_iter().map(|(_, opened)| opened).collect())
}

/// Checks that the file at `path` may be replaced by a result, whatever it holds otherwise: nothing uses it,
/// it is no part of a cache or a drive, and it holds no file system or the like. Nothing is written.
///
/// # Errors
/// The refusal. No option overrides it.
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

/// A target that the rules allow.
struct Plan {
    located: LocatedName,
    sight: Sight,
    intent: Intent,
    allowed: AllowedAccess,
    options: FileOptions,
    notes: Vec<String>,
}

impl Plan {
    /// Returns true if it is a file that plumb may write over without being asked.
    fn is_ours(&self) -> bool {
        let found = &self.sight.found;
        matches!(found, FoundObject::File(_))
            && judge(&self.located.shown, found, Intent::WRITE, &Permission::default()).is_ok()
    }

    fn key(&self) -> Option<Key> {
        self.sight.open.as_ref().map(|(_, key)| *key)
    }
}

/// Takes steps 1 and 2.
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

/// Returns the refusal of a block device that the kernel says is in use, where its tables show no use: what
/// is said of its contents, and how to erase them, does not hold then.
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

/// Takes step 3.
fn claims(machine: &Machine<'_>, plans: &[Plan], permission: &Permission) -> Result<Vec<(Key, Claim)>> {
    let mut claims: Vec<(Key, Claim)> = Vec::new();
    for plan in plans {
        let Some((file, key)) = &plan.sight.open else { continue };
        if plan.allowed == AllowedAccess::Read {
            continue;
        }
        nobody_serves(plan, file.as_fd())?;
        // The claim is shared by those who use the parts of a device.
        if plan.allowed == (AllowedAccess::Write { exclusive: true })
            && plan.located.part.is_none()
            && !claims.iter().any(|(claimed, _)| claimed.node == key.node)
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

/// Number of bytes that no device reaches: the mark of a shared claim is beyond.
const BYTES_MAX: u64 = i64::MAX as u64 - 1;

/// Reason to refuse a file that a cache or a simulated drive has a lock on.
pub(crate) const HELD: &str = "another cache or drive has it, or it was named twice";

/// Refuses a file that a cache or a simulated drive is served from, which holds a lock on it: what the kernel
/// does for block devices. The same goes for the parts of files and devices.
fn nobody_serves(plan: &Plan, file: BorrowedFd<'_>) -> Result<()> {
    let shown = &plan.located.shown;
    let held = |found: &str| {
        let remedy = "stop that one first (`plumb cache status`, `plumb drive status`); --destroy cannot \
                      override that";
        Error::refused(shown, found, remedy)
    };
    let bytes = plan.located.part.map_or(0..BYTES_MAX, ByteExtent::range);
    if range_lock::is_locked(file, bytes).is_ok_and(|is_locked| is_locked) {
        return Err(held("a cache or another program has locked it, or a part of it"));
    }
    if !matches!(plan.sight.found, FoundObject::File(_)) {
        return Ok(());
    }
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Err(held(HELD)),
        // Not every file system has locks.
        Err(_) => Ok(()),
        Ok(()) => flock(file, FlockOperation::Unlock).map_err(|errno| Error::os(shown, "unlock", errno)),
    }
}

/// Steps 4 and 5.
struct Opening<'a> {
    clock: &'a Arc<dyn Clock>,
    claims: Vec<(Key, Claim)>,
    opened: Vec<OpenedTarget>,
}

impl Opening<'_> {
    fn all(&mut self, plans: &[Plan]) -> Result<()> {
        let mut sizes = sizes_wanted(plans);
        for plan in plans {
            // Whoever comes first makes it.
            let making = make(plan, sizes.remove(plan.located.path.as_path()))?;
            let opened = self.one(plan, making)?;
            self.opened.push(opened);
        }
        Ok(())
    }

    /// Opens the target of `plan`; if that fails, what was made for it is undone.
    fn one(&self, plan: &Plan, making: Option<Making>) -> Result<OpenedTarget> {
        let opened = self.device_of(plan, making.as_ref());
        match (opened, making) {
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

    fn device_of(&self, plan: &Plan, making: Option<&Making>) -> Result<OpenedTarget> {
        let LocatedName { path, shown, .. } = &plan.located;
        let nodes = || self.opened.iter().filter_map(|opened| Some((opened, opened.origin.node()?)));
        let same_path = || nodes().find(|(_, node)| node.path == *path).map(|(_, node)| node.key);
        let made = making.map(Making::key).transpose()?;
        let Some(key) = made.or(plan.key()).or_else(same_path) else {
            return Err(Error::usage(shown, "the file no longer exists", "find out what removed it"));
        };
        let is_block = matches!(plan.sight.found, FoundObject::Block(_));
        let of_node = |(claimed, _): &&(Key, Claim)| is_block && claimed.node == key.node;
        let claim = self.claims.iter().find(of_node).map(|(_, claim)| Arc::clone(claim));
        let same = nodes().find(|(_, node)| node.key == key && node.options == plan.options);
        let (device, route) = match same {
            Some((opened, _)) => (Arc::clone(&opened.device), opened.route.clone()),
            None => {
                let clock = Arc::clone(self.clock);
                let (device, engine) = device(&plan.located, key, plan.options, claim.clone(), clock)?;
                (device, Route::Kernel(engine))
            }
        };
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
                change: OnceLock::new(),
            }),
            making: None,
            device,
        })
    }
}

/// Makes the file of `plan`, or makes it longer or shorter, if it has not `size`.
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

/// Returns the sizes to which files are to be made: for each path the largest that is asked for.
fn sizes_wanted(plans: &[Plan]) -> HashMap<&Path, Bytes> {
    let mut sizes = HashMap::new();
    for plan in plans {
        if let AllowedAccess::Make(size) | AllowedAccess::Resize(size) = plan.allowed {
            let largest = sizes.entry(plan.located.path.as_path()).or_insert(size);
            *largest = size.max(*largest);
        }
    }
    // Whoever finds it long enough as it is says so by no size: nobody else may cut it.
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
        // The permission that the first look had is gone.
        let refused = claims(&machine, &planned, &Permission::default()).unwrap_err();
        assert_eq!(refused.kind(), Kind::Refused);
        // Emptied meanwhile, it would be an error of its own.
        std::fs::write(&path, "").unwrap();
        assert!(claims(&machine, &planned, &permission).is_err());
        // Replaced meanwhile, it is not opened.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, vec![8; 8192]).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(plumb_block::RealClock::start());
        let mut opening = Opening { clock: &clock, claims: Vec::new(), opened: Vec::new() };
        let refused = opening.all(&planned).unwrap_err();
        assert!(refused.found().contains("something else took its place"), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), vec![8; 8192]);
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
        // Somebody writes to it: to be made longer, it would now be cut if that were undone.
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
