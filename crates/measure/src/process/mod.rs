//! What the surroundings did during a measurement: parsers of texts of /proc.
//!
//! Pure but for [`OwnThread::read`]. Fields are those of proc(5) and Documentation/accounting/psi.rst.

pub mod pressure;
pub mod schedstat;
pub mod stat;

pub use pressure::{Pressure, Stall};
pub use schedstat::OwnThread;
pub use stat::ProcessorTimes;
