//! Configuration of a cache, kept beside its devices: a small JSON by name, with the paths of the devices.
//! What the devices say of themselves decides; this only says where they are.

use std::fs::File;
use std::path::{Path, PathBuf};

use plumb_cache::{Layout, Mark, Mode, Uuid};
use plumb_state::whole_file::{self, Lasting};
use plumb_state::{DirectoryLock, LockedRecord, places};
use plumb_text::shell_word;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::cache::device_place::DevicePlace;
use crate::cache::stop_record::StopRecord;
use crate::cache::tuning::Tuning;
use crate::error::{Error, Result};

/// Bytes that are reserved for a configuration: enough for the paths of its few devices, unless these come
/// near the longest that a path may be.
const CONFIGURATION_MAX: usize = 16 << 10;

/// Where a cache is.
/// Keys that a later plumb has added are ignored, and left out when the file is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CacheConfig {
    /// Always [`CacheConfig::SCHEMA`].
    pub schema: String,
    /// The name that it is served under.
    pub name: String,
    /// Names the cache for ever.
    pub uuid: Uuid,
    /// Names the backing device for ever.
    pub backing_uuid: Uuid,
    /// The mode that it is served in.
    pub mode: Mode,
    /// How several legs share the log.
    pub layout: Layout,
    /// The bytes used of each leg.
    pub size: u64,
    /// The device that is cached: a path that stays when the kernel's names change, where there is one.
    pub backing: String,
    /// Where the backing device says which cache it needs.
    pub marker: MarkerPlace,
    /// The devices of the log, in order.
    pub legs: Vec<DevicePlace>,
    /// The size of the cached device in bytes; `None` in a configuration that plumb made before it kept that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing_size: Option<u64>,
    /// Log to which the cache moves: it is the log once the mark on the backing device is not sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves_to: Option<NewDevices>,
    /// Settings that may be changed while the cache is served.
    #[serde(default, skip_serializing_if = "Tuning::is_default")]
    pub tuning: Tuning,
    /// State of the backing device when the cache stopped; `None` while it is served, and after its server
    /// was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StopRecord>,
    /// Mark that the backing device had when this was written: one with an earlier mark is an old copy.
    /// `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_mark: Option<LastMark>,
    /// Bytes that were given up, of a cache that is being detached: the backing device has everything else,
    /// and may not be marked any more. `None` if the cache is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detaching: Option<u64>,
}

/// Part of the mark on a backing device by which it is told from an older copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastMark {
    /// Number of the last session.
    pub session: u64,
    /// Sequence number of the first record that may still be needed; 0 if unknown.
    pub tail: u64,
}

impl LastMark {
    /// Returns true if this is certainly an earlier mark than `other`.
    pub const fn is_before(self, other: Self) -> bool {
        self.session < other.session
            || (self.session == other.session && self.tail > 0 && self.tail < other.tail)
    }
}

impl From<Mark> for LastMark {
    fn from(Mark { session, tail, .. }: Mark) -> Self {
        Self { session, tail }
    }
}

/// Devices of a log to which a cache moves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewDevices {
    /// The devices, in order.
    pub legs: Vec<DevicePlace>,
    /// Layout of the log over the devices.
    pub layout: Layout,
    /// Bytes used of each.
    pub size: u64,
}

/// Where the backing device says which cache it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkerPlace {
    /// An extended attribute of a file.
    Attribute,
    /// The last 4096 bytes of a device, or of a file without attributes; the cache is that much smaller.
    LastBlock,
}

impl CacheConfig {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/cache-config/1";

