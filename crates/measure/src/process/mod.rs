//! What the surroundings did during a measurement: parsers of texts of /proc.
//!
//! Pure but for [`OwnThread::read`]. Fields are those of proc(5).

pub mod schedstat;
pub mod stat;

pub use schedstat::OwnThread;
pub use stat::ProcessorTimes;
