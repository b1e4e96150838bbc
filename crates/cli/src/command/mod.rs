//! The commands, one file or directory each.

pub(crate) mod agent;
pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod diskspd;
pub(crate) mod drive;
pub(crate) mod explain;
pub(crate) mod fio;
pub(crate) mod fleet;
pub(crate) mod load;
pub(crate) mod observe;
pub(crate) mod policy;
mod profile;
pub(crate) mod prove;
pub(crate) mod report;
pub(crate) mod restore;
mod running;
mod serving;
pub(crate) mod sqlio;
pub(crate) mod study;
pub(crate) mod survey;

use plumb_report::host_recording;
