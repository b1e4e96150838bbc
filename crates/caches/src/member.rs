//! A device of a cache: opened exclusively and with direct I/O, and refused while in use elsewhere.
//!
//! The guard of targets protects contents. The contents of a cache's device stay, so a file system on a
//! backing device is allowed, but a mounted one is not.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use plumb_block::{Bytes, Device, Lba, Nanos, Time, retry_until};
use plumb_cache::Uuid;
use plumb_guard::cache::config::{CacheConfig, MarkerPlace};
use plumb_guard::cache::device_place::DevicePlace;
use plumb_guard::cache::known;
use plumb_guard::cache::marker::{BLOCK, InLastBlock, Marker, has_marker, last_block};
use plumb_guard::cache::marker_search::{self, DeviceSource, InBlock};
use plumb_guard::facts::{Contents, FoundObject, Use};
use plumb_guard::locate::{LocatedName, locate};
use plumb_guard::look::{Glimpse, Key, facts, glance, open_same, uses};
use plumb_guard::machine::Machine;
use plumb_guard::network::contents_of;
use plumb_guard::opened;
use plumb_guard::rules::{detaching, judge_cached, kernel_file, never_written, signs, unseen_words};
use plumb_guard::shared::KeepingDevice;
use plumb_guard::storage::{PartOfFile, nobody_claims, overlap_parts};
use plumb_guard::{ByteExtent, Error, HELD, Intent, Name, Permission, Result, TargetRequest, open_all};
use plumb_linux::FileOptions;
use plumb_linux::probe::LiveProbe;
use plumb_linux::range_lock::{self, LockKind};
use plumb_linux::shared_claim;
use plumb_linux::tree::LiveTree;
use plumb_text::shell_word;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::laying_out::{LayoutObserver, reserve};
use crate::part::Part;

/// Time to wait for a claim that another process has just taken.
const CLAIM_WITHIN: Nanos = Nanos::secs(1);

/// Place of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spot {
    /// Attribute of a file.
    Attribute,
    /// Block that begins at this byte.
    Block(u64),
}

impl Spot {
    /// Returns the value for the configuration.
    pub(crate) const fn place(self) -> MarkerPlace {
        match self {
            Self::Attribute => MarkerPlace::Attribute,
            Self::Block(_) => MarkerPlace::LastBlock,
        }
    }
}

/// Contents and identities of a device.
pub(crate) struct Nature {
    pub(crate) contents: Contents,
    /// Names by which the user may permit overwriting the device.
    identities: Vec<String>,
}

/// Open device of a cache.
pub struct Member {
    /// The device.
    pub device: Arc<dyn Device>,
    /// Name of the device as typed, for messages.
    pub shown: String,
    /// Path by which the device is found again: for a block device below /dev/disk/by-id, if it has a name
    /// there.
    pub path: String,
    /// Part of the device that is used; `None`: all of it.
    part: Option<ByteExtent>,
    is_block: bool,
    /// Location of a file or a block device.
    located: Option<LocatedName>,
    /// Contents and identities, read on first use.
    nature: OnceLock<Nature>,
    /// Descriptor of a file or a block device, with the device's access mode, which holds the lock. Used only
    /// for attributes.
    held: Option<Arc<OwnedFd>>,
}

impl Member {
    /// Opens the device `typed`.
    ///
    /// # Errors
    /// If the device is in use, read-only or missing, or opening fails.
    pub fn open(typed: &str, time: &Time) -> Result<Self> {
        Self::opened(&DevicePlace::whole(typed), Intent::WRITE, time)
    }

