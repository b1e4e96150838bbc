//! Progress in lines, which the reports draw.

pub(crate) use plumb_report::progress::ProgressLines;
