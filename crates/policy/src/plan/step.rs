//! A step as a plan says it.

use crate::gateway::{Change, NvmeCommand};
use crate::mechanism::Step;

use super::document::PlannedStep;

/// The step in words and bytes.
pub(crate) fn planned(step: &Step) -> PlannedStep {
    PlannedStep { on: step.disk.name.clone(), words: step.words.clone(), bytes: bytes(&step.change) }
}

/// What is sent to the device or written to the kernel.
fn bytes(change: &Change) -> String {
    match change {
        Change::Scsi { cdb, data } if data.is_empty() => format!("SG_IO {}", hex(cdb)),
        Change::Scsi { cdb, data } => format!("SG_IO {} with {}", hex(cdb), hex(data)),
        Change::NvmeAdmin(command) => nvme(command),
        Change::Attribute { path, text } => format!("{text:?} to {path}"),
        Change::Flush => "fsync, and the command that empties the cache".to_owned(),
        Change::ReloadTable => "DM_TABLE_LOAD, DM_DEV_SUSPEND, DM_DEV_SUSPEND (resume)".to_owned(),
        Change::RescanNamespaces => "NVME_IOCTL_RESCAN".to_owned(),
    }
}

fn nvme(command: &NvmeCommand) -> String {
    let words: Vec<String> = command.cdw.iter().map(|word| format!("{word:08x}")).collect();
    format!("NVMe admin {:02x} nsid {} cdw10-15 {}", command.opcode, command.nsid, words.join(" "))
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ")
}
