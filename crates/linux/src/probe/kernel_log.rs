//! Messages of the kernel log about a driver's handling of flushes that appear nowhere else.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

use super::{Refusal, Reply};

/// Substrings of the messages that are kept: megaraid_sas (megasas_ioc_init_fusion) about its firmware, sd
/// (sd_read_cache_type) about drives without a caching page.
const ABOUT_FLUSHES: [&str; 3] = ["FW supports sync cache", "Caching mode page", "Assuming drive cache"];

/// Upper bound of the number of records in a kernel log buffer.
const RECORDS_MAX: usize = 1 << 20;

/// Returns the messages that contain one of [`ABOUT_FLUSHES`], one on each line.
///
/// # Errors
/// [`Refusal::Denied`] if only root may read the log (kernel.dmesg_restrict).
pub(super) fn about_flushes() -> Reply {
    let mut log = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/kmsg")
        .map_err(|error| Refusal::from_io(&error))?;
    let mut lines = String::new();
    let mut record = [0_u8; 8192];
    for _ in 0..RECORDS_MAX {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(length) => {
                let text = String::from_utf8_lossy(&record[..length]);
                // Format: "priority,sequence,time,flag;message", with continuation lines that start with a
                // blank.
                let message =
                    text.lines().next().and_then(|line| line.split_once(';')).map_or("", |(_, m)| m);
                if ABOUT_FLUSHES.iter().any(|needle| message.contains(needle)) {
                    lines.push_str(message);
                    lines.push('\n');
                }
            }
            // EPIPE: the record was overwritten while reading; the next read continues after it.
            Err(error) if error.kind() == ErrorKind::BrokenPipe || error.kind() == ErrorKind::Interrupted => {
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(Refusal::from_io(&error)),
        }
    }
    Ok(lines.into_bytes())
}
