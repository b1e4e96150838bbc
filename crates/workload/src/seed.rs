//! Independent random streams from one seed.
//!
//! A run has one seed. Each worker's operations, each worker's arrivals and the places that a skewed
//! distribution likes follow from it, each by a stream of its own, so that none changes when another draws
//! more or less.

/// Sets the arrivals apart from the operations.
pub(crate) const ARRIVALS: u64 = 0x6172_7269_7661_6c73;
/// Sets the likely places of a skewed distribution apart from the operations.
pub(crate) const SCATTER: u64 = 0x7363_6174_7465_7221;

/// Returns distinct seeds for the workers of a run; the first worker's is the run's.
pub(crate) fn of_worker(seed: u64, index: u32) -> u64 {
    seed ^ u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns a draw of 64 bits as a number of `[0, 1)`, in steps of 2^-53.
pub(crate) fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}
