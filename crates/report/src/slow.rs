//! A slow event or a lost write in one line, as biosnoop and ext4slower have it.

use crate::document::live::{DeviceActivity, SlowEvent};
use crate::document::observation::WritebackError;
use crate::printable::printable;
use crate::quantity::{bytes, count, duration};

/// Returns an event as one line, without its time: what it was, how long, whose, where, and what the device
/// did meanwhile.
pub fn slow_line(event: &SlowEvent) -> String {
    let size = event.bytes.filter(|size| *size > 0).map(|size| format!(" {}", bytes(size as f64)));
    let queue = event.queue_seconds.map(|seconds| format!(" ({} in queue)", duration(seconds)));
    let pid = event.pid.map(|pid| format!("[{pid}]"));
    let file = event.file.as_ref().map(|file| format!(" {}", printable(file)));
    let places = [&event.device, &event.mount_point].into_iter().flatten();
    let places: Vec<String> = places.map(|place| printable(place)).collect();
    let place = if places.is_empty() { String::new() } else { format!(" on {}", places.join(" ")) };
    let did = match (&event.device_then, &event.device) {
        (Some(then), Some(device)) => format!("; {} meanwhile: {}", printable(device), activity(then)),
        _ => String::new(),
    };
    format!(
        "{}{} {}{} {}{}{}{place}{did}",
        event.operation,
        size.unwrap_or_default(),
        duration(event.seconds),
        queue.unwrap_or_default(),
        printable(&event.process),
        pid.unwrap_or_default(),
        file.unwrap_or_default(),
    )
}

/// Returns a file whose write failed after the page cache had taken it, in one line.
pub fn lost_line(error: &WritebackError) -> String {
    let file = error.path.as_ref().map_or_else(|| format!("inode {}", error.inode), |path| printable(path));
    let mount_point = error.mount_point.as_ref().map(|point| format!(" {}", printable(point)));
    format!(
        "write lost: {file} on {}{}: {}",
        printable(&error.device),
        mount_point.unwrap_or_default(),
        printable(&error.error)
    )
}

fn activity(of: &DeviceActivity) -> String {
    format!(
        "{} reads, {} writes, {}, {} flushes in {}, longest {}, {} in flight",
        count(of.reads),
        count(of.writes),
        bytes(of.bytes as f64),
        count(of.flushes),
        duration(of.seconds),
        duration(of.longest),
        count(of.in_flight)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_write_is_told_by_its_path_or_else_by_its_inode() {
        let error = WritebackError {
            device: "vda1".to_owned(),
            inode: 12,
            error: "Input/output error (os error 5)".to_owned(),
            ..WritebackError::default()
        };
        let named = WritebackError {
            path: Some("/srv/lo\u{1b}st".to_owned()),
            mount_point: Some("/srv".to_owned()),
            ..error.clone()
        };
        assert_eq!(lost_line(&error), "write lost: inode 12 on vda1: Input/output error (os error 5)");
        let line = lost_line(&named);
        assert!(line.ends_with("st on vda1 /srv: Input/output error (os error 5)"), "{line}");
        assert!(!line.contains('\u{1b}'), "{line}");
    }

    #[test]
    fn a_line_says_what_whose_where_and_what_the_device_did() {
        let then =
            DeviceActivity { seconds: 0.35, writes: 41, flushes: 2, longest: 0.08, ..Default::default() };
        let event = SlowEvent {
            seconds: 0.312,
            operation: "fsync".to_owned(),
            device: Some("vda".to_owned()),
            mount_point: Some("/srv".to_owned()),
            file: Some("/srv/wal\u{1b}".to_owned()),
            process: "postgres".to_owned(),
            pid: Some(4711),
            device_then: Some(then),
            ..SlowEvent::default()
        };
        let line = slow_line(&event);
        assert!(line.starts_with("fsync 312 ms postgres[4711] /srv/wal"), "{line}");
        assert!(
            line.contains(" on vda /srv; vda then: 0 reads, 41 writes, 0 B, 2 flushes in 350 ms"),
            "{line}"
        );
        assert!(!line.contains('\u{1b}'), "{line}");
        let request = SlowEvent {
            seconds: 0.005,
            queue_seconds: Some(0.001),
            bytes: Some(4096),
            operation: "write fua".to_owned(),
            process: "kworker".to_owned(),
            ..SlowEvent::default()
        };
        assert_eq!(slow_line(&request), "write fua 4 KiB 5 ms (1 ms in queue) kworker");
    }
}
