//! The few lines of the kernel log that tell how a driver treats flushes, and are told nowhere else.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

use super::{Refusal, Reply};

/// Texts that the lines contain: megaraid_sas (megasas_ioc_init_fusion) on its firmware, sd
/// (sd_read_cache_type) on drives without a caching page. Nothing else of the log is kept.
const ABOUT_FLUSHES: [&str; 3] = ["FW supports sync cache", "Caching mode page", "Assuming drive cache"];

/// More records than any kernel log buffer holds.
const RECORDS_MAX: usize = 1 << 20;

/// Returns the messages that contain one of [`ABOUT_FLUSHES`], one a line.
///
/// # Errors
/// [`Refusal::Denied`] where the log is for root only (kernel.dmesg_restrict).
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
                // "priority,sequence,time,flag;message", continued by lines that start with a blank.
                let message =
                    text.lines().next().and_then(|line| line.split_once(';')).map_or("", |(_, m)| m);
                if ABOUT_FLUSHES.iter().any(|needle| message.contains(needle)) {
                    lines.push_str(message);
                    lines.push('\n');
                }
            }
            // EPIPE: the record was overwritten while reading; the next read goes on behind it.
            Err(error) if error.kind() == ErrorKind::BrokenPipe || error.kind() == ErrorKind::Interrupted => {
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(Refusal::from_io(&error)),
        }
    }
    Ok(lines.into_bytes())
}
