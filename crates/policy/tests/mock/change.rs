//! Effects of changes on drives and on the kernel's view of them.

use plumb_block::{Errno, Nanos};
use plumb_linux::probe::Refusal;

use super::answer::refused;
use super::disk::{MockDisk, MockKind};
use super::layout;
use super::machine::Machine;
use crate::gateway::{Change, Disk, GatewayError, NvmeCommand};
use crate::wire::{ata, mode_page, nvme_command, sct};

const WRITE_BACK: &str = "write back";
const WRITE_THROUGH: &str = "write through";
const ENOENT: Errno = Errno(2);
/// ILLEGAL REQUEST, INVALID FIELD IN PARAMETER LIST.
const BAD_PARAMETER: Refusal = Refusal::Sense { key: 5, asc: 0x26, ascq: 0 };
const UNKNOWN_COMMAND: Refusal = Refusal::Sense { key: 5, asc: 0x20, ascq: 0 };

impl Machine {
    pub(super) fn carry_out(&mut self, meant: &Disk, change: &Change) -> Result<(), GatewayError> {
        self.settle();
        if *change == Change::ReloadTable {
            return self.reload(meant);
        }
        let index = self.check(meant)?;
        let now = self.now();
        let disk = &mut self.disks[index];
        let outcome = match change {
            Change::Scsi { cdb, data } => disk.scsi_change(now, cdb, data),
            Change::NvmeAdmin(command) => disk.admin_change(now, *command),
            Change::Attribute { path, text } => disk.attribute(now, path, text),
            Change::ClearOverride { path } => match disk.attribute(now, path, "no override") {
                Err(Refusal::Failed(Errno::EINVAL)) => Ok(()),
                other => other,
            },
            Change::Flush => {
                disk.flushes += 1;
                Ok(())
            }
            Change::ReloadTable => Ok(()),
        };
        self.refresh(index);
        if matches!(change, Change::NvmeAdmin(_)) {
            self.share(index);
        }
        outcome.map_err(|refusal| refused(&meant.name, refusal))
    }

    /// Gives all namespaces of the controller the cache of this one.
    fn share(&mut self, index: usize) {
        let (controller, wce, saved) = {
            let disk = &self.disks[index];
            (layout::controller(disk).to_owned(), disk.wce, disk.saved)
        };
        let others = self.disks.iter_mut().filter(|disk| disk.kind == MockKind::Nvme);
        for disk in others.filter(|disk| layout::controller(disk) == controller) {
            (disk.wce, disk.saved) = (wce, saved);
        }
    }

    /// Returns the index of the disk `meant`, if the disk of that name has its identity.
    fn check(&self, meant: &Disk) -> Result<usize, GatewayError> {
        let gone = || GatewayError::Gone { name: meant.name.clone() };
        let index = self.index(&meant.name).ok_or_else(gone)?;
        let disk = &self.disks[index];
        if meant.number == disk.number && meant.identity == disk.identity() {
            return Ok(index);
        }
        Err(GatewayError::OtherDisk {
            name: meant.name.clone(),
            found: format!("{} ({})", disk.identity(), disk.number),
            expected: format!("{} ({})", meant.identity, meant.number),
        })
    }
}

impl MockDisk {
    fn scsi_change(&mut self, now: Nanos, cdb: &[u8], data: &[u8]) -> Result<(), Refusal> {
        if self.denied {
            return Err(Refusal::Denied);
        }
        if !self.is_scsi() {
            return Err(Refusal::Failed(Errno(25)));
        }
        self.attention = false;
        if let Some((wce, save)) = mode_page::read_select(cdb, data) {
            return self.mode_select(now, wce, save);
        }
        if self.kind != MockKind::Sata {
            return Err(UNKNOWN_COMMAND);
        }
        if let Some(wce) = ata::read_set_write_cache(cdb) {
            self.set(now, wce);
            self.revalidate(now);
            return Ok(());
        }
        match sct::read_set(data) {
            Some((state, kept)) if self.sct.is_some() && cdb == ata::write_log(sct::LOG) => {
                self.sct = Some(state);
                self.sct_kept = kept;
                match state {
                    sct::WriteCache::ForcedOn => self.wce = true,
                    sct::WriteCache::ForcedOff => self.wce = false,
                    sct::WriteCache::AtaControlled => {}
                }
                Ok(())
            }
            _ => Err(UNKNOWN_COMMAND),
        }
    }

