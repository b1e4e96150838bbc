//! The arm: seek time by distance.
//!
//! A short seek is all acceleration and its time grows with the root of the distance; a long one coasts and
//! grows linearly. The three figures of a data sheet (one track, average, full stroke) determine the curve
//! `track + a √x + b x`, where x is the fraction of the full stroke. Over all pairs of cylinders the mean of
//! √x is 8/15 and that of x is 1/3, hence `a = 5 A - 5/3 F` and `b = 8/3 F - 5 A`, where A and F are the
//! average and the full stroke minus the one track.

use std::hint::select_unpredictable;

use super::parameters::HddParameters;

/// Number of short distances with separate entries.
const NEAR: usize = 1024;
/// Number of entries for longer distances.
const FAR: usize = 4096;

/// Table of seek times by distance.
#[derive(Debug, Clone)]
pub(super) struct SeekCurve {
    /// Seek times of short distances, followed by those of long ones.
    times: Box<[u32]>,
    shift: u32,
}

impl SeekCurve {
    /// Creates the curve of `parameters` for a disk with `cylinders`.
    pub(super) fn new(parameters: &HddParameters, cylinders: u32) -> Self {
        let stroke = f64::from(cylinders.max(2) - 1);
        let track = parameters.seek_track.0.0 as f64;
        let average = parameters.seek_average.0.0 as f64 - track;
        let full = parameters.seek_full.0.0 as f64 - track;
        let (root, linear) = (5.0 * average - 5.0 / 3.0 * full, 8.0 / 3.0 * full - 5.0 * average);
        let time = |distance: u64| {
            // One cylinder is the track-to-track seek, where the curve starts.
            let x = ((distance as f64 - 1.0) / stroke).clamp(0.0, 1.0);
            (track + root * libm::sqrt(x) + linear * x) as u32
        };
        let shift = (0..32).find(|shift| (cylinders as usize >> shift) < FAR).unwrap_or(31);
        let middle = (1 << shift) / 2;
        let far = (0..=FAR as u64).map(|entry| time((entry << shift) + middle));
        let mut times: Box<[u32]> = (0..NEAR as u64).map(time).chain(far).collect();
        times[0] = 0;
        Self { times, shift }
    }

    /// Returns the time of a seek over `distance` cylinders, in nanoseconds; zero for no distance.
    #[inline]
    pub(super) fn time(&self, distance: u32) -> u64 {
        let distance = distance as usize;
        let far = NEAR + (distance >> self.shift).min(FAR);
        u64::from(self.times[select_unpredictable(distance < NEAR, distance, far)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::hdd::parameters::tests::desktop;

    #[test]
    fn the_curve_goes_through_the_figures_of_the_data_sheet() {
        let parameters = desktop();
        let cylinders = 40_000;
        let curve = SeekCurve::new(&parameters, cylinders);
        assert_eq!(curve.time(0), 0);
        assert_eq!(curve.time(1), parameters.seek_track.0.0);
        let close = |seen: f64, meant: f64| assert!((seen / meant - 1.0).abs() < 0.01, "{seen} for {meant}");
        close(curve.time(cylinders - 1) as f64, parameters.seek_full.0.0 as f64);
        // Mean over all pairs: a distance d occurs 2 (n - d) times.
        let n = f64::from(cylinders);
        let sum: f64 = (1..cylinders).map(|d| 2.0 * (n - f64::from(d)) * curve.time(d) as f64).sum();
        close(sum / (n * n), parameters.seek_average.0.0 as f64);
    }

    #[test]
    fn further_never_takes_less() {
        let curve = SeekCurve::new(&desktop(), 40_000);
        assert!((1..40_000).all(|d| curve.time(d - 1) <= curve.time(d)));
    }
}
