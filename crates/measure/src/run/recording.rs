//! Reading of run directories.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::directory::{HISTOGRAMS, MANIFEST, RESULT, TIMESERIES};
use super::hlog::{self, TaggedHistogram};
use super::manifest::Manifest;
use super::timeseries::{self, TimeseriesRow};
use crate::error::{Error, Result};

/// A recording, possibly incomplete.
#[derive(Debug, Clone)]
pub struct Recording {
    path: PathBuf,
    /// Manifest of the run.
    pub manifest: Manifest,
    /// All latencies in the order of writing; empty if none was written.
    pub histograms: Vec<TaggedHistogram>,
    /// All buckets in the order of writing; empty if none was written.
    pub timeseries: Vec<TimeseriesRow>,
}

impl Recording {
    /// Reads the run in `directory`. A killed run is read as far as it was recorded: its status is `running`,
    /// and an unterminated last line is ignored.
    ///
    /// # Errors
    /// If there is no manifest, or a file is malformed; with the file and the line.
    pub fn open(directory: &Path) -> Result<Self> {
        let path = directory.join(MANIFEST);
        let bytes = read(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                let what = if directory.exists() { "is not a recorded run" } else { "does not exist" };
                Error::Place(format!(
                    "{} {what}: name a directory that holds a {MANIFEST}, such as those in plumb-runs",
                    directory.display()
                ))
            }
            _ => Error::io("read", &path, source),
        })?;
        let manifest: Manifest = from_json(&path, &bytes, "a manifest of plumb")?;
        if manifest.schema != Manifest::SCHEMA {
            return Err(Error::Malformed {
                path,
                line: 1,
                found: format!("schema `{}`", manifest.schema),
                expected: Manifest::SCHEMA,
            });
        }
        let histograms = directory.join(HISTOGRAMS);
        let timeseries = directory.join(TIMESERIES);
        Ok(Self {
            path: directory.to_owned(),
            manifest,
            histograms: hlog::parse(&histograms, &read_or_nothing(&histograms)?)?,
            timeseries: timeseries::parse(&timeseries, &read_or_nothing(&timeseries)?)?,
        })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the result document; `None` if the run ended before the first one was written.
    ///
    /// # Errors
    /// If it cannot be parsed as `T`; with the line.
    pub fn result<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let path = self.path.join(RESULT);
        match read(&path) {
            Ok(bytes) => from_json(&path, &bytes, "the result document of the run").map(Some),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::io("read", &path, source)),
        }
    }
}

/// Returns the contents of a regular file of a run. Nothing else is opened: a FIFO would block forever.
///
/// # Errors
/// Fails as the system does, and if the file is not a regular file.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    fs::read(path)
}

fn read_or_nothing(path: &Path) -> Result<Vec<u8>> {
    match read(path) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(|source| Error::io("read", path, source)),
    }
}

fn from_json<T: DeserializeOwned>(path: &Path, bytes: &[u8], expected: &'static str) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::Malformed {
        path: path.to_owned(),
        line: error.line() as u64,
        found: error.to_string(),
        expected,
    })
}
