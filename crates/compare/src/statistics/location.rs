//! Location of a set of numbers, robust against a few outliers: Huber's M-estimate.

use plumb_measure::median;

/// Number of median deviations from the median of four normal numbers that are 1.345 standard deviations: a
/// reach with which the estimate has 95 % of the efficiency of the mean (Huber 1964). The median deviation is
/// 0.6745 standard deviations, divided by 1.363 where it is of four numbers (Croux and Rousseeuw,
/// Computational Statistics 1, 1992).
const MEDIAN_DEVIATIONS: f64 = 2.72;
/// Distance from the limit below which a value counts as limited, as a share of the reach.
const EDGE: f64 = 1e-9;
/// Length up to which a step counts as zero, as a share of the reach.
const NO_STEP: f64 = 1e-13;

/// Returns the distance from a location up to which numbers like those of `practice` count in full. Infinite,
/// so that nothing is limited, if practice does not show how much they differ.
pub fn reach(practice: &[f64]) -> f64 {
    let middle = median(practice).unwrap_or_default();
    let deviations: Vec<f64> = practice.iter().map(|value| (value - middle).abs()).collect();
    let usual = median(&deviations).filter(|usual| *usual > 0.0);
    usual.map_or(f64::INFINITY, |usual| MEDIAN_DEVIATIONS * usual)
}

/// Returns the smallest and the largest location at which the differences of `values`, each limited to
/// `reach`, add up to zero. They are usually equal; with an infinite reach both are the mean. The sum is
/// piecewise linear and falls as the location rises: Newton's method ends on the piece that crosses zero. A
/// step beyond the known bounds is replaced by halving the interval between them.
pub(super) fn locations(values: &[f64], reach: f64) -> (f64, f64) {
    let mut location = values.iter().sum::<f64>() / values.len() as f64;
    if reach == f64::INFINITY {
        return (location, location);
    }
    let (mut low, mut high) =
        values.iter().fold((location, location), |(low, high), value| (value.min(low), value.max(high)));
    loop {
        let (mut sum, mut within) = (0.0, 0.0);
        for value in values {
            let difference = value - location;
            sum += difference.clamp(-reach, reach);
            within += f64::from(u8::from(difference.abs() <= reach));
        }
        if sum > 0.0 {
            low = location;
        } else {
            high = location;
        }
        let step = sum / within;
        if sum == 0.0 || step.abs() <= NO_STEP * reach {
            return around(location, values, reach);
        }
        let by_step = location + step;
        let next = if low < by_step && by_step < high { by_step } else { f64::midpoint(low, high) };
        // No number is between the two ends.
        if next == location {
            return around(location, values, reach);
        }
        location = next;
    }
}

/// Returns the range of locations, given one. There are others only if all values are limited, as many above
/// as below.
fn around(location: f64, values: &[f64], reach: f64) -> (f64, f64) {
    let limit = (1.0 - EDGE) * reach;
    let ends =
        values.iter().try_fold((f64::NEG_INFINITY, f64::INFINITY, 0_i32), |(low, high, more), value| {
            match value - location {
                above if above >= limit => Some((low, high.min(value - reach), more + 1)),
                below if below <= -limit => Some((low.max(value + reach), high, more - 1)),
                _ => None,
            }
        });
    match ends {
        Some((low, high, 0)) => (low.min(location), high.max(location)),
        _ => (location, location),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_far_off_moves_a_location_by_no_more_than_its_reach() {
        let values = [1.0, 1.1, 0.9, 1.05, 40.0];
        let (low, high) = locations(&values, 0.2);
        // Four within 0.2 of it: 4.05 - 4 x + 0.2 = 0.
        assert!((low - 1.0625).abs() < 1e-12 && low == high, "{low} {high}");
        let mean = values.iter().sum::<f64>() / 5.0;
        assert_eq!(locations(&values, f64::INFINITY), (mean, mean));
    }

    #[test]
    fn between_as_many_above_as_below_each_number_is_a_location() {
        let near = |found: (f64, f64), low: f64, high: f64| {
            assert!((found.0 - low).abs() < 1e-12 && (found.1 - high).abs() < 1e-12, "{found:?}");
        };
        near(locations(&[-1.0, 1.0], 0.25), -0.75, 0.75);
        near(locations(&[-3.0, -1.0, 1.5, 9.0], 0.25), -0.75, 1.25);
        near(locations(&[-1.0, 0.0, 1.0], 0.25), 0.0, 0.0);
    }

    #[test]
    fn the_limited_differences_from_a_location_add_up_to_nothing() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) as f64 / f64::from(1_u32 << 31)).powi(-2)
        };
        for count in 1..40 {
            let values: Vec<f64> = (0..count).map(|_| next()).collect();
            for reach in [1e-6, 0.01, 0.5, 3.0, 1e4] {
                let (found, _) = locations(&values, reach);
                let sum_at =
                    |at: f64| values.iter().map(|value| (value - at).clamp(-reach, reach)).sum::<f64>();
                let near = 1e-9 * found.abs();
                let rounding = 1e-12 * reach;
                assert!(
                    sum_at(found - near) >= -rounding && sum_at(found + near) <= rounding,
                    "{values:?} {reach}: {found}"
                );
            }
        }
    }

    #[test]
    fn practice_that_shows_no_difference_limits_nothing() {
        assert_eq!([reach(&[]), reach(&[1.0]), reach(&[2.0, 2.0, 2.0])], [f64::INFINITY; 3]);
        // From 1.5 they are 1.5, 0.5, 0.5 and 98.5 away.
        assert!((reach(&[0.0, 1.0, 2.0, 100.0]) - MEDIAN_DEVIATIONS).abs() < 1e-12);
    }
}
