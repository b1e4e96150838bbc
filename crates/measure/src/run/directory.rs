//! Writing a run directory while the run goes on.

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
/// Files that a new run in an old directory removes first; other files there are left alone.
const OWNED: [&str; 6] = [RESULT, HISTOGRAMS, TIMESERIES, "report.html", "requests.blktrace", MANIFEST];

/// A run directory that is being written.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    manifest: Manifest,
    /// How long the two files that grow are without what [`write_so_far`](Self::write_so_far) has added, if
    /// it has.
    histograms_durable: Option<u64>,
    series_durable: Option<u64>,
}

impl RunDirectory {
    /// Makes the directory where `out` says and writes the manifest, status `running`. `None` where nothing
    /// is kept.
    ///
    /// # Errors
    /// If a directory that was named holds something, or cannot be written; of several parents, why the first
    /// cannot.
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

    /// Makes a directory within `parent`, which is made too if it is missing. Leaves nothing on a failure.
    fn begin_within(parent: &Path, stem: &str, manifest: &Manifest) -> Result<Self> {
        let is_new = !parent.exists();
        let begun = make_unique(parent, stem).and_then(|path| Self::begin_new(path, manifest));
        begun.inspect_err(|_| {
            if is_new {
                fs::remove_dir(parent).unwrap_or_default();
            }
        })
    }

    /// Begins the run in a directory that was made for it, which is removed again on a failure.
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

    /// Checks whether a run could be kept there, as far as possible without writing anything. Call it before
    /// much work is done for the run.
    ///
    /// # Errors
    /// If `out` holds an earlier run that is not to be replaced, or something else, or is in no directory.
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

    /// Gives the directory up before anything was measured: takes its manifest away, and the directory too if
    /// nothing else is in it.
    ///
    /// # Errors
    /// If the manifest cannot be removed.
    pub fn abandon(self) -> Result<()> {
        let manifest = self.path.join(MANIFEST);
        fs::remove_file(&manifest).map_err(|source| Error::io("remove", &manifest, source))?;
        match fs::remove_dir(&self.path) {
            // Somebody else's files may stand beside.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes the manifest, as more becomes known.
    ///
    /// # Errors
    /// If it cannot be written; the old one is then still there.
    pub fn update_manifest(&mut self, change: impl FnOnce(&mut Manifest)) -> Result<()> {
        change(&mut self.manifest);
        self.write_manifest()
    }

    /// Makes `document` the result of the run, durably. To be called after each phase, with all that is
    /// known.
    ///
    /// # Errors
    /// If it cannot be written; the earlier result is then still there.
    pub fn write_result(&self, document: &impl Serialize) -> Result<()> {
        write_json(&self.path.join(RESULT), document)
    }

    /// Writes another file of the run, whole and durably: a report, an export. `name` has no directory in it.
    ///
    /// # Errors
    /// If it cannot be written; an earlier one of the name is then still there.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        if Path::new(name).file_name() != Some(name.as_ref()) {
            return Err(Error::inexpressible(&format!("the file `{name}`"), &self.path, "a bare file name"));
        }
        let path = self.path.join(name);
        write_page(&path, bytes).map_err(|error| Error::io("write", &path, error))
    }

    /// Appends latencies to the interval log, durably. Empty ones are left out.
    ///
    /// # Errors
    /// If a tag holds spaces or commas, or the file cannot be written; what was there stays.
    pub fn append_histograms(&mut self, histograms: &[TaggedHistogram]) -> Result<()> {
        let path = self.path.join(HISTOGRAMS);
        append(&path, hlog::HEADER, &hlog_lines(&path, histograms)?, self.histograms_durable.take())
    }

    /// Appends lines to the time series, durably.
    ///
    /// # Errors
    /// If the name of a phase holds a comma, or the file cannot be written; what was there stays.
    pub fn append_series(&mut self, rows: impl IntoIterator<Item = TimeseriesRow>) -> Result<()> {
        let path = self.path.join(TIMESERIES);
        append(&path, timeseries::HEADER, &timeseries::lines(&path, rows)?, self.series_durable.take())
    }

    /// Writes what a phase that goes on has measured until now, in the place of what it had before: the
    /// document, latencies, and lines of the time series. A process that is killed leaves all of it; it is
    /// durable only when the phase is appended, so that a device that is measured sees no flush of ours.
    ///
    /// # Errors
    /// As for each of them.
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

    /// Ends the run: complete, or interrupted for a reason. `ended_at` is RFC 3339 in UTC.
    ///
    /// # Errors
    /// If the manifest cannot be written; the run then still reads as running.
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

/// Replaces a file of the run, which keeps its permissions.
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

/// Returns the lines of those that are not empty.
fn hlog_lines(path: &Path, histograms: &[TaggedHistogram]) -> Result<Vec<u8>> {
    let filled: Vec<_> = histograms.iter().filter(|line| line.histogram.count() > 0).cloned().collect();
    hlog::lines(path, &filled)
}

/// Makes the file what it was before lines were written behind it, which begins at `durable`, and `lines`.
fn write_behind(path: &Path, header: &str, lines: &[u8], durable: &mut Option<u64>) -> Result<()> {
    let whole = before(path, header, *durable)?;
    *durable = Some(whole.len() as u64);
    replace(path, &[&whole, lines].concat(), Lasting::Visible)
}

/// Returns the beginning of a file, `durable` bytes of it or all; the header alone if there is no file yet.
fn before(path: &Path, header: &str, durable: Option<u64>) -> Result<Vec<u8>> {
    let mut whole = match fs::read(path) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(|source| Error::io("read", path, source))?,
    };
    whole.truncate(durable.map_or(usize::MAX, |durable| durable as usize));
    Ok(if whole.is_empty() { header.as_bytes().to_vec() } else { whole })
}

/// Appends `lines` durably to `path`, which begins with `header`, and replaces everything after the first
/// `durable` bytes. After a failure the file is cut back to its old length.
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
        // Best effort: if the cut fails too, readers leave the partial line out, and the first failure is
        // reported.
        drop(file.set_len(length));
        return Err(failed(source));
    }
    if length == 0 { Ok(sync_directory(parent_of(path))?) } else { Ok(()) }
}

/// Refuses a directory that holds something else than a run, or a run that is not to be replaced.
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

/// Returns the error for a directory that holds something that is not a recording of plumb, so nothing is
/// written there.
fn occupied(path: &Path, found: &str) -> Error {
    let path = path.display();
    Error::Place(format!(
        "{path} is not empty and not a run of plumb (found {found}): name an empty or a new directory"
    ))
}

/// Returns the error for a directory whose parent does not exist.
fn no_parent(path: &Path, parent: &Path) -> Error {
    let (path, parent) = (path.display(), parent.display());
    Error::Place(format!("{path}: there is no directory {parent}: make it, or name another place"))
}

/// Takes away an earlier run, the manifest last, so that a crash in the middle leaves what still counts as a
/// run.
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

/// Returns true if `directory` holds a run of this or another version of plumb.
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