    /// Opens a device of a log. A read-only device, or a file on a read-only file system, is opened for
    /// reading: writes to it fail, and the cache then drains the log.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub(crate) fn of_log(place: &DevicePlace, intent: Intent, time: &Time) -> Result<Self> {
        match Self::opened(place, intent, time) {
            Err(error) if error.is_read_only() => Self::opened(place, Intent::READ, time),
            found => found,
        }
    }

    /// Opens the device at `place`, or the part of it; for reading, it may be read-only.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub(crate) fn opened(place: &DevicePlace, intent: Intent, time: &Time) -> Result<Self> {
        let (name, part) = (Name::parse(&place.path)?, place.part);
        if matches!(name, Name::Scheme { .. }) {
            return match part {
                None => Self::open_unlocated(&name, time),
                Some(_) => {
                    let found = "only a file or a block device has parts that can be used";
                    Err(Error::usage(&place.to_string(), found, "name all of it"))
                }
            };
        }
        let (tree, probe) = (LiveTree::new(), LiveProbe::new());
        let machine = Machine::new(&tree, &probe);
        let located = locate(&machine, &name)?.within(part);
        let (looked_at, key) = match glance(&located)? {
            Glimpse::Open(file, key) => (file, key),
            Glimpse::Closed(found) => {
                judge(&located.shown, &found, intent)?;
                let remedy = "name a file or a block device";
                return Err(Error::usage(&located.shown, "it cannot be opened", remedy));
            }
        };
        // Only a device node has a device number.
        let is_block = key.node != 0;
        let exclusive = if is_block && part.is_none() { OFlags::EXCL } else { OFlags::empty() };
        let (access, options) = match intent.writes {
            true => (OFlags::RDWR, FileOptions::write_direct()),
            false => (OFlags::RDONLY, FileOptions::read_direct()),
        };
        let flags = access | OFlags::NONBLOCK | exclusive;
        let claimed = open_same(&located.path, &located.shown, flags, key).and_then(|held| {
            lock(&located, &held, intent)?;
            let shared = part.filter(|_| is_block).map(|_| claim_shared(&located, key, access, &held));
            Ok((held, shared.transpose()?.map(Arc::new)))
        });
        // Uses are read after the claim, so that no new one can appear. A known use explains more than a
        // failed claim.
        let found = uses(&machine, &located, looked_at.as_fd())?;
        judge(&located.shown, &found, intent)?;
        let (held, claim) = claimed?;
        nobody_claims(&machine, &found, &PartOfFile { file: looked_at.as_fd(), part }, &located.shown)?;
        let held = Arc::new(held);
        let kept = claim.unwrap_or_else(|| Arc::clone(&held));
        let (device, _) = opened::device(&located, key, options.shared(), Some(kept), time.clock())?;
        let device = match part {
            None => device,
            Some(part) => part_of(device, part, &held),
        };
        let path = if is_block {
            typed_link(&name).unwrap_or_else(|| stable_name(&located.path))
        } else {
            located.path.clone()
        };
        let path = path.to_str().map(str::to_owned).ok_or_else(|| {
            Error::usage(&located.shown, "its path is not UTF-8", "name it by a path that is")
        })?;
        let (shown, nature) = (located.shown.clone(), OnceLock::new());
        let (located, held) = (Some(located), Some(held));
        Ok(Self { device, shown, path, part, is_block, located, nature, held })
    }

    /// Opens a device that the kernel does not know: a simulated drive or an export. Its server decides
    /// whether it may be written.
    fn open_unlocated(name: &Name, time: &Time) -> Result<Self> {
        let wanted = TargetRequest {
            name: name.clone(),
            intent: Intent::READ,
            options: FileOptions::write_direct().shared(),
        };
        let opened = open_all(&[wanted], &Permission::default(), time)?.into_iter().next();
        let Some(opened) = opened else {
            return Err(Error::usage(&name.to_string(), "it was not opened", ""));
        };
        let path = name.to_string();
        let nature = Nature { contents: contents_of(&*opened.device), identities: vec![path.clone()] };
        Ok(Self {
            device: opened.device,
            shown: opened.shown,
            path,
            part: None,
            is_block: true,
            located: None,
            nature: nature.into(),
            held: None,
        })
    }

    /// Returns the contents and identities as of the first call.
    ///
    /// # Errors
    /// If reading them fails.
    pub(crate) fn nature(&self) -> Result<&Nature> {
        let (Some(located), Some(held), None) = (&self.located, &self.held, self.nature.get()) else {
            return Ok(self
                .nature
                .get_or_init(|| Nature { contents: Contents::BLANK, identities: Vec::new() }));
        };
        let (tree, probe) = (LiveTree::new(), LiveProbe::new());
        let (contents, identities) = match facts(&Machine::new(&tree, &probe), located, held.as_fd())? {
            FoundObject::File(file) => (file.contents, file.identities),
            FoundObject::Block(block) => (block.contents, block.identities),
            _ => (Contents::BLANK, Vec::new()),
        };
        Ok(self.nature.get_or_init(|| Nature { contents, identities }))
    }

    /// Refuses two devices with common storage: two names of one device, or two loop devices over one file.
    ///
    /// # Errors
    /// If they have common storage, or checking fails.
    pub(crate) fn is_apart_from(&self, other: &Self) -> Result<()> {
        let (Some(own), Some(held)) = (&self.held, &other.held) else { return Ok(()) };
        let own = PartOfFile { file: own.as_fd(), part: self.part };
        if !overlap_parts(&own, &PartOfFile { file: held.as_fd(), part: other.part })? {
            return Ok(());
        }
        let found = format!("it is the same storage as {}", other.shown);
        Err(Error::refused(&self.shown, found, "name different devices or files"))
    }

    /// Returns the place by which the device is found again.
    pub(crate) fn place(&self) -> DevicePlace {
        DevicePlace { path: self.path.clone(), part: self.part }
    }

    /// Checks that the size that can be cached is not smaller than `before`, the cached size.
    ///
    /// # Errors
    /// If it is smaller.
    pub(crate) fn is_not_smaller(&self, size: Bytes, before: Bytes) -> Result<()> {
        if size >= before {
            return Ok(());
        }
        let (now, before) = (size.0, before.0);
        let found = format!("it has {now} bytes, but had {before} when it was cached: it was made smaller");
        Err(Error::refused(&self.shown, found, "restore its size"))
    }

    /// Returns true if the device is a file that holds the log of a cache and nothing else.
    pub(crate) fn is_log_file(&self) -> bool {
        !self.is_block && self.nature().is_ok_and(|nature| nature.contents.is_log())
    }

    /// Returns true if the device belongs to the log of a cache, and `permission` allows overwriting it.
    ///
    /// # Errors
    /// If it belongs to a log and was not named to be destroyed.
    pub(crate) fn is_log_that_goes(&self, permission: &Permission) -> Result<bool> {
        let Nature { contents, identities } = self.nature()?;
        judge_cached(&self.shown, contents, identities, permission)?;
        Ok(contents.is_of_a_log())
    }

    /// Returns the permission without the names of this device, because each word must name one of the other
    /// devices.
    pub(crate) fn without_own_name(&self, permission: &Permission) -> Result<Permission> {
        let identities = &self.nature()?.identities;
        let is_own = |typed: &String| Permission::is_one_of(typed, identities);
        let destroy = permission.destroy.iter().filter(|typed| !is_own(typed)).cloned().collect();
        Ok(Permission { destroy, ..permission.clone() })
    }

    /// Returns all markers of the device, that of the latest session first. They name one cache, unless the
    /// device was copied or cached in two ways.
    pub(crate) fn markers(&self) -> Result<Vec<(Marker, Spot)>> {
        let attribute = self.attribute()?.flatten().map(|marker| (marker, Spot::Attribute));
        let found = DeviceSource::open(&*self.device)
            .and_then(|source| marker_search::find(&source, &known::sizes(&known::all())))
            .map_err(|error| {
                Error::os(&self.shown, "read", Errno::from_io_error(&error).unwrap_or(Errno::IO))
            })?;
        let in_blocks = found.into_iter().map(|InBlock { marker, at }| (marker, Spot::Block(at)));
        let mut found: Vec<_> = attribute.into_iter().chain(in_blocks).collect();
        // The larger of two markers of one session was written later, when the device grew.
        found.sort_by_key(|(marker, _)| std::cmp::Reverse((marker.mark.session, marker.size)));
        Ok(found)
    }

    /// Returns the caches whose configuration names this device as their backing device.
    pub(crate) fn known_caches(&self) -> Vec<CacheConfig> {
        self.held.as_ref().map_or_else(Vec::new, |file| known::of_backing(file.as_fd(), known::all()))
    }

    /// Removes every marker of the cache `cache`, durably.
    pub(crate) fn unmark(&self, cache: Uuid) -> Result<()> {
        let own = self.markers()?.into_iter().filter(|(marker, _)| marker.cache == cache);
        own.into_iter().try_for_each(|(_, spot)| self.set_marker(spot, None))
    }

    /// Returns the marker in the attribute of a file; the outer `None` if the device cannot have attributes.
    fn attribute(&self) -> Result<Option<Option<Marker>>> {
        let Some(file) = self.file() else { return Ok(None) };
        match Marker::of_file(file.as_fd()) {
            Ok(None) if has_marker(file.as_fd()) => Err(Error::refused(
                &self.shown,
                "its attribute user.plumb.cache says that it needs a cache, in the format of another \
                 version of plumb",
                "use the version that wrote it",
            )),
            Ok(found) => Ok(Some(found)),
            Err(Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(Error::os(&self.shown, "read the mark of", errno)),
        }
    }

    /// Returns the place for the marker of a new cache.
    ///
    /// # Errors
    /// If that place is in use.
    pub(crate) fn spot_of_new(&self) -> Result<Spot> {
        if self.attribute()?.is_some() {
            return Ok(Spot::Attribute);
        }
        let found = Marker::of_device(&*self.device).map_err(|error| Error::device(&self.shown, &error))?;
        match found {
            InLastBlock::Marker | InLastBlock::Nothing => Ok(Spot::Block(last_block(&*self.device))),
            InLastBlock::Other => {
                let found = "its last 4096 bytes are in use, where a cache marks the device that needs it";
                let remedy = "shrink what is on it by 4096 bytes (a file system: resize2fs and the like; a \
                              partition: leave room) and zero them, or cache a file";
                Err(Error::refused(&self.shown, found, remedy))
            }
        }
    }

    /// Writes the marker, or removes it, durably.
    pub(crate) fn set_marker(&self, spot: Spot, marker: Option<&Marker>) -> Result<()> {
        match (spot, &self.held) {
            (Spot::Attribute, Some(file)) => Marker::set_on_file(marker, file).map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                Error::os(&self.shown, "mark", errno)
            }),
            (Spot::Attribute, None) => Err(Error::usage(&self.shown, "it has no attributes", "")),
            (Spot::Block(at), _) => Marker::set_on_device(marker, &*self.device, at)
                .map_err(|error| Error::device(&self.shown, &error)),
        }
    }

    /// Returns the device that is cached: without the marker's block, if the marker is on the device.
    pub(crate) fn cached(&self, place: MarkerPlace) -> Arc<dyn Device> {
        let info = self.device.info();
        self.part(match place {
            // A file may end within a block, which no request can reach.
            MarkerPlace::Attribute => info.size.round_down(info.logical_block),
            MarkerPlace::LastBlock => Bytes(info.size.0.saturating_sub(BLOCK.0)).round_down(BLOCK),
        })
    }

    /// Returns the first `size` bytes as a device, whose size stays fixed when the device grows.
    pub(crate) fn part(&self, size: Bytes) -> Arc<dyn Device> {
        Arc::new(Part { device: Arc::clone(&self.device), first: Lba(0), size })
    }

    /// Returns the descriptor of a file or a block device.
    pub(crate) fn held(&self) -> Option<&OwnedFd> {
        self.held.as_deref()
    }

    /// Returns the descriptor of a file; `None` for any other device.
    pub(crate) fn file(&self) -> Option<&Arc<OwnedFd>> {
        self.held.as_ref().filter(|_| !self.is_block)
    }

    /// Allocates the space of a log in a file.
    pub(crate) fn reserve_for_log(&self, size: Bytes) -> Result<()> {
        self.file().map_or(Ok(()), |file| reserve(file, self.part, &self.shown, size))
    }

    /// Lays out the space of a log in a file, and removes the file's mark as a drive's medium.
    pub(crate) fn take_for_log(
        &self,
        size: Bytes,
        laying_out: Option<&mut LayoutObserver<'_>>,
    ) -> Result<()> {
        let Some(file) = self.file() else { return Ok(()) };
        match rustix::fs::fremovexattr(file, plumb_guard::MEDIUM) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(Error::os(&self.shown, "take the mark off", errno)),
        }
        let begin = Bytes(self.part.map_or(0, |part| part.offset));
        let write = |laying_out: &mut LayoutObserver<'_>| {
            laying_out.write(file, begin, &self.shown, &[(Bytes(0), size)])
        };
        laying_out.map_or(Ok(()), write)
    }
}

