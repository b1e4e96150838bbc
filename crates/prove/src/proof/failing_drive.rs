//! Drive with a write that fails below a file system, so that fsync(2) fails as on a broken drive.
//!
//! Changing only the result of fsync would leave the pages dirty. Only a failed write makes Linux mark them
//! clean, which is why the next fsync succeeds (Rebello et al., ATC 2020).

use std::path::Path;

use plumb_block::{Bytes, Time, in_one_line};
use plumb_linux::{file_system, isolated_thread};
use plumb_report::document::power::TraceDocument;
use plumb_serve::attach::{AttachOptions, Attachment};
use plumb_sim::Handle;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::fault::Fault;
use plumb_sim::model::Model;

use crate::error::{Error, ErrorKind, Result};
use crate::file_system::FileSystem;
use crate::roles::Roles;

/// Capacity of one block group of ext4, so that its free space is contiguous. Only written blocks take
/// memory.
const SIZE: Bytes = Bytes(96 << 20);
const BLOCK: u64 = 512;

/// Runs `work` in an empty ext4 file system. The first write outside of its metadata and journal fails.
pub(super) fn run(work: &(dyn Fn(&Path) -> Result<TraceDocument> + Sync)) -> Result<TraceDocument> {
    let options = DriveOptions { size: Some(SIZE), ..DriveOptions::default() };
    let model = Model::named("memory").map_err(|error| Error::new(ErrorKind::Failed, in_one_line(&error)))?;
    let drive = Drive::new(&model, options)?;
    let drive = Handle::new(drive, Time::real());
    let directory = tempfile::tempdir()?;
    let name = format!("prove-trace-{}", std::process::id());
    let mut attachment = Attachment::new(drive.device(), &name, &AttachOptions::default())?;
    let device = attachment.path().to_owned();
    let worked = isolated_thread::run(|| -> Result<TraceDocument> {
        file_system::FileSystem::Ext4.make(&device, &[])?;
        let mounted = file_system::FileSystem::Ext4.mount(&device, directory.path(), "")?;
        let gap = Roles::new(mounted.path(), &device, FileSystem::Ext4).longest_gap(SIZE.0);
        let (first, last) = (gap.start / BLOCK, (gap.end / BLOCK).saturating_sub(1));
        let fault: std::result::Result<Fault, _> = format!("write:eio:lba={first}-{last}:times=1").parse();
        let fault = fault.map_err(|error| Error::failed("the fault of the drive", error))?;
        drive.with(|drive, _| drive.set_fault(fault));
        let document = work(mounted.path());
        let failed = drive.with(|drive, _| drive.faults().iter().map(Fault::struck).sum());
        drive.with(|drive, _| drive.clear_faults());
        mounted.unmount()?;
        let mut document = document?;
        document.set_failed_writes(failed);
        Ok(document)
    });
    attachment.detach()?;
    worked?
}
