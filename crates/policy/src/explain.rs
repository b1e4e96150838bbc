//! `--explain`: each step with the bytes sent, for comparison with a specification.

use crate::gateway::{Change, NvmeCommand};
use crate::wire::{ata, mode_page, nvme_command, sct};

/// Maximum number of data bytes printed; in everything that plumb sends, the rest is zero.
const BYTES_MAX: usize = 64;

/// Formats the bytes of a change, one line each.
pub fn change(change: &Change) -> Vec<String> {
    match change {
        Change::Scsi { cdb, data } => {
            let mut lines = vec![format!("SG_IO, {}", name_of(cdb, data)), format!("cdb  {}", bytes(cdb))];
            if !data.is_empty() {
                lines.push(format!("data {}", bytes(data)));
            }
            lines
        }
        Change::NvmeAdmin(command) => nvme(*command),
        Change::Attribute { path, text } => vec![format!("write `{text}` to {path}")],
        Change::ClearOverride { path } => {
            vec![format!("write `no override` to {path}; the kernel answers EINVAL and forgets an override")]
        }
        Change::Flush => vec!["fsync on the node, then SYNCHRONIZE CACHE or NVMe Flush".to_owned()],
        Change::ReloadTable => {
            vec![
                "DM_TABLE_STATUS, DM_TABLE_LOAD of the same table, DM_DEV_SUSPEND to resume with it"
                    .to_owned(),
            ]
        }
    }
}

fn nvme(command: NvmeCommand) -> Vec<String> {
    let what = match nvme_command::read_set_write_cache(command) {
        Some((enabled, save)) => {
            let saved = if save { ", saved" } else { "" };
            format!("Set Features 06h, WCE={}{saved}", u8::from(enabled))
        }
        None => format!("opcode {:02x}h", command.opcode),
    };
    let words: Vec<String> =
        command.cdw.iter().zip(10..).map(|(word, number)| format!("cdw{number} {word:08x}")).collect();
    vec![
        format!("NVME_IOCTL_ADMIN_CMD, {what}"),
        format!("opcode {:02x} nsid {:08x} {}", command.opcode, command.nsid, words.join(" ")),
    ]
}

fn name_of(cdb: &[u8], data: &[u8]) -> String {
    if let Some((enabled, save)) = mode_page::read_select(cdb, data) {
        let saved =
            if save == mode_page::Save::Yes { ", SP=1: saved in the drive" } else { ", SP=0: not saved" };
        return format!("MODE SELECT(10) page 08h, WCE={}{saved}", u8::from(enabled));
    }
    if let Some(enabled) = ata::read_set_write_cache(cdb) {
        let feature = if enabled { "02h: enable" } else { "82h: disable" };
        return format!("ATA PASS-THROUGH(16), SET FEATURES {feature} the write cache");
    }
    if let Some((state, kept)) = sct::read_set(data) {
        let kept = if kept { ", kept over a power cycle" } else { "" };
        return format!("ATA PASS-THROUGH(16), SCT Feature Control 1: {}{kept}", state.word());
    }
    format!("operation {:02x}h", cdb.first().copied().unwrap_or(0))
}

fn bytes(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(BYTES_MAX)];
    let mut text: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > BYTES_MAX {
        text.push(format!("... ({} bytes)", bytes.len()));
    }
    text.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_named_and_printed() {
        let set = Change::Scsi { cdb: ata::set_write_cache(false).to_vec(), data: Vec::new() };
        let lines = change(&set);
        assert!(lines[0].contains("SET FEATURES 82h"), "{lines:?}");
        assert_eq!(lines[1], "cdb  85 06 20 00 82 00 00 00 00 00 00 00 00 40 ef 00");
        let nvme = change(&Change::NvmeAdmin(nvme_command::set_write_cache(true, true)));
        assert!(
            nvme[0].contains("WCE=1, saved") && nvme[1].contains("cdw10 80000006 cdw11 00000001"),
            "{nvme:?}"
        );
        let kept = sct::set(sct::WriteCache::ForcedOff, true);
        let lines = change(&Change::Scsi { cdb: ata::write_log(sct::LOG).to_vec(), data: kept });
        assert!(lines[0].contains("forced-off, kept") && lines[2].contains("(512 bytes)"), "{lines:?}");
    }
}
