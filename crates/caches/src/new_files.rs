//! Files created for the log of a cache, recorded before they are created: if the process is killed before a
//! configuration names them, they are removed later.
//!
//! ```text
//!   NAME.making, locked ──► files of the log ──► superblocks, marker ──► NAME.json ──► remove NAME.making
//! ```
//!
//! A file is removed only if no configuration names it and it is empty, holds only data that plumb wrote, or
//! holds the log of this cache. The marker is removed if no configuration has this cache.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use plumb_block::Time;
use plumb_cache::Uuid;
use plumb_guard::cache::device_place::DevicePlace;
use plumb_guard::cache::known;
use plumb_guard::mark::{Maker, maker};
use plumb_guard::{Error, Intent, Kind, Result};
use plumb_state::{LockedRecord, Owner, whole_file};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::leg::leg_of;
use crate::member::Member;

/// Suffix of the record files.
const ENDING: &str = ".making";

/// Contents of a record file.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    /// Identity of the cache.
    cache: Uuid,
    /// Path of the backing device.
    backing: String,
    /// Paths of the missing files.
    files: Vec<PathBuf>,
}

/// Cache for which a log is created.
pub(crate) struct LogToMake<'a> {
    /// Directory of the configuration.
    pub directory: &'a Path,
    /// Name of the cache.
    pub name: &'a str,
    /// Identity of the cache.
    pub cache: Uuid,
    /// Path of the backing device.
    pub backing: &'a str,
}

/// Record of this process while it creates the files of a log.
struct NewFiles(LockedRecord);

/// Runs `make`, which creates the files that are missing among `places`.
///
/// # Errors
/// Returns the error of `make`. Before it runs: if another process is creating such files, or the file system
/// fails.
pub(crate) fn while_made<T>(
    log: &LogToMake<'_>,
    places: &[DevicePlace],
    make: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let new_files = NewFiles::begin(log, places)?;
    let made = make();
    new_files.end();
    made
}

impl NewFiles {
    /// Records which of `places` will be created, after removing what a killed process left under this name.
    fn begin(log: &LogToMake<'_>, places: &[DevicePlace]) -> Result<Self> {
        let LogToMake { directory, name, cache, backing } = *log;
        let shown = format!("cache:{name}");
        let failed = |error| Error::file(&shown, &error);
        let path = directory.join(format!("{name}{ENDING}"));
        whole_file::make_directory(directory, 0o700).map_err(failed)?;
        LeftFiles::at(&path)?.map_or(Ok(()), LeftFiles::put_back)?;
        let missing = places.iter().filter_map(|place| missing(&place.path));
        let begun = Begun { cache, backing: backing.to_owned(), files: missing.collect() };
        let record = LockedRecord::create(&path).map_err(failed)?.ok_or_else(|| {
            let found = "another process is making the files of its log";
            Error::refused(&shown, found, "wait until that has ended, then try again")
        })?;
        let text = serde_json::to_vec(&begun)
            .map_err(|error| Error::usage(&shown, error.to_string(), "name devices whose paths are UTF-8"))?;
        record.append(&text).map(|()| Self(record)).map_err(|error| {
            // The first error is more informative than one of clearing up.
            std::fs::remove_file(&path).unwrap_or_default();
            failed(error)
        })
    }

    /// Removes the record: the files are in use, or were removed as far as possible. A record that stays is
    /// removed with those of killed processes.
    fn end(self) {
        self.0.remove().unwrap_or_default();
    }
}

/// Returns the absolute path of a file that does not exist; `None` if something is there.
fn missing(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let is_missing = path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let parent = std::fs::canonicalize(whole_file::parent_of(path)).ok()?;
    path.file_name().filter(|_| is_missing).map(|name| parent.join(name))
}

/// Files that a killed process created for a log.
pub struct LeftFiles {
    record: LockedRecord,
    /// Contents of the record; `None` if the process was killed before it created any file.
    begun: Option<Begun>,
}

impl LeftFiles {
    /// Returns the leftovers of killed processes for the caches in `directory`.
    ///
    /// # Errors
    /// If the file system fails.
    pub fn all(directory: &Path) -> Result<Vec<Self>> {
        let shown = directory.display().to_string();
        let found = whole_file::list(directory).map_err(|error| Error::file(&shown, &error))?;
        let records = found.iter().filter(|path| path.to_string_lossy().ends_with(ENDING));
        records.filter_map(|path| Self::at(path).transpose()).collect()
    }

    /// Takes over the record at `path`; `None` if there is none, or its process lives.
    fn at(path: &Path) -> Result<Option<Self>> {
        let failed = |error| Error::file(&path.display().to_string(), &error);
        let Owner::Dead(record) = LockedRecord::take_over(path).map_err(failed)? else { return Ok(None) };
        let text = record.read().map_err(failed)?;
        Ok(Some(Self { record, begun: serde_json::from_slice(&text).ok() }))
    }

    /// Returns the name of the cache and its files, for messages.
    pub fn words(&self) -> String {
        let name = self.record.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.trim_end_matches(ENDING).to_owned();
        let files = self.begun.iter().flat_map(|begun| &begun.files).map(|path| path.display().to_string());
        let files = files.collect::<Vec<_>>().join(", ");
        if files.is_empty() { name } else { format!("{name} ({files})") }
    }

    /// Removes the files, and the marker of the cache from its backing device.
    ///
    /// # Errors
    /// If the backing device is in use, or the system fails. The call can then be repeated.
    pub fn put_back(self) -> Result<()> {
        if let Some(begun) = &self.begun {
            let configs = known::all();
            let time = Time::real();
            for file in &begun.files {
                let path = file.display().to_string();
                if !configs.iter().any(|config| config.names_leg(&path)) {
                    remove_own(&path, begun.cache, &time)?;
                }
            }
            if !configs.iter().any(|config| config.uuid == begun.cache) {
                match Member::open(&begun.backing, &time) {
                    Err(error) if error.kind() == Kind::NotFound => {}
                    backing => backing?.unmark(begun.cache)?,
                }
            }
        }
        self.record.remove().map_err(|error| Error::file("cache", &error))
    }
}

/// Removes the file at `path` if it belongs to the log of `cache`, or was created for it and is still empty.
fn remove_own(path: &str, cache: Uuid, time: &Time) -> Result<()> {
    let failed = |doing| {
        move |error: std::io::Error| Error::os(path, doing, Errno::from_io_error(&error).unwrap_or(Errno::IO))
    };
    let found = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed("look at"))?,
    };
    let is_own = found.is_file() && (found.len() == 0 || holds_own(path, cache, time)?);
    if is_own { std::fs::remove_file(path).map_err(failed("remove")) } else { Ok(()) }
}

/// Returns true if a file holds the log of `cache`, or only data that plumb wrote.
fn holds_own(path: &str, cache: Uuid, time: &Time) -> Result<bool> {
    let member = match Member::opened(&DevicePlace::whole(path), Intent::READ, time) {
        // A file that cannot be a device of a log belongs to the user.
        Err(error) if error.kind() == Kind::Usage => return Ok(false),
        member => member?,
    };
    let leg = leg_of(&member)?;
    let is_new = || known::opened(path).is_ok_and(|file| maker(file.as_fd()) == Maker::Plumb);
    Ok(leg.map_or_else(is_new, |leg| leg.settings.cache == cache))
}
