//! Formats a slow event or a lost write in one line, in the style of biosnoop and ext4slower.

use plumb_text::printable;

use crate::document::live::{DeviceActivity, SlowEvent};
use crate::document::observation::WritebackError;
use crate::quantity::{bytes, count, counted, duration};
use crate::terminal;

/// Indentation of a second line, below the text after the time in the first one.
const BELOW: &str = "              ";

/// Returns an event as one line without its time of day: duration, operation, process, file or device, and
/// the activity of the device meanwhile. The activity is on a second line if both are wider than `columns`.
pub fn slow_line(event: &SlowEvent, columns: Option<usize>) -> String {
    let size = event.bytes.filter(|size| *size > 0).map(|size| format!(" {}", bytes(size as f64)));
    let queue = event.queue_seconds.map(|seconds| format!(" ({} in queue)", duration(seconds)));
    let pid = event.pid.map(|pid| format!("[{pid}]"));
    let file = event.file.as_ref().map(|file| format!(" {}", printable(file)));
    // The path of a file includes the mount point.
    let mount_point = event.mount_point.as_ref().filter(|_| event.file.is_none());
    let places = [event.device.as_ref(), mount_point].into_iter().flatten();
    let places: Vec<String> = places.map(|place| printable(place)).collect();
    let place = if places.is_empty() { String::new() } else { format!(" on {}", places.join(" ")) };
    let did = match (&event.device_then, &event.device) {
        (Some(then), Some(device)) => format!("{} meanwhile: {}", printable(device), activity(then)),
        _ => String::new(),
    };
    let what = format!(
        "{:>7} {}{}{} {}{}{}{place}",
        duration(event.seconds),
        event.operation,
        size.unwrap_or_default(),
        queue.unwrap_or_default(),
        printable(&event.process),
        pid.unwrap_or_default(),
        file.unwrap_or_default(),
    );
    let is_wide = columns.is_some_and(|most| terminal::columns(&what) + terminal::columns(&did) + 2 > most);
    match (did.is_empty(), is_wide) {
        (true, _) => what,
        (false, false) => format!("{what}; {did}"),
        (false, true) => format!("{what}\n{BELOW}{did}"),
    }
}

/// Describes in one line a file whose write failed after the page cache had accepted it.
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

/// Returns the operations that a device completed. Zero counts are left out.
fn activity(of: &DeviceActivity) -> String {
    let number = |what: &str, of: u64| (of > 0).then(|| counted(of, what));
    let moved = (of.bytes > 0).then(|| bytes(of.bytes as f64));
    let completed =
        [number("read", of.reads), number("write", of.writes), moved, number("flush", of.flushes)];
    let completed: Vec<String> = completed.into_iter().flatten().collect();
    let completed = if completed.is_empty() { "nothing".to_owned() } else { completed.join(", ") };
    let longest = (of.longest > 0.0).then(|| format!(", longest {}", duration(of.longest)));
    let in_flight = (of.in_flight > 0).then(|| format!(", {} in flight", count(of.in_flight)));
    let (longest, in_flight) = (longest.unwrap_or_default(), in_flight.unwrap_or_default());
    format!("{completed} in {}{longest}{in_flight}", duration(of.seconds))
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
        let line = slow_line(&event, None);
        assert!(line.starts_with(" 312 ms fsync postgres[4711] /srv/wal"), "{line}");
        let did = "vda meanwhile: 41 writes, 2 flushes in 350 ms, longest 80 ms";
        assert!(line.ends_with(&format!(" on vda; {did}")), "{line}");
        assert_eq!(slow_line(&event, Some(120)), line);
        let narrow = slow_line(&event, Some(66));
        assert_eq!(narrow, line.replace("; vda", &format!("\n{BELOW}vda")));
        assert!(narrow.lines().all(|line| line.len() <= 80), "{narrow}");
        assert!(!line.contains('\u{1b}'), "{line}");
        let one = DeviceActivity { seconds: 1.0, reads: 1, flushes: 1, in_flight: 1, ..Default::default() };
        assert_eq!(activity(&one), "1 read, 1 flush in 1 s, 1 in flight");
        let request = SlowEvent {
            seconds: 0.005,
            queue_seconds: Some(0.001),
            bytes: Some(4096),
            operation: "write fua".to_owned(),
            process: "kworker".to_owned(),
            ..SlowEvent::default()
        };
        assert_eq!(slow_line(&request, None), "   5 ms write fua 4 KiB (1 ms in queue) kworker");
    }
}
