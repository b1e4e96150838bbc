//! The raw buffers of all processors: `per_cpu/cpuN/trace_pipe_raw`, read page by page.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind as IoKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use plumb_block::Result;

use super::instance::{Instance, failed};
use super::page::{PageLayout, Record};

/// The buffers of an instance. Dropped before the instance is.
#[derive(Debug)]
pub struct Buffers {
    pipes: Vec<(PathBuf, File)>,
    layout: PageLayout,
    page: Vec<u8>,
}

impl Buffers {
    /// Opens those of `instance`.
    ///
    /// # Errors
    /// As open(2).
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

    /// Reads all that is there: `take` gets each record, those of one processor in order of time. Says how
    /// many were lost.
    ///
    /// # Errors
    /// As read(2).
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
