//! Writing a run directory during the run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::hlog::{self, TaggedHistogram};
use super::manifest::{Manifest, RunStatus};
use super::out::Out;
use super::timeseries::{self, TimeseriesRow};
use crate::error::{Error, Result};
use plumb_state::output::write_page;
use plumb_state::places::kernel_file_system;
use plumb_state::whole_file::{self, Lasting, Mode, parent_of, sync_directory};

pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const RESULT: &str = "result.json";
pub(super) const HISTOGRAMS: &str = "hist.hlog";
pub(super) const TIMESERIES: &str = "timeseries.csv";
/// Files that a new run in an old directory removes first; other files there are kept.
const OWNED: [&str; 6] = [RESULT, HISTOGRAMS, TIMESERIES, "report.html", "requests.blktrace", MANIFEST];

/// A run directory during the run.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    manifest: Manifest,
    /// Length of the interval log without the data that [`write_so_far`](Self::write_so_far) appended; `None`
    /// if it appended nothing.
    histograms_durable: Option<u64>,
    /// Length of the time series without the data that [`write_so_far`](Self::write_so_far) appended; `None`
    /// if it appended nothing.
    series_durable: Option<u64>,
}

impl RunDirectory {
    /// Creates the directory according to `out` and writes the manifest with status `running`. `None` if
    /// nothing is recorded.
    ///
    /// # Errors
    /// If a named directory is not empty or cannot be written. For several parents, the error of the first
    /// one.
    pub fn create(out: &Out, manifest: &Manifest) -> Result<Option<Self>> {
        let begun = match out {
            Out::Nowhere => return Ok(None),
            Out::At { path, .. } => {
                Self::check(out)?;
                match fs::create_dir(path) {
                    Ok(()) => Self::begin_new(path.clone(), manifest),
                    Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(Error::io("make the directory", path, source));
                    }
                    Err(_) => clear_earlier_run(path).and_then(|()| Self::begin(path.clone(), manifest)),
                }
            }
            Out::Within { parents, stem } => {
                let mut refused = no_parent(stem.as_ref(), Path::new(""));
                for (place, parent) in parents.iter().enumerate() {
                    match Self::begin_within(parent, stem, manifest) {
                        Err(error) if place == 0 => refused = error,
                        Err(_) => {}
                        begun => return begun.map(Some),
                    }
                }
                Err(refused)
            }
        };
        begun.map(Some)
    }

    /// Creates a directory in `parent`, which is created too if missing. Leaves nothing behind on failure.
    fn begin_within(parent: &Path, stem: &str, manifest: &Manifest) -> Result<Self> {
        let is_new = !parent.exists();
        let begun = make_unique(parent, stem).and_then(|path| Self::begin_new(path, manifest));
        begun.inspect_err(|_| {
            if is_new {
                fs::remove_dir(parent).unwrap_or_default();
            }
        })
    }

    /// Starts the run in a directory created for it, which is removed again on failure.
    fn begin_new(path: PathBuf, manifest: &Manifest) -> Result<Self> {
        Self::begin(path.clone(), manifest).inspect_err(|_| fs::remove_dir(path).unwrap_or_default())
    }

    fn begin(path: PathBuf, manifest: &Manifest) -> Result<Self> {
        let manifest = manifest.clone();
        let this = Self { path, manifest, histograms_durable: None, series_durable: None };
        this.write_manifest()?;
        sync_directory(parent_of(&this.path))?;
        Ok(this)
    }

    /// Checks as far as possible, without writing anything, whether a run could be recorded according to
    /// `out`. Call it before expensive work for the run.
    ///
    /// # Errors
    /// If `out` holds an earlier run that must not be replaced, or something else, or its parent does not
    /// exist.
    pub fn check(out: &Out) -> Result<()> {
        let Out::At { path, replace } = out else { return Ok(()) };
        let parent = parent_of(path);
        if path.is_dir() {
            return check_free(path, *replace);
        }
        if path.symlink_metadata().is_ok() {
            return Err(occupied(path, "a file in its place"));
        }
        if !parent.is_dir() {
            return Err(no_parent(path, parent));
        }
        match kernel_file_system(parent) {
            Some(system) => Err(Error::Place(format!(
                "{}: it is in a file system of the kernel ({system}), which stores nothing: name another place",
                path.display()
            ))),
            None => Ok(()),
        }
    }

    /// Abandons the directory before anything was measured: removes its manifest, and the directory if it is
    /// then empty.
    ///
    /// # Errors
    /// If the manifest cannot be removed.
    pub fn abandon(self) -> Result<()> {
        let manifest = self.path.join(MANIFEST);
        fs::remove_file(&manifest).map_err(|source| Error::io("remove", &manifest, source))?;
        match fs::remove_dir(&self.path) {
            // The directory may contain files of others.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Updates the manifest.
    ///
    /// # Errors
    /// If the manifest cannot be written; the old one then remains.
    pub fn update_manifest(&mut self, change: impl FnOnce(&mut Manifest)) -> Result<()> {
        change(&mut self.manifest);
        self.write_manifest()
    }

    /// Writes `document` as the result of the run, durably. Call it after each phase with everything known so
    /// far.
    ///
    /// # Errors
    /// If the result cannot be written; the earlier one then remains.
    pub fn write_result(&self, document: &impl Serialize) -> Result<()> {
        write_json(&self.path.join(RESULT), document)
    }

    /// Writes another file of the run, atomically and durably: a report, an export. `name` must not contain a
    /// directory.
    ///
    /// # Errors
    /// If the file cannot be written; an earlier one of that name then remains.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        if Path::new(name).file_name() != Some(name.as_ref()) {
            return Err(Error::inexpressible(&format!("the file `{name}`"), &self.path, "a bare file name"));
        }
        let path = self.path.join(name);
        write_page(&path, bytes).map_err(|error| Error::io("write", &path, error))
    }

    /// Appends latencies to the interval log, durably. Empty histograms are skipped.
    ///
    /// # Errors
    /// If a tag contains spaces or commas, or the file cannot be written; its old contents then remain.
    pub fn append_histograms(&mut self, histograms: &[TaggedHistogram]) -> Result<()> {
        let path = self.path.join(HISTOGRAMS);
        append(&path, hlog::HEADER, &hlog_lines(&path, histograms)?, self.histograms_durable.take())
    }

    /// Appends lines to the time series, durably.
    ///
    /// # Errors
    /// If the name of a phase contains a comma, or the file cannot be written; its old contents then remain.
    pub fn append_series(&mut self, rows: impl IntoIterator<Item = TimeseriesRow>) -> Result<()> {
        let path = self.path.join(TIMESERIES);
        append(&path, timeseries::HEADER, &timeseries::lines(&path, rows)?, self.series_durable.take())
    }

    /// Writes the interim results of the current phase, replacing its earlier ones: the document, latencies,
    /// and lines of the time series. They survive a kill of the process, but become durable only when the
    /// phase is appended, so that the measured device sees no flush of ours.
    ///
    /// # Errors
    /// Fails as writing each of them does.
    pub fn write_so_far(
        &mut self,
        document: &impl Serialize,
        histograms: &[TaggedHistogram],
        rows: impl IntoIterator<Item = TimeseriesRow>,
    ) -> Result<()> {
        let path = self.path.join(HISTOGRAMS);
        let lines = hlog_lines(&path, histograms)?;
        write_behind(&path, hlog::HEADER, &lines, &mut self.histograms_durable)?;
        let path = self.path.join(TIMESERIES);
        let lines = timeseries::lines(&path, rows)?;
        write_behind(&path, timeseries::HEADER, &lines, &mut self.series_durable)?;
        let path = self.path.join(RESULT);
        replace(&path, &json(&path, document)?, Lasting::Visible)
    }

    /// Ends the run: complete, or interrupted with a reason. `ended_at` is RFC 3339 in UTC.
    ///
    /// # Errors
    /// If the manifest cannot be written; the run then still appears as running.
    pub fn finish(
        mut self,
        interrupted_because: Option<String>,
        ended_at: impl Into<String>,
    ) -> Result<PathBuf> {
        self.manifest.status =
            if interrupted_because.is_some() { RunStatus::Interrupted } else { RunStatus::Complete };
        self.manifest.reason = interrupted_because;
        self.manifest.ended_at = Some(ended_at.into());
        self.write_manifest()?;
        Ok(self.path)
    }

    fn write_manifest(&self) -> Result<()> {
        write_json(&self.path.join(MANIFEST), &self.manifest)
    }
}

