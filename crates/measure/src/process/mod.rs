//! State of the surroundings during a measurement: parsers of texts of /proc.
//!
//! Pure but for [`OwnThread::read`] and [`surroundings`]. Fields are those of proc(5).

pub mod schedstat;
pub mod stat;
pub mod surroundings;

pub use schedstat::OwnThread;
pub use stat::ProcessorTimes;