    fn mode_select(&mut self, now: Nanos, wce: bool, save: mode_page::Save) -> Result<(), Refusal> {
        let saves = save == mode_page::Save::Yes;
        if !self.has_page || (saves && self.saved.is_none()) || (!self.changeable && wce != self.wce) {
            return Err(BAD_PARAMETER);
        }
        self.set(now, wce);
        if saves && !self.ignores_set {
            self.saved = Some(wce);
        }
        // libata converts it to SET FEATURES and reads the drive again; sd itself does not notice (H3).
        if self.kind == MockKind::Sata {
            self.revalidate(now);
        }
        Ok(())
    }

    fn revalidate(&mut self, now: Nanos) {
        if self.revalidate_delay == Nanos::ZERO {
            self.read_again();
        } else {
            self.pending_read = Some(Nanos(now.0 + self.revalidate_delay.0));
        }
    }

    fn admin_change(&mut self, now: Nanos, command: NvmeCommand) -> Result<(), Refusal> {
        if self.kind != MockKind::Nvme {
            return Err(Refusal::Failed(Errno(25)));
        }
        let Some((wce, save)) = nvme_command::read_set_write_cache(command) else {
            return Err(Refusal::NvmeStatus(0x4001));
        };
        let status = match () {
            () if self.denied => return Err(Refusal::Denied),
            () if !self.vwc => 0x4002,
            // Feature Not Namespace Specific, Feature Identifier Not Saveable, Feature Not Changeable.
            () if command.nsid != 0 => 0x410f,
            () if save && self.saved.is_none() => 0x410d,
            () if !self.changeable => 0x410e,
            () => 0,
        };
        if status != 0 {
            return Err(Refusal::NvmeStatus(status));
        }
        self.set(now, wce);
        if save && !self.ignores_set {
            self.saved = Some(wce);
        }
        Ok(())
    }

    fn attribute(&mut self, now: Nanos, path: &str, text: &str) -> Result<(), Refusal> {
        let Some(file) = path.rsplit('/').next() else { return Err(Refusal::Failed(ENOENT)) };
        match file {
            "write_cache" if path == format!("{}/queue/write_cache", self.sysfs) => self.queue(text),
            "rescan" if self.is_scsi() => {
                // libata answers from its copy of IDENTIFY, which is old until it has read the drive again.
                if self.pending_read.is_none() {
                    self.read_again();
                }
                Ok(())
            }
            "cache_type" if layout::cache_type(self).as_deref() == Some(path) => match self.kind {
                MockKind::Virtio => self.virtio_cache_type(text),
                _ => self.cache_type(now, text),
            },
            _ => Err(Refusal::Failed(ENOENT)),
        }
    }

    /// Sets only the kernel's flag, which Linux 6.12 accepts for any device.
    fn queue(&mut self, text: &str) -> Result<(), Refusal> {
        self.kernel.disabled = match text {
            WRITE_BACK => false,
            WRITE_THROUGH => true,
            _ => return Err(Refusal::Failed(Errno::EINVAL)),
        };
        Ok(())
    }

    fn virtio_cache_type(&mut self, text: &str) -> Result<(), Refusal> {
        if !self.changeable {
            return Err(Refusal::Failed(Errno::EACCES));
        }
        let wce = match text {
            WRITE_BACK => true,
            WRITE_THROUGH => false,
            _ => return Err(Refusal::Failed(Errno::EINVAL)),
        };
        if !self.ignores_set {
            self.wce = wce;
            self.read_again();
        }
        Ok(())
    }

    /// drivers/scsi/sd.c, cache_type_store.
    fn cache_type(&mut self, now: Nanos, text: &str) -> Result<(), Refusal> {
        let (text, temporary) = match text.strip_prefix("temporary ") {
            Some(text) => (text, true),
            None => (text, false),
        };
        self.kernel.overridden = temporary;
        let back = match text {
            WRITE_BACK => true,
            WRITE_THROUGH => false,
            _ => return Err(Refusal::Failed(Errno::EINVAL)),
        };
        if temporary {
            self.kernel.cache = back;
            return Ok(());
        }
        if !self.has_page || (self.refuses_same_value && back == self.wce) {
            return Err(Refusal::Failed(Errno::EINVAL));
        }
        // The protection makes sd read the page as one without a cache, and it writes that back (H8).
        let back = back && !self.write_protected;
        self.set(now, back);
        if let (Some(_), false) = (self.saved, self.ignores_set) {
            self.saved = Some(back);
        }
        if self.kind == MockKind::Sata {
            self.revalidate(now)
        } else {
            self.read_again()
        }
        Ok(())
    }
}
