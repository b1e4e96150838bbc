//! Rules for a job that replays a trace: it must not specify anything that the trace determines.

use plumb_block::Bytes;

use super::CheckResult;
use crate::byte_range::ByteRange;
use crate::invalid::{Invalid, invalid_if};
use crate::scenario::{Job, Span};
use crate::trace::TraceUse;
use crate::workload::Workload;

/// Checks a job that replays `trace`.
pub(super) fn check(job: &Job, trace: &TraceUse) -> CheckResult {
    trace.validate().map_err(|invalid| invalid.within("trace"))?;
    let expected = "1 with a trace: one thread replays it on each target, in order";
    invalid_if!(job.threads != 1, "threads", job.threads, expected);
    let expected = "false with a trace, whose requests each have their target and their time";
    invalid_if!(job.depth_shared, "depth_shared", true, expected);
    let said = &job.workload;
    let blank = Workload::over(ByteRange::ALL, Bytes::kib(4));
    let same = [
        ("blocks.read", said.blocks == blank.blocks),
        ("access", said.access == blank.access),
        ("write_percent", said.write_percent == 0),
        ("trim_percent", said.trim_percent == 0),
        ("durability.flush_every", said.durability.flush_every.is_none()),
        ("durability.flush_at_end", !said.durability.flush_at_end),
        ("durability.fua_every", said.durability.fua_every.is_none()),
        ("rate", said.rate == blank.rate),
        ("burst.operations", said.burst.is_none()),
        ("offset", said.range.offset == blank.range.offset),
        ("length", said.range.length == blank.range.length),
        ("division", said.division == blank.division),
        ("verify", !said.verify),
        ("stop.operations", said.stop.operations.is_none()),
        ("stop.bytes", said.stop.bytes.is_none()),
    ];
    match same.into_iter().find(|(_, same)| !same) {
        Some((field, _)) => {
            let expected = "nothing beside a trace, which says what is done";
            Err(Invalid::new(format!("workload.{field}"), "given", expected))
        }
        None => Ok(()),
    }
}

/// Checks that a span with a trace has no rounds: a trace is replayed once, at its own depth.
pub(super) fn check_in(span: &Span) -> CheckResult {
    let expected = "none with a trace, which is replayed once";
    invalid_if!(span.steady.is_some(), "steady", "given", expected);
    invalid_if!(span.latency_target.is_some(), "latency_target", "given", expected);
    Ok(())
}
