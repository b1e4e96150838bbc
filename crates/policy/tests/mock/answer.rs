//! Answers of drives to queries.

use plumb_block::Errno;
use plumb_linux::probe::wire::caching_page::{self, CachingPage};
use plumb_linux::probe::wire::dm;
use plumb_linux::probe::{PageControl, ProbedDevice, Refusal, Reply, Request};

use super::disk::{MockDisk, MockKind};
use super::encode;
use super::machine::Machine;
use crate::gateway::{Disk, GatewayError, NvmeCommand, Query};
use crate::wire::{ata, nvme_command, nvme_log, ocp_log, sct};
use plumb_linux::command::sense::AtaStatus;

const ENOTTY: Errno = Errno(25);
/// ILLEGAL REQUEST, INVALID COMMAND OPERATION CODE and INVALID FIELD IN CDB.
const UNKNOWN_COMMAND: Refusal = Refusal::Sense { key: 5, asc: 0x20, ascq: 0 };
const UNKNOWN_FIELD: Refusal = Refusal::Sense { key: 5, asc: 0x24, ascq: 0 };

impl Machine {
    pub(super) fn probe(&mut self, device: ProbedDevice<'_>, request: Request) -> Reply {
        self.settle();
        if request == Request::KernelLog {
            return Ok(Vec::new());
        }
        if request == Request::DmTable {
            return self.table(device.name).ok_or(Refusal::NoNode);
        }
        let index = self.index(device.name).ok_or(Refusal::NoNode)?;
        let disk = &mut self.disks[index];
        if disk.number != device.number {
            return Err(Refusal::OtherDevice);
        }
        // A unit attention is reported once; the live probe repeats its query.
        disk.attention = false;
        disk.answer(request)
    }

    fn table(&self, name: &str) -> Option<Vec<u8>> {
        let below = &self.stacked.get(name)?.below;
        let lines: Vec<String> = below.iter().map(|below| format!("{below} 0")).collect();
        let targets: Vec<_> = lines
            .iter()
            .enumerate()
            .map(|(at, line)| (at as u64 * 2048, 2048, "linear", line.as_str()))
            .collect();
        Some(dm::encode(&targets))
    }

    pub(super) fn query(&mut self, asked: &Disk, query: &Query) -> Result<Vec<u8>, GatewayError> {
        self.settle();
        let index = self.index(&asked.name).ok_or_else(|| GatewayError::Gone { name: asked.name.clone() })?;
        let disk = &mut self.disks[index];
        disk.attention = false;
        if disk.number != asked.number {
            return Err(GatewayError::OtherDisk {
                name: asked.name.clone(),
                found: format!("device {}", disk.number),
                expected: format!("device {}", asked.number),
            });
        }
        disk.query(query).map_err(|refusal| refused(&asked.name, refusal))
    }
}

/// Returns a refusal as an error of the gateway.
pub(super) fn refused(name: &str, refusal: Refusal) -> GatewayError {
    let step = format!("command to {name}");
    match refusal {
        Refusal::Denied => GatewayError::Os { step, errno: Errno::EPERM },
        Refusal::Sense { key, asc, ascq } => GatewayError::Sense { step, key, asc, ascq },
        Refusal::NvmeStatus(status) => GatewayError::NvmeStatus { step, status },
        Refusal::Failed(errno) => GatewayError::Os { step, errno },
        Refusal::NoNode | Refusal::OtherDevice | Refusal::NotRecorded | Refusal::Short => {
            GatewayError::Os { step, errno: Errno::EIO }
        }
    }
}

impl MockDisk {
    pub(super) fn is_scsi(&self) -> bool {
        !matches!(self.kind, MockKind::Nvme | MockKind::Virtio)
    }

    fn answer(&self, request: Request) -> Reply {
        if self.denied {
            return Err(Refusal::Denied);
        }
        match request {
            Request::CachingPage(control) if self.is_scsi() => self.caching_page(control),
            Request::Inquiry if self.is_scsi() => Ok(self.inquiry()),
            Request::ExtendedInquiry if self.is_scsi() => {
                let bits = if self.nonvolatile { 0b10 } else { 0b01 };
                Ok([&[0, 0x86, 0, 0x3c, 0, 0, bits][..], &[0; 57]].concat())
            }
            Request::AtaIdentify if self.kind == MockKind::Sata => Ok(self.identify()),
            Request::AtaIdentify if self.is_scsi() => Err(UNKNOWN_COMMAND),
            Request::NvmeIdentifyController if self.kind == MockKind::Nvme => Ok(self.controller()),
            Request::NvmeWriteCache(control) if self.kind == MockKind::Nvme => self.feature(control),
            _ => Err(Refusal::Failed(ENOTTY)),
        }
    }

    fn caching_page(&self, control: PageControl) -> Reply {
        if !self.has_page {
            return Err(UNKNOWN_FIELD);
        }
        let write_cache = match control {
            PageControl::Current => self.wce,
            PageControl::Changeable => self.changeable,
            PageControl::Default => self.default,
            PageControl::Saved => self.saved.unwrap_or(self.default),
        };
        Ok(caching_page::encode(&CachingPage {
            saveable: self.saved.is_some(),
            write_cache,
            read_cache_disabled: self.read_cache_disabled,
            nonvolatile_disabled: Some(false),
            write_protected: self.write_protected,
            dpofua: true,
        }))
    }