/// Locks the device or file open as `held`, or the used part of it. Other processes may use other parts.
fn lock(located: &LocatedName, held: &OwnedFd, intent: Intent) -> Result<()> {
    let is_taken = match located.part {
        None => rustix::fs::flock(held, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Some(part) => {
            let kind = if intent.writes { LockKind::Exclusive } else { LockKind::Shared };
            let lock = || range_lock::lock(held, part.range(), kind);
            rustix::fs::flock(held, FlockOperation::NonBlockingLockShared).is_ok()
                && lock().is_ok_and(|taken| taken)
        }
    };
    let remedy = "stop that one first (`plumb cache status`)";
    if is_taken { Ok(()) } else { Err(Error::refused(&located.shown, HELD, remedy)) }
}

/// Claims a block device of which a part is used (`O_EXCL`), together with the processes that use other
/// parts.
fn claim_shared(located: &LocatedName, key: Key, access: OFlags, held: &OwnedFd) -> Result<OwnedFd> {
    let flags = access | OFlags::NONBLOCK | OFlags::EXCL;
    let open = || open_same(&located.path, &located.shown, flags, key);
    let offer = |claim| shared_claim::offer(&claim).map(|()| claim);
    // The holder may be about to offer the claim, or to release it.
    let claimed = retry_until(CLAIM_WITHIN, || match open() {
        Ok(claim) => Some(offer(claim)),
        Err(_) => shared_claim::copy(held.as_fd()).transpose(),
    });
    let claimed = match claimed {
        Some(claimed) => claimed,
        None => offer(open()?),
    };
    claimed.map_err(|error| not_shared(located, &error))
}

fn not_shared(located: &LocatedName, error: &std::io::Error) -> Error {
    let found = format!(
        "another cache uses a part of this device, and its claim on the device cannot be shared with it: {error}"
    );
    Error::refused(
        &located.shown,
        found,
        "serve both as one user who may use ptrace (root), or use partitions",
    )
}

/// Returns a part of a device, which keeps the lock while it lives.
fn part_of(device: Arc<dyn Device>, part: ByteExtent, held: &Arc<OwnedFd>) -> Arc<dyn Device> {
    let first = Lba(part.offset / device.info().logical_block.0);
    let device = Part { device, first, size: Bytes(part.length) };
    Arc::new(KeepingDevice { device, _kept: Arc::clone(held) })
}

/// Refuses a device that a cache cannot open, above all one in use.
fn judge(shown: &str, found: &FoundObject, intent: Intent) -> Result<()> {
    let (uses, unseen) = match found {
        FoundObject::File(file) => (&file.uses, &file.unseen),
        FoundObject::Block(block) if block.read_only && intent.writes => {
            let remedy = format!(
                "`blockdev --setrw {}` where it may be written",
                shell_word(&format!("/dev/{}", block.kernel_name))
            );
            return Err(Error::new(plumb_guard::Kind::ReadOnly, shown, "the device is read-only", remedy));
        }
        FoundObject::Block(block) => (&block.uses, &block.unseen),
        FoundObject::Missing(_) => {
            let remedy = "check that it exists under this name, by which the cache finds it";
            return Err(Error::new(
                plumb_guard::Kind::NotFound,
                shown,
                "there is no such file or device",
                remedy,
            ));
        }
        FoundObject::Kernel(system) => return Err(kernel_file(shown, system)),
        FoundObject::Directory | FoundObject::Other(_) => {
            return Err(Error::usage(shown, "it is neither a file nor a block device", "name one"));
        }
    };
    never_written(shown, uses)?;
    if let Some(unseen) = unseen {
        let remedy = "run where /proc and /sys are those of the machine";
        return Err(Error::refused(shown, unseen_words(unseen), remedy));
    }
    let Some(first) = uses.first() else { return Ok(()) };
    let remedy = match first {
        Use::Mounted { .. } => "unmount it; what the cache serves is mounted in its place".to_owned(),
        Use::Loop { by, .. } => format!("detach it ({})", detaching(by)),
        _ => "remove what uses it".to_owned(),
    };
    Err(Error::refused(shown, signs(&Contents::BLANK, uses).join(", "), remedy))
}

/// Returns the typed path if it is a link below /dev, which udev maintains.
fn typed_link(name: &Name) -> Option<PathBuf> {
    let Name::Path(typed) = name else { return None };
    let path = std::path::absolute(typed).ok()?;
    (path.starts_with("/dev") && path.is_symlink()).then_some(path)
}

/// Returns the first link below /dev/disk/by-id that leads to the node; the node itself if there is none.
pub(crate) fn stable_name(node: &Path) -> PathBuf {
    let links =
        std::fs::read_dir("/dev/disk/by-id").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut leading: Vec<PathBuf> =
        links.filter(|link| std::fs::canonicalize(link).is_ok_and(|led| led == node)).collect();
    leading.sort();
    leading.into_iter().next().unwrap_or_else(|| node.to_owned())
}

/// Returns a new random UUID from the kernel (/proc/sys/kernel/random/uuid).
pub(crate) fn new_uuid() -> Result<Uuid> {
    let path = "/proc/sys/kernel/random/uuid";
    let text = std::fs::read_to_string(path).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        Error::os(path, "read", errno)
    })?;
    text.trim().parse().map_err(|_| Error::usage(path, format!("`{}` is not a UUID", text.trim()), ""))
}
