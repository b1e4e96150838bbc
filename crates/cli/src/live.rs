//! Live view of a run, which the reports draw.

pub(crate) use plumb_report::tui::Live;
