//! The normal distribution.

/// Beyond so many deviations there is no double that could say the share.
const FARTHEST: f64 = 40.0;

/// The value below which `share` of a standard normal variable lies; infinite at 0 and 1.
pub fn quantile(share: f64) -> f64 {
    if share > 0.5 {
        return -quantile(1.0 - share);
    }
    if share <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let (mut low, mut high) = (-FARTHEST, 0.0);
    // Each step halves what is left, until there is no double between.
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        if 0.5 * libm::erfc(-middle / std::f64::consts::SQRT_2) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
}
