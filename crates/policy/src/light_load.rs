//! A light load on a disk during a switch: 4 KiB writes with fdatasync, every 10 ms, to a file of its own.
//!
//! The file is newly created and unlinked at once, so nothing remains however the process ends. A load on
//! another disk would notice nothing, which would look like a switch without disturbance, so the file must be
//! on one of the disks of the plan.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use plumb_block::{Clock as _, FailureKind, RealClock};
use plumb_path::{SurveyError, survey_path};

use crate::gateway::Gateway;
use crate::observe::LoadSample;
use crate::plan::Plan;

const BLOCK: usize = 4096;
const PERIOD: Duration = Duration::from_millis(10);
/// Number of operations before the first switch, to determine the undisturbed latency.
const BEFORE: usize = 25;
/// Timeout for the operations before the first switch; a slower disk is reported as it is.
const BEFORE_MAX: Duration = Duration::from_secs(10);

/// Error of starting a load.
#[derive(Debug, thiserror::Error)]
pub enum LightLoadError {
    /// The file exists already, or cannot be created.
    #[error("--observe {}: cannot be made: {source}; name a new file on a disk of the plan", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The directory of the file cannot be surveyed.
    #[error(transparent)]
    Survey(#[from] SurveyError),
    /// The file is not on any of the disks to be changed.
    #[error(
        "--observe {}: it is on none of the disks that are changed ({disks}), so it would measure nothing: \
         name a new file in a file system on one of them",
        path.display()
    )]
    Elsewhere {
        /// Path of the file.
        path: PathBuf,
        /// Disks to be changed.
        disks: String,
    },
    /// The system failed.
    #[error("--observe {}: cannot {operation}", path.display())]
    System {
        /// Path of the file.
        path: PathBuf,
        /// Operation that failed.
        operation: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl LightLoadError {
    /// Returns the category of the failure.
    pub const fn failure(&self) -> FailureKind {
        match self {
            Self::File { .. } | Self::Survey(_) | Self::Elsewhere { .. } => FailureKind::Usage,
            Self::System { .. } => FailureKind::Failed,
        }
    }
}

/// A load that runs until it is stopped.
#[derive(Debug)]
pub struct LightLoad {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<LoadSample>>,
}

impl LightLoad {
    /// Starts a load on a new file, and returns after a first few operations.
    ///
    /// # Errors
    /// If the file already exists, or is not on a disk of the plan.
    pub fn start(
        gateway: &dyn Gateway,
        plan: &Plan,
        path: &Path,
        clock: RealClock,
    ) -> Result<Self, LightLoadError> {
        is_on_the_plan(gateway, plan, path)?;
        let file = make(path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = mpsc::channel();
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("observe".to_owned())
            .spawn(move || write(&file, clock, &told, &ready))
            .map_err(|source| system(path, "start its load", source))?;
        // Too slow to be ready, or ended; the samples show it.
        is_ready.recv_timeout(BEFORE_MAX).ok();
        Ok(Self { stop, thread })
    }

    /// Stops the load and returns all of its operations.
    pub fn stop(self) -> Vec<LoadSample> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn system(path: &Path, operation: &'static str, source: io::Error) -> LightLoadError {
    LightLoadError::System { path: path.to_owned(), operation, source }
}

fn write(file: &File, clock: RealClock, stop: &AtomicBool, ready: &mpsc::Sender<()>) -> Vec<LoadSample> {
    let mut samples = Vec::new();
    let mut block = [0_u8; BLOCK];
    while !stop.load(Ordering::Relaxed) {
        // Different data each time, since a drive may recognise repeated data.
        block[..8].copy_from_slice(&(samples.len() as u64).to_le_bytes());
        let submitted_at = clock.now();
        let written = file.write_all_at(&block, 0).and_then(|()| file.sync_data());
        let latency = clock.now().since(submitted_at);
        samples.push(LoadSample {
            submitted_at,
            latency,
            error: written.err().map(|error| error.to_string()),
        });
        if samples.len() == BEFORE {
            // The receiver may have given up on a slow disk.
            ready.send(()).ok();
        }
        std::thread::sleep(PERIOD.saturating_sub(Duration::from_nanos(latency.0)));
    }
    samples
}

fn make(path: &Path) -> Result<File, LightLoadError> {
    let file = File::options().read(true).write(true).create_new(true).open(path);
    let file = file.map_err(|source| LightLoadError::File { path: path.to_owned(), source })?;
    fs::remove_file(path).map_err(|source| system(path, "remove it again", source))?;
    let written = file.write_all_at(&[0; BLOCK], 0).and_then(|()| file.sync_all());
    written.map_err(|source| system(path, "write it", source))?;
    Ok(file)
}

fn is_on_the_plan(gateway: &dyn Gateway, plan: &Plan, path: &Path) -> Result<(), LightLoadError> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let way = survey_path(gateway.tree(), gateway.probe(), &directory.to_string_lossy())?;
    let is_below = |name: &str| way.layers.iter().any(|layer| layer.name == name);
    if plan.changes.iter().any(|change| is_below(&change.name)) {
        return Ok(());
    }
    let names: Vec<&str> = plan.changes.iter().map(|change| change.name.as_str()).collect();
    let disks = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(LightLoadError::Elsewhere { path: path.to_owned(), disks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_leaves_no_file_and_keeps_every_operation() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("load");
        let file = make(&path).unwrap();
        assert!(!path.exists());
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = mpsc::channel();
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || write(&file, RealClock::start(), &told, &ready));
        is_ready.recv().unwrap();
        let samples = Box::new(LightLoad { stop, thread }).stop();
        assert!(samples.len() >= BEFORE, "{}", samples.len());
        assert!(samples.iter().all(|sample| sample.error.is_none()), "{samples:?}");
        assert!(samples.windows(2).all(|pair| pair[0].submitted_at < pair[1].submitted_at));
    }

    #[test]
    fn a_file_that_is_there_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("precious");
        fs::write(&path, "mine").unwrap();
        assert!(make(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
