//! Hosts of a drive with loads that no words can describe: commits that wait for each other, writes during a
//! change of the drive, files on a simulated drive.

pub(crate) mod live_switch;
pub(crate) mod object_store;
pub(crate) mod simulated_files;
