//! NVMe admin commands of the volatile write cache, and Identify Namespace. NVMe Base 2.0: 5.15 Get Features,
//! 5.27 Set Features, 5.27.1.4 feature 06h; 5.16.1 Get Log Page; 5.17 Identify.

use crate::gateway::NvmeCommand;

use plumb_linux::probe::wire::text;
use plumb_state::hex;

const WRITE_CACHE: u32 = 0x06;
const SAVE: u32 = 1 << 31;
/// Identify Controller or Namespace: 4096 bytes.
pub(crate) const IDENTIFY_BYTES: usize = 4096;

/// Set Features 06h for the controller (namespace 0: a namespace id is answered with status 410Fh).
pub fn set_write_cache(enabled: bool, save: bool) -> NvmeCommand {
    let cdw10 = WRITE_CACHE | if save { SAVE } else { 0 };
    NvmeCommand { opcode: 0x09, nsid: 0, cdw: [cdw10, u32::from(enabled), 0, 0, 0, 0] }
}

/// Returns the state that a Set Features command sets, and whether it saves it; `None` if it is another
/// command.
pub fn read_set_write_cache(command: NvmeCommand) -> Option<(bool, bool)> {
    let is_write_cache = command.opcode == 0x09 && command.cdw[0] & 0xff == WRITE_CACHE;
    is_write_cache.then_some((command.cdw[1] & 1 == 1, command.cdw[0] & SAVE != 0))
}

/// Identify with this CNS.
pub fn identify(namespace: u32, cns: u8) -> NvmeCommand {
    NvmeCommand { opcode: 0x06, nsid: namespace, cdw: [u32::from(cns), 0, 0, 0, 0, 0] }
}

/// Creates Get Log Page for the controller; `bytes` must be a multiple of four. The offset is 0, and events
/// are retained.
pub fn log_page(page: u8, bytes: u32) -> NvmeCommand {
    const RETAIN_EVENT: u32 = 1 << 15;
    let dwords = (bytes / 4).saturating_sub(1);
    let cdw10 = u32::from(page) | RETAIN_EVENT | (dwords & 0xffff) << 16;
    NvmeCommand { opcode: 0x02, nsid: u32::MAX, cdw: [cdw10, dwords >> 16, 0, 0, 0, 0] }
}

/// Returns the names of a namespace in the format of the kernel's attribute `wwid`
/// (drivers/nvme/host/sysfs.c, wwid_show).
///
/// `controller` is Identify Controller data, `namespace` Identify Namespace data, `id` the number of the
/// namespace. All-zero names are left out.
pub fn names(controller: &[u8], namespace: &[u8], id: u32) -> Vec<String> {
    let mut names = Vec::new();
    let mut add = |field: Option<&[u8]>| {
        if let Some(field) = field.filter(|field| field.iter().any(|byte| *byte != 0)) {
            names.push(format!("eui.{}", hex::encode(field)));
        }
    };
    add(namespace.get(104..120));
    add(namespace.get(120..128));
    if let (Some(vendor), Some(serial), Some(model)) =
        (super::little::<2>(controller, 0), controller.get(4..24), controller.get(24..64))
    {
        let (serial, model) = (unpadded(serial), unpadded(model));
        names.push(format!("nvme.{vendor:04x}-{}-{}-{id:08x}", hex::encode(serial), hex::encode(model)));
    }
    names.extend(controller.get(4..24).and_then(text).map(|serial| format!("serial.{serial}")));
    names
}

/// Returns the UUID of a namespace in its identification descriptors, CNS 3 (figure 275): type 3, 16 bytes.
pub fn uuid(descriptors: &[u8]) -> Option<String> {
    let mut rest = descriptors;
    while let [kind, length, _, _, tail @ ..] = rest {
        if *kind == 0 {
            return None;
        }
        let value = tail.get(..usize::from(*length))?;
        if *kind == 3 && value.len() == 16 {
            let part = |range: std::ops::Range<usize>| hex::encode(&value[range]);
            return Some(format!(
                "uuid.{}-{}-{}-{}-{}",
                part(0..4),
                part(4..6),
                part(6..8),
                part(8..10),
                part(10..16)
            ));
        }
        rest = &tail[value.len()..];
    }
    None
}

fn unpadded(field: &[u8]) -> &[u8] {
    let end = field.iter().rposition(|byte| !matches!(byte, b' ' | 0)).map_or(0, |last| last + 1);
    &field[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_where_the_specification_says() {
        let set = set_write_cache(true, true);
        assert_eq!((set.opcode, set.nsid, set.cdw[0], set.cdw[1]), (0x09, 0, 0x8000_0006, 1));
        assert_eq!(read_set_write_cache(set), Some((true, true)));
        assert_eq!(read_set_write_cache(identify(0, 1)), None);
        let log = log_page(0xc0, 512);
        assert_eq!((log.opcode, log.nsid, log.cdw[0]), (0x02, u32::MAX, 0x007f_80c0));
    }

    #[test]
    fn names_are_those_of_the_kernel() {
        let mut controller = vec![0_u8; 4096];
        controller[..2].copy_from_slice(&[0x36, 0x1b]);
        controller[4..24].copy_from_slice(b"nvme                ");
        controller[24..64].fill(b' ');
        controller[24..38].copy_from_slice(b"QEMU NVMe Ctrl");
        let names = names(&controller, &vec![0; 4096], 1);
        assert_eq!(names, ["nvme.1b36-6e766d65-51454d55204e564d65204374726c-00000001", "serial.nvme"]);
        let mut descriptors = vec![1, 8, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 3, 16, 0, 0];
        descriptors.extend(0..16);
        assert_eq!(uuid(&descriptors).as_deref(), Some("uuid.00010203-0405-0607-0809-0a0b0c0d0e0f"));
        assert_eq!(uuid(&[0; 8]), None);
    }
}
