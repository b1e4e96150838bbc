//! Hosts of a drive whose load no words describe: a commit that waits for another, writes during a change of
//! the drive.

pub(crate) mod live_switch;
pub(crate) mod object_store;