    fn inquiry(&self) -> Vec<u8> {
        let text = format!("{:8.8}{:16.16}{:4.4}", self.vendor, self.model, "1.0");
        [&[0_u8, 0, 6, 2, 91, 0, 0, 0][..], text.as_bytes()].concat()
    }

    /// IDENTIFY DEVICE: serial, model, the cache (words 82, 83, 85, 87), SCT (206), 7200 rpm (217).
    fn identify(&self) -> Vec<u8> {
        let mut data = vec![0_u8; 512];
        let mut text = |word: usize, length: usize, text: &str| {
            let padded = format!("{text:length$.length$}");
            for (pair, at) in padded.as_bytes().chunks_exact(2).zip((word * 2..).step_by(2)) {
                (data[at], data[at + 1]) = (pair[1], pair[0]);
            }
        };
        text(10, 20, &self.serial);
        text(27, 40, &self.model);
        let mut word = |number: usize, value: u16| {
            data[number * 2..number * 2 + 2].copy_from_slice(&value.to_le_bytes());
        };
        word(82, 0x20);
        word(83, 0x4000);
        word(85, u16::from(self.wce) << 5);
        word(87, 0x4000);
        word(206, if self.sct.is_some() { 0x11 } else { 0 });
        word(217, 7200);
        data
    }

    fn controller(&self) -> Vec<u8> {
        let mut data = vec![0_u8; 4096];
        data[4..24].copy_from_slice(format!("{:20.20}", self.serial).as_bytes());
        data[24..64].copy_from_slice(format!("{:40.40}", self.model).as_bytes());
        data[525] = u8::from(self.vwc);
        data
    }

    fn feature(&self, control: PageControl) -> Reply {
        if !self.vwc {
            return Err(Refusal::NvmeStatus(0x4002));
        }
        let value = match control {
            PageControl::Current => u32::from(self.wce),
            PageControl::Default => u32::from(self.default),
            PageControl::Saved => u32::from(self.saved.unwrap_or(self.default)),
            PageControl::Changeable => u32::from(self.saved.is_some()) | u32::from(self.changeable) << 2,
        };
        Ok(value.to_le_bytes().to_vec())
    }

    fn query(&self, query: &Query) -> Reply {
        if self.denied {
            return Err(Refusal::Denied);
        }
        match query {
            Query::Scsi { cdb, length } if self.is_scsi() => self.scsi(cdb).map(|mut bytes| {
                bytes.truncate(*length);
                bytes
            }),
            Query::ScsiSense { cdb, data } if self.kind == MockKind::Sata => self.registers(cdb, data),
            Query::ScsiSense { .. } if self.is_scsi() => Err(UNKNOWN_COMMAND),
            Query::NvmeAdmin { command, .. } if self.kind == MockKind::Nvme => self.admin(*command),
            _ => Err(Refusal::Failed(ENOTTY)),
        }
    }

    fn scsi(&self, cdb: &[u8]) -> Reply {
        let (names, serial) = encode::identity(self.world_wide_name(), &self.serial);
        match cdb {
            [0x12, 1, 0x83, ..] => Ok(names),
            [0x12, 1, 0x80, ..] => Ok(serial),
            [0x12, 1, 0xb1, ..] => Ok([&[0, 0xb1, 0, 0x3c, 0x1c, 0x20][..], &[0; 58]].concat()),
            [0x12, 0, ..] => Ok(self.inquiry()),
            cdb if cdb == ata::SMART_READ_DATA && self.kind == MockKind::Sata => {
                Ok(encode::smart(self.power_cycles.unwrap_or(0)))
            }
            [0x5e, 0, ..] if self.kind == MockKind::Sas => {
                Ok([&[0; 4][..], &(self.registrations * 8).to_be_bytes()].concat())
            }
            _ => Err(UNKNOWN_FIELD),
        }
    }

    /// Executes ATA commands whose answer is in the registers.
    fn registers(&self, cdb: &[u8], data: &[u8]) -> Reply {
        let asks_state = cdb == ata::write_log(sct::LOG) && data == sct::ask_state();
        let (Some(state), true) = (self.sct, asks_state) else { return Err(UNKNOWN_FIELD) };
        let [low, high] = state.code().to_le_bytes();
        Ok(encode::encode_ata(AtaStatus { error: 0, count: low, lba_low: high, status: 0x50 }))
    }

    fn admin(&self, command: NvmeCommand) -> Reply {
        let log = |page, bytes| nvme_command::log_page(page, bytes) == command;
        if command.opcode == 0x06 {
            let mut data = if command.cdw[0] == 1 { self.controller() } else { vec![0_u8; 4096] };
            if command.cdw[0] == 0 {
                data[120..128].copy_from_slice(&self.world_wide_name());
            }
            return Ok(data);
        }
        if log(nvme_log::PAGE, nvme_log::BYTES) {
            let mut data = vec![0_u8; nvme_log::BYTES as usize];
            data[0] = u8::from(self.backup_failed) << 4;
            data[112..120].copy_from_slice(&self.power_cycles.unwrap_or(0).to_le_bytes());
            data[144..152].copy_from_slice(&self.unsafe_shutdowns.to_le_bytes());
            return Ok(data);
        }
        match self.ocp {
            Some(page) if log(ocp_log::PAGE, ocp_log::BYTES) => Ok(encode::ocp_log(page)),
            // Invalid Log Page.
            _ => Err(Refusal::NvmeStatus(0x4109)),
        }
    }
}
