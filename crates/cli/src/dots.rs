//! Progress in dots, which the reports draw.

pub(crate) use plumb_report::progress::Dots;