    /// Returns the cache of this name in `directory`.
    ///
    /// # Errors
    /// If there is none, or the file is none of ours.
    pub fn load(directory: &Path, name: &str) -> Result<Self> {
        let path = Self::path(directory, name);
        let shown = format!("cache:{name}");
        let bytes = whole_file::read(&path).map_err(|error| Error::file(&shown, &error))?;
        let Some(bytes) = bytes else {
            let known = Self::names(directory)?;
            let remedy = if known.is_empty() {
                "`plumb cache create` makes one, `plumb cache adopt` one whose configuration is lost"
                    .to_owned()
            } else {
                format!("there are: {}", known.join(", "))
            };
            return Err(Error::new(crate::Kind::NotFound, shown, "there is no cache of this name", remedy));
        };
        serde_json::from_slice(&bytes).ok().filter(|config: &Self| config.schema == Self::SCHEMA).ok_or_else(
            || {
                let found =
                    format!("{} is not a configuration of a cache that this plumb knows", path.display());
                Error::usage(
                    &shown,
                    found,
                    "use the plumb that wrote it, or remove it and rebuild it with `plumb cache adopt`",
                )
            },
        )
    }

    /// Returns the configuration with the log that counts, if it was moving to another when its server ended:
    /// the present one while the mark on the backing device `is_sealed`.
    pub fn after_move(self, is_sealed: bool) -> Self {
        match self.moves_to.clone() {
            Some(NewDevices { legs, layout, size }) if !is_sealed => {
                Self { legs, layout, size, moves_to: None, ..self }
            }
            _ => Self { moves_to: None, ..self },
        }
    }

    /// Returns true if a UUID was typed, by which the user accepts that this cache loses data.
    ///
    /// # Errors
    /// The refusal, if it is that of another cache.
    pub fn is_meant(&self, typed: Option<Uuid>) -> Result<bool> {
        match typed.filter(|typed| *typed != self.uuid) {
            None => Ok(typed.is_some()),
            Some(other) => {
                Err(Error::refused(&self.name, format!("its UUID is {}, not {other}", self.uuid), ""))
            }
        }
    }

    /// Makes this the configuration of its name, durably.
    ///
    /// # Errors
    /// The file system's.
    pub fn save(&self, directory: &Path) -> Result<()> {
        let failed = |error| Error::file(&format!("cache:{}", self.name), &error);
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| {
            Error::usage(&self.name, error.to_string(), "name devices whose paths are UTF-8")
        })?;
        text.push(b'\n');
        whole_file::make_directory(directory, 0o700).map_err(failed)?;
        whole_file::replace(
            &Self::path(directory, &self.name),
            &text,
            whole_file::Mode::Exactly(0o600),
            Lasting::Durable,
        )
        .map_err(failed)
    }

    /// Takes up room in `directory` for a configuration until the file is dropped: before a change that the
    /// configuration must tell of.
    ///
    /// # Errors
    /// The file system's.
    pub fn reserve(directory: &Path) -> Result<File> {
        let shown = directory.display().to_string();
        whole_file::make_directory(directory, 0o700).map_err(|error| Error::file(&shown, &error))?;
        whole_file::reserve(directory, CONFIGURATION_MAX).map_err(|error| Error::file(&shown, &error))
    }

    /// Keeps all others from making a cache known in `directory`, until it is dropped: two would take one
    /// name, and the second configuration replace the first. The directory is made if it is missing.
    ///
    /// # Errors
    /// The file system's. Where it cannot lock directories (NFS) nobody is kept away.
    pub fn lock_directory(directory: &Path) -> Result<Option<DirectoryLock>> {
        let shown = directory.display().to_string();
        whole_file::make_directory(directory, 0o700).map_err(|error| Error::file(&shown, &error))?;
        match DirectoryLock::acquire(directory).map_err(|error| Errno::from_io_error(&error)) {
            Ok(lock) => Ok(Some(lock)),
            Err(Some(Errno::BADF | Errno::OPNOTSUPP | Errno::NOLCK)) => Ok(None),
            Err(errno) => Err(Error::os(&shown, "lock", errno.unwrap_or(Errno::IO))),
        }
    }

    /// Keeps other orders from opening the cache, until it is dropped. The file that is locked stays until
    /// the cache is forgotten. Where none can be locked, the locks on the devices alone keep others away.
    ///
    /// # Errors
    /// The refusal, while another order on this cache is running.
    pub fn claim(&self, directory: &Path) -> Result<Option<LockedRecord>> {
        match LockedRecord::hold(&Self::lock_path(directory, &self.name)) {
            Ok(None) => {
                let found = "another order on this cache is running, or its server is starting or ending";
                let remedy = format!(
                    "wait until that is over (`plumb cache status {}` shows whether it is served), then try again",
                    shell_word(&self.name)
                );
                Err(Error::refused(&format!("cache:{}", self.name), found, remedy))
            }
            claim => Ok(claim.ok().flatten()),
        }
    }

    /// Forgets the cache. Its devices stay as they are.
    ///
    /// # Errors
    /// The file system's.
    pub fn forget(directory: &Path, name: &str) -> Result<()> {
        // Nobody needs it without a configuration, nor is kept away by one that is left.
        std::fs::remove_file(Self::lock_path(directory, name)).unwrap_or_default();
        let removed = whole_file::remove(&Self::path(directory, name));
        removed.map(drop).map_err(|error| Error::file(&format!("cache:{name}"), &error))
    }

    /// Returns true if the device or file at `path` is one of the log, or of the log to which it moves.
    pub fn names_leg(&self, path: &str) -> bool {
        let moves_to = self.moves_to.iter().flat_map(|new| &new.legs);
        self.legs.iter().chain(moves_to).any(|place| place.path == path)
    }

    /// Returns the names of all caches in `directory`, in order.
    ///
    /// # Errors
    /// The file system's.
    pub fn names(directory: &Path) -> Result<Vec<String>> {
        let found = whole_file::list(directory)
            .map_err(|error| Error::file(&directory.display().to_string(), &error))?;
        let name = |path: PathBuf| Some(path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned());
        let mut names: Vec<String> = found.into_iter().filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    fn lock_path(directory: &Path, name: &str) -> PathBuf {
        directory.join(format!("{name}.lock"))
    }

    /// Returns the identity of the cache as the contents of a block device.
    pub fn block_device_identity(&self) -> String {
        format!("cache {}", self.uuid)
    }

    /// Returns the path of the configuration of the cache `name`.
    pub fn path(directory: &Path, name: &str) -> PathBuf {
        places::cache_configuration(directory, name)
    }
}

