//! Independent random streams from one seed.
//!
//! A run has one seed. Each worker's operations, each worker's arrivals and the likely places of a skewed
//! distribution have separate streams derived from it, so none changes when another consumes more or less.

/// Distinguishes the stream of arrivals from that of operations.
pub(crate) const ARRIVALS: u64 = 0x6172_7269_7661_6c73;
/// Distinguishes the stream of likely places from that of operations.
pub(crate) const SCATTER: u64 = 0x7363_6174_7465_7221;

/// Returns a distinct seed for each worker of a run. The first worker has the seed of the run.
pub(crate) fn of_worker(seed: u64, index: u32) -> u64 {
    seed ^ u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Converts a 64-bit random number to `[0, 1)`, in steps of 2^-53.
pub(crate) fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}
