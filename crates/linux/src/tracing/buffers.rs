//! Raw trace buffers of all processors: `per_cpu/cpuN/trace_pipe_raw`, read page by page.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind as IoKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use plumb_block::Result;

use super::instance::{Instance, failed};
use super::page::{PageLayout, Record};

/// Trace buffers of an instance. Must be dropped before the instance.
#[derive(Debug)]
pub struct Buffers {
    pipes: Vec<(PathBuf, File)>,
    layout: PageLayout,
    page: Vec<u8>,
}

impl Buffers {
    /// Opens the buffers of `instance`.
    ///
    /// # Errors
    /// Fails as open(2) does.
    pub fn open(instance: &Instance) -> Result<Self> {
        let layout = PageLayout::parse(&instance.read("events/header_page")?)?;
        let directory = instance.path().join("per_cpu");
        let entries = std::fs::read_dir(&directory).map_err(|error| failed(&error, directory.display()))?;
        let mut pipes = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path().join("trace_pipe_raw");
            let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
            let pipe = OpenOptions::new().read(true).custom_flags(flags).open(&path);
            pipes.push((path.clone(), pipe.map_err(|error| failed(&error, path.display()))?));
        }
        Ok(Self { pipes, layout, page: vec![0; layout.size] })
    }

    /// Reads everything available and calls `take` for each record, in order of time for each processor.
    /// Returns the number of lost records.
    ///
    /// # Errors
    /// Fails as read(2) does.
    pub fn drain(&mut self, mut take: impl FnMut(Record<'_>)) -> Result<u64> {
        let mut lost = 0;
        for (path, pipe) in &mut self.pipes {
            loop {
                match pipe.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => lost += self.layout.records(&self.page[..length], &mut take),
                    Err(error) if error.kind() == IoKind::WouldBlock => break,
                    Err(error) if error.kind() == IoKind::Interrupted => {}
                    Err(error) => return Err(failed(&error, path.display())),
                }
            }
        }
        Ok(lost)
    }
}
