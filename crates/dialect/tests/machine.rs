//! Machine for the tests of all dialects.

use super::{Machine, ProcessorPlace};

/// Returns a machine with four processors.
pub(crate) fn machine() -> Machine {
    Machine {
        host: "box".to_owned(),
        processors: vec![0, 1, 2, 3],
        topology: (0..4)
            .map(|number| ProcessorPlace { number, core: number / 2, socket: 0, node: 0 })
            .collect(),
        governor: Some("performance".to_owned()),
        page_bytes: 4096,
        memory_bytes: 8 << 30,
        kernel: "Linux 6.12".to_owned(),
        uptime_ms: 123_456,
        started_at: "2026-01-31T12:00:05Z".to_owned(),
        started_unix: 1_769_860_805,
        started_unix_ms: 1_769_860_805_000,
        zone_offset_seconds: 0,
        version: "0.1.0".to_owned(),
        version_date: "2026/01/30".to_owned(),
        argv: vec!["plumb".to_owned(), "diskspd".to_owned(), "t".to_owned()],
    }
}