/// Replaces a file of the run and keeps its permissions.
fn replace(path: &Path, bytes: &[u8], lasting: Lasting) -> Result<()> {
    Ok(whole_file::replace(path, bytes, Mode::Kept, lasting)?)
}

fn write_json(path: &Path, document: &impl Serialize) -> Result<()> {
    replace(path, &json(path, document)?, Lasting::Durable)
}

fn json(path: &Path, document: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(document)
        .map_err(|source| Error::io("express as JSON the document for", path, source.into()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Returns the lines of the non-empty histograms.
fn hlog_lines(path: &Path, histograms: &[TaggedHistogram]) -> Result<Vec<u8>> {
    let filled: Vec<_> = histograms.iter().filter(|line| line.histogram.count() > 0).cloned().collect();
    hlog::lines(path, &filled)
}

/// Replaces everything after the first `durable` bytes of the file by `lines`. At the first call, sets
/// `durable` to the length of the file.
fn write_behind(path: &Path, header: &str, lines: &[u8], durable: &mut Option<u64>) -> Result<()> {
    let whole = before(path, header, *durable)?;
    *durable = Some(whole.len() as u64);
    replace(path, &[&whole, lines].concat(), Lasting::Visible)
}

/// Returns the first `durable` bytes of a file, or all of it; only the header if the file does not exist.
fn before(path: &Path, header: &str, durable: Option<u64>) -> Result<Vec<u8>> {
    let mut whole = match fs::read(path) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(|source| Error::io("read", path, source))?,
    };
    whole.truncate(durable.map_or(usize::MAX, |durable| durable as usize));
    Ok(if whole.is_empty() { header.as_bytes().to_vec() } else { whole })
}

/// Appends `lines` durably to `path`, which starts with `header`, replacing everything after the first
/// `durable` bytes. After a failure the file is truncated to its old length.
fn append(path: &Path, header: &str, lines: &[u8], durable: Option<u64>) -> Result<()> {
    match durable {
        None => append_with(path, header, |file| file.write_all(lines)),
        Some(_) => replace(path, &[&before(path, header, durable)?, lines].concat(), Lasting::Durable),
    }
}

fn append_with(path: &Path, header: &str, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let failed = |source| Error::io("append to", path, source);
    let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let header = if length == 0 { header } else { "" };
    let written =
        file.write_all(header.as_bytes()).and_then(|()| write(&mut file)).and_then(|()| file.sync_data());
    if let Err(source) = written {
        // Best effort: if truncation fails too, readers ignore the partial line, and the first failure is
        // reported.
        drop(file.set_len(length));
        return Err(failed(source));
    }
    if length == 0 { Ok(sync_directory(parent_of(path))?) } else { Ok(()) }
}

/// Refuses a directory that contains something other than a run, or a run that must not be replaced.
fn check_free(directory: &Path, replace: bool) -> Result<()> {
    let mut entries =
        fs::read_dir(directory).map_err(|source| Error::io("read the directory", directory, source))?;
    let Some(first) = entries.next() else { return Ok(()) };
    let path = directory.display();
    match is_run(directory) {
        true if replace => Ok(()),
        true => Err(Error::Place(format!(
            "{path} holds a recorded run: name another directory, or replace that run with --replace"
        ))),
        false => {
            let found = first.map_or_else(|error| error.to_string(), |e| e.file_name().display().to_string());
            Err(occupied(directory, &found))
        }
    }
}

/// Creates the error for a directory that contains something other than a recording of plumb, where nothing
/// is written.
fn occupied(path: &Path, found: &str) -> Error {
    let path = path.display();
    Error::Place(format!(
        "{path} is not empty and not a run of plumb (found {found}): name an empty or a new directory"
    ))
}

/// Creates the error for a directory whose parent does not exist.
fn no_parent(path: &Path, parent: &Path) -> Error {
    let (path, parent) = (path.display(), parent.display());
    Error::Place(format!("{path}: there is no directory {parent}: make it, or name another place"))
}

/// Removes an earlier run, the manifest last, so that after a crash in the middle the directory still counts
/// as a run.
fn clear_earlier_run(directory: &Path) -> Result<()> {
    for name in OWNED {
        let path = directory.join(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove the earlier", &path, source));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns true if `directory` contains a run of this or another version of plumb.
fn is_run(directory: &Path) -> bool {
    let schema = super::recording::read(&directory.join(MANIFEST))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok())
        .and_then(|manifest| manifest.get("schema")?.as_str().map(str::to_owned));
    schema.is_some_and(|schema| schema.starts_with(Manifest::SCHEMA_FAMILY))
}

fn make_unique(parent: &Path, stem: &str) -> Result<PathBuf> {
    fs::create_dir_all(parent).map_err(|source| Error::io("make the directory", parent, source))?;
    let mut path = parent.join(stem);
    let mut next = 2_u32;
    loop {
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
                path = parent.join(format!("{stem}-{next}"));
                next += 1;
            }
            Err(source) => return Err(Error::io("make the directory", &path, source)),
        }
    }
}

#[cfg(test)]
mod tests;
