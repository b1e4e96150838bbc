//! Progress of a run, which the reports draw.

pub(crate) use plumb_report::progress::Bar;
