//! Quantiles of the normal distribution, and of Student's.

/// Number of deviations beyond which no double can represent the share.
const FARTHEST: f64 = 40.0;
/// Bound of the values of Student's variable with one degree of freedom, at the shares that are requested.
const FARTHEST_STUDENT: f64 = 1e6;

/// Returns the value below which `share` of a standard normal variable lies; infinite at 0 and 1.
pub fn normal(share: f64) -> f64 {
    if share > 0.5 {
        return -normal(1.0 - share);
    }
    if share <= 0.0 {
        return f64::NEG_INFINITY;
    }
    last([-FARTHEST, 0.0], |value| 0.5 * libm::erfc(-value / std::f64::consts::SQRT_2) < share)
}

/// Returns the value, at most 1e6, below which `share`, at least a half, of Student's variable with `freedom`
/// degrees of freedom lies.
pub fn student(share: f64, freedom: u32) -> f64 {
    last([0.0, FARTHEST_STUDENT], |value| between(value, freedom) < 2.0 * share - 1.0)
}

/// Returns the share of Student's variable that lies within `value` of 0 (Abramowitz and Stegun, 26.7.3 and
/// 26.7.4).
fn between(value: f64, freedom: u32) -> f64 {
    let angle = libm::atan(value / f64::from(freedom).sqrt());
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let is_odd = freedom % 2 == 1;
    let (mut term, mut sum) = (if is_odd { cosine } else { 1.0 }, 0.0);
    let mut next = if is_odd { 1 } else { 0 };
    while next + 2 <= freedom {
        sum += term;
        term *= cosine * cosine * f64::from(next + 1) / f64::from(next + 2);
        next += 2;
    }
    if is_odd { std::f64::consts::FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

/// Returns the point between two values up to which `is_below` holds, by halving the interval down to
/// neighbouring doubles.
fn last([mut low, mut high]: [f64; 2], is_below: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
}
