//! `read_iolog`: replay of a trace in place of a workload.

use plumb_block::Bytes;
use plumb_workload::{Skip, TargetUse, TraceSpeed, TraceUse};

use crate::Error;
use crate::fio::options::Options;

/// Options for the replay.
const REPLAY: [&str; 6] = [
    "replay_scale",
    "replay_align",
    "replay_time_scale",
    "replay_no_stall",
    "replay_redirect",
    "replay_skip",
];

/// Returns the trace, and the target that replaces all of its targets, if any; `None` without a trace.
pub(super) fn from_options(options: &Options<'_>) -> Result<Option<(TraceUse, Option<TargetUse>)>, Error> {
    let path = options.text("read_iolog")?;
    let scale = options.whole("replay_scale", 1..=u64::MAX)?.unwrap_or(1);
    let align = Bytes(options.bytes("replay_align")?.unwrap_or(1).max(1));
    let percent = options.whole("replay_time_scale", 1..=100_000)?.unwrap_or(100) as u32;
    let without_pauses = options.truth("replay_no_stall", false)?;
    let redirect = options.text("replay_redirect")?;
    let redirect = redirect.map(|name| TargetUse { name: name.to_owned(), weight: 1 });
    let skip = options.parsed("replay_skip", skip)?.unwrap_or_default();
    let Some(path) = path else {
        options.note_unused(&REPLAY, "no read_iolog is given");
        return Ok(None);
    };
    if path.contains(':') {
        return options.refuse(
            "read_iolog",
            "one trace is replayed at a time",
            "merge them with fio --merge-blktrace-only",
        );
    }
    options.note_unused(&["rw", "bs", "rate", "rate_iops"], "the trace says what is done");
    let speed = if without_pauses { TraceSpeed::Unpaced } else { TraceSpeed::Percent(percent) };
    Ok(Some((TraceUse { path: path.to_owned(), speed, scale, align, skip }, redirect)))
}

fn skip(text: &str) -> Result<Skip, String> {
    let mut skip = Skip::default();
    for kind in text.split(',') {
        match kind.trim() {
            "read" => skip.reads = true,
            "write" => skip.writes = true,
            "trim" => skip.trims = true,
            "sync" | "flush" => skip.flushes = true,
            other => return Err(format!("`{other}` is neither read, write, trim nor sync")),
        }
    }
    Ok(skip)
}
