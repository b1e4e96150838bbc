//! The light load of `--observe`: 4 KiB and fdatasync, every 10 ms, on a file of its own on a disk that is
//! switched.
//!
//! The file is made anew and loses its name at once, so that nothing stays of it however the process ends. A
//! disk that the load does not reach would feel nothing, which would look like a switch that disturbs nobody:
//! so it must be on one of the disks of the plan.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use plumb_block::{Clock as _, RealClock};
use plumb_path::survey_path;
use plumb_policy::observe::LoadSample;
use plumb_policy::plan::Plan;

use super::host::Host;
use crate::exit::{Exit, Refusal};

const BLOCK: usize = 4096;
const PERIOD: Duration = Duration::from_millis(10);
/// Number of operations before the first switch, from which the undisturbed latency is known.
const BEFORE: usize = 25;
/// A disk that does not even do these in time is reported as it is.
const BEFORE_MAX: Duration = Duration::from_secs(10);

/// A load that runs until it is stopped.
pub(super) struct FsyncWriter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<LoadSample>>,
}

impl FsyncWriter {
    /// Starts a load on a new file, and returns when it has run a little.
    ///
    /// # Errors
    /// [`Exit::Usage`] if the file is there already, or is on no disk of the plan.
    pub(super) fn start(host: &Host, plan: &Plan, path: &Path, clock: RealClock) -> anyhow::Result<Self> {
        is_on_the_plan(host, plan, path)?;
        let file = make(path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = mpsc::channel();
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("observe".to_owned())
            .spawn(move || write(&file, clock, &told, &ready))
            .context("cannot start the load of --observe")?;
        // Too slow to be ready, or ended: its samples say so.
        is_ready.recv_timeout(BEFORE_MAX).ok();
        Ok(Self { stop, thread })
    }

    /// Stops the load and yields all that it did.
    pub(super) fn stop(self) -> Vec<LoadSample> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn write(file: &File, clock: RealClock, stop: &AtomicBool, ready: &mpsc::Sender<()>) -> Vec<LoadSample> {
    let mut samples = Vec::new();
    let mut block = [0_u8; BLOCK];
    while !stop.load(Ordering::Relaxed) {
        // Other bytes each time: a drive may know those that it has already.
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
            // Nobody waits any more where the disk was too slow.
            ready.send(()).ok();
        }
        std::thread::sleep(PERIOD.saturating_sub(Duration::from_nanos(latency.0)));
    }
    samples
}

fn make(path: &Path) -> anyhow::Result<File> {
    let shown = path.display();
    let file = File::options().read(true).write(true).create_new(true).open(path).map_err(|error| {
        let what =
            format!("--observe {shown}: cannot be made: {error}; name a new file on a disk of the plan");
        Refusal::new(Exit::Usage, what)
    })?;
    fs::remove_file(path).with_context(|| format!("--observe {shown}: cannot be removed again"))?;
    file.write_all_at(&[0; BLOCK], 0)
        .and_then(|()| file.sync_all())
        .with_context(|| format!("--observe {shown}: cannot be written"))?;
    Ok(file)
}

fn is_on_the_plan(host: &Host, plan: &Plan, path: &Path) -> anyhow::Result<()> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let shown = directory.to_string_lossy();
    let way = survey_path(host.gateway.tree(), host.gateway.probe(), &shown);
    let way = way.map_err(|error| Refusal::because(Exit::Usage, error))?;
    let is_below = |name: &str| way.layers.iter().any(|layer| layer.name == name);
    if plan.changes.iter().any(|change| is_below(&change.name)) {
        return Ok(());
    }
    let names: Vec<&str> = plan.changes.iter().map(|change| change.name.as_str()).collect();
    let message = format!(
        "--observe {}: it is on none of the disks that are changed ({}), and would feel nothing: name a new file in a \
         file system on one of them",
        path.display(),
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    );
    Err(Refusal::new(Exit::Usage, message).into())
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
        let samples = Box::new(FsyncWriter { stop, thread }).stop();
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