/// Returns the directory of the configurations of this user's caches.
pub fn directory() -> PathBuf {
    places::cache_configurations(&places::state())
}

#[cfg(test)]
mod tests {
    use plumb_state::CacheRecord;

    use super::*;

    #[test]
    fn a_survey_reads_the_devices_and_the_mode_that_were_written() {
        let legs = ["/dev/disk/by-id/a", "/dev/disk/by-id/b@1G+4G"];
        let config = CacheConfig {
            schema: CacheConfig::SCHEMA.to_owned(),
            name: "one".to_owned(),
            uuid: Uuid([1; 16]),
            backing_uuid: Uuid([2; 16]),
            mode: Mode::Protected,
            layout: Layout::Mirror,
            size: 4 << 30,
            backing: "/dev/disk/by-id/c".to_owned(),
            marker: MarkerPlace::LastBlock,
            legs: legs.map(|typed| DevicePlace::parse(typed).unwrap()).to_vec(),
            backing_size: None,
            moves_to: None,
            tuning: Tuning::default(),
            stopped: None,
            last_mark: None,
            detaching: None,
        };
        let directory = tempfile::tempdir().unwrap();
        config.save(directory.path()).unwrap();
        let text = std::fs::read_to_string(CacheConfig::path(directory.path(), "one")).unwrap();
        let record = CacheRecord::parse(&text).unwrap();
        let CacheConfig { uuid, mode, backing, legs, .. } = config;
        let legs = legs.into_iter().map(Into::into).collect();
        assert_eq!(record.mode, CacheRecord::PROTECTED);
        let expected = CacheRecord { uuid: uuid.to_string(), mode: mode.word().to_owned(), backing, legs };
        assert_eq!(record, expected);
    }
}
