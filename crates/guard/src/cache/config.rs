//! Configuration of a cache: a JSON file, by name, with the paths of the devices. It only locates the
//! devices; their own superblocks and marker are authoritative.

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

/// Bytes reserved for a configuration: enough for the paths of its few devices, unless these approach the
/// maximum path length.
const CONFIGURATION_MAX: usize = 16 << 10;

/// Configuration of a cache. Keys added by a later plumb are ignored, and lost when the file is rewritten.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CacheConfig {
    /// Always [`CacheConfig::SCHEMA`].
    pub schema: String,
    /// Name under which the cache is served.
    pub name: String,
    /// Permanent identity of the cache.
    pub uuid: Uuid,
    /// Permanent identity of the backing device.
    pub backing_uuid: Uuid,
    /// Mode of acknowledging writes.
    pub mode: Mode,
    /// Distribution of the log over several legs.
    pub layout: Layout,
    /// Bytes used of each leg.
    pub size: u64,
    /// Path of the backing device: one independent of the kernel's names, if there is one.
    pub backing: String,
    /// Position of the marker on the backing device.
    pub marker: MarkerPlace,
    /// Devices of the log, in order.
    pub legs: Vec<DevicePlace>,
    /// Size of the cached device in bytes; `None` in configurations of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing_size: Option<u64>,
    /// Log to which the cache is moving. It becomes the log once the mark on the backing device is no longer
    /// sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves_to: Option<NewDevices>,
    /// Settings that may be changed while the cache is served.
    #[serde(default, skip_serializing_if = "Tuning::is_default")]
    pub tuning: Tuning,
    /// State of the backing device when the cache stopped; `None` while it is served, and after its server
    /// was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StopRecord>,
    /// Mark on the backing device when this was written, to recognise an old copy by its earlier mark. `None`
    /// if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_mark: Option<LastMark>,
    /// Bytes lost by a cache that is being detached: the backing device has everything else, and may have no
    /// marker any more. `None` if the cache is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detaching: Option<u64>,
}

/// Part of the mark on a backing device that distinguishes it from an older copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastMark {
    /// Number of the last session.
    pub session: u64,
    /// Sequence number of the first record that may still be needed; 0 if unknown.
    pub tail: u64,
}

impl LastMark {
    /// Returns true if this mark is certainly earlier than `other`.
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

/// Log to which a cache moves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewDevices {
    /// The devices, in order.
    pub legs: Vec<DevicePlace>,
    /// Layout of the log over the devices.
    pub layout: Layout,
    /// Bytes used of each device.
    pub size: u64,
}

/// Position of the marker on the backing device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkerPlace {
    /// Extended attribute of a file.
    Attribute,
    /// Last 4096 bytes of a device, or of a file without attributes. The cached device is smaller by that
    /// much.
    LastBlock,
}

impl CacheConfig {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/cache-config/1";

    /// Loads the configuration `name` from `directory`.
    ///
    /// # Errors
    /// Fails if it is missing, or not a configuration.
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

    /// Returns the configuration after an interrupted move: with the present log if the mark on the backing
    /// device `is_sealed`, otherwise with the new one.
    pub fn after_move(self, is_sealed: bool) -> Self {
        match self.moves_to.clone() {
            Some(NewDevices { legs, layout, size }) if !is_sealed => {
                Self { legs, layout, size, moves_to: None, ..self }
            }
            _ => Self { moves_to: None, ..self },
        }
    }

    /// Returns true if the user typed this cache's UUID, and so accepts losing its data.
    ///
    /// # Errors
    /// The refusal, if `typed` is the UUID of another cache.
    pub fn is_meant(&self, typed: Option<Uuid>) -> Result<bool> {
        match typed.filter(|typed| *typed != self.uuid) {
            None => Ok(typed.is_some()),
            Some(other) => {
                Err(Error::refused(&self.name, format!("its UUID is {}, not {other}", self.uuid), ""))
            }
        }
    }

    /// Writes the configuration under its name, durably.
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

    /// Reserves space for a configuration in `directory` until the returned file is dropped: for use before a
    /// change that the configuration must record.
    ///
    /// # Errors
    /// The file system's.
    pub fn reserve(directory: &Path) -> Result<File> {
        let shown = directory.display().to_string();
        whole_file::make_directory(directory, 0o700).map_err(|error| Error::file(&shown, &error))?;
        whole_file::reserve(directory, CONFIGURATION_MAX).map_err(|error| Error::file(&shown, &error))
    }

    /// Locks `directory` against the creation of caches until the lock is dropped: two with the same name
    /// would overwrite each other's configuration. Creates the directory if missing. Returns `None` if the
    /// file system cannot lock directories (NFS).
    ///
    /// # Errors
    /// The file system's.
    pub fn lock_directory(directory: &Path) -> Result<Option<DirectoryLock>> {
        let shown = directory.display().to_string();
        whole_file::make_directory(directory, 0o700).map_err(|error| Error::file(&shown, &error))?;
        match DirectoryLock::acquire(directory).map_err(|error| Errno::from_io_error(&error)) {
            Ok(lock) => Ok(Some(lock)),
            Err(Some(Errno::BADF | Errno::OPNOTSUPP | Errno::NOLCK)) => Ok(None),
            Err(errno) => Err(Error::os(&shown, "lock", errno.unwrap_or(Errno::IO))),
        }
    }

    /// Locks the cache against other commands until the lock is dropped. The lock file stays until the cache
    /// is forgotten. Returns `None` if the file cannot be locked; then only the locks on the devices protect
    /// the cache.
    ///
    /// # Errors
    /// The refusal, while another command uses this cache.
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

    /// Removes the configuration. The devices are not changed.
    ///
    /// # Errors
    /// The file system's.
    pub fn forget(directory: &Path, name: &str) -> Result<()> {
        // A leftover lock file does no harm.
        std::fs::remove_file(Self::lock_path(directory, name)).unwrap_or_default();
        let removed = whole_file::remove(&Self::path(directory, name));
        removed.map(drop).map_err(|error| Error::file(&format!("cache:{name}"), &error))
    }

    /// Returns true if `path` is a device of the log, or of the log to which the cache moves.
    pub fn names_leg(&self, path: &str) -> bool {
        let moves_to = self.moves_to.iter().flat_map(|new| &new.legs);
        self.legs.iter().chain(moves_to).any(|place| place.path == path)
    }

    /// Returns the names of all caches in `directory`, sorted.
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

    /// Returns the path of the configuration of cache `name`.
    pub fn path(directory: &Path, name: &str) -> PathBuf {
        places::cache_configuration(directory, name)
    }
}

/// Returns the directory of this user's cache configurations.
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
