//! The kernel's accounting of bytes written by this process.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use plumb_block::Bytes;

use crate::tree::process::field;
use crate::tree::{LiveTree, Tree as _};

/// Returns the bytes that this process caused to be written to storage, on all devices: `write_bytes` of
/// /proc/self/io (proc(5)). The kernel counts a byte when its page becomes dirty, or when a direct request is
/// submitted, and subtracts data discarded before write-back. `None` if the kernel does not count.
pub fn written_by_this_process() -> Option<Bytes> {
    let text = LiveTree.text("/proc/self/io").ok()?;
    let written: u64 = field(&text, "write_bytes:")?;
    Some(Bytes(written.saturating_sub(field(&text, "cancelled_write_bytes:")?)))
}

/// Returns the bytes that the control group of this process wrote to each device, by device number such as
/// `8:0`: `wbytes` of io.stat (Documentation/admin-guide/cgroup-v2.rst). `None` unless this process is alone
/// in a version 2 group with I/O accounting.
pub fn written_by_own_group() -> Option<HashMap<String, Bytes>> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounted = |root: &&str| Path::new(root).join("cgroup.controllers").exists();
    let root = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].into_iter().find(mounted)?;
    in_group(&Path::new(root).join(group), std::process::id())
}

fn in_group(group: &Path, process: u32) -> Option<HashMap<String, Bytes>> {
    let members = fs::read_to_string(group.join("cgroup.procs")).ok()?;
    if members.lines().any(|line| line.parse() != Ok(process)) {
        return None;
    }
    let text = fs::read_to_string(group.join("io.stat")).ok()?;
    let device = |line: &str| {
        let (number, counts) = line.split_once(' ')?;
        let written = counts.split(' ').find_map(|word| word.strip_prefix("wbytes=")?.parse().ok())?;
        Some((number.to_owned(), Bytes(written)))
    };
    Some(text.lines().filter_map(device).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_counts_for_its_only_process() {
        let group = tempfile::tempdir().unwrap();
        fs::write(group.path().join("io.stat"), "8:0 rbytes=1 wbytes=4096 rios=1 wios=1\n7:3 \n").unwrap();
        fs::write(group.path().join("cgroup.procs"), "12\n").unwrap();
        let written = in_group(group.path(), 12).unwrap();
        assert_eq!(written, HashMap::from([("8:0".to_owned(), Bytes(4096))]));
        assert_eq!(in_group(group.path(), 13), None, "another's group");
        fs::write(group.path().join("cgroup.procs"), "12\n13\n").unwrap();
        assert_eq!(in_group(group.path(), 12), None, "a group of two");
    }

    #[test]
    fn what_this_process_writes_is_counted() {
        let before = written_by_this_process().unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, &[1; 1 << 20]).unwrap();
        file.as_file().sync_all().unwrap();
        let after = written_by_this_process().unwrap();
        // A file system in memory counts nothing.
        assert!(after >= before);
    }
}
