//! Tests of ramps and steadiness of artificial series.

use super::*;
use proptest::prelude::*;

/// Returns noise of up to `amplitude` to either side, from a small congruential generator, equal in every
/// run.
fn noise(seed: u64, amplitude: f64) -> impl Iterator<Item = f64> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64 / f64::from(1_u32 << 30) - 1.0) * amplitude
    })
}

fn rates(levels: &[(usize, f64)], seed: u64) -> Vec<f64> {
    let mut noise = noise(seed, 0.03);
    levels
        .iter()
        .flat_map(|(count, level)| std::iter::repeat_n(*level, *count))
        .map(|level| level * (1.0 + noise.next().unwrap()))
        .collect()
}

proptest! {
    #[test]
    fn noise_alone_is_no_ramp(seed: u64, count in 8_usize..300) {
        prop_assert_eq!(Ramp::from_rates(&rates(&[(count, 5000.0)], seed)), Ramp::SettledAt(0));
    }

    #[test]
    fn a_step_is_found_to_the_bucket(seed: u64, before in 1_usize..10, after in 15_usize..100, level in 0.1_f64..0.7) {
        let found = Ramp::from_rates(&rates(&[(before, 1000.0 * level), (after, 1000.0)], seed));
        prop_assert_eq!(found, Ramp::SettledAt(before));
    }

    #[test]
    fn a_single_stall_is_no_ramp(seed: u64, count in 12_usize..100, place in 2_usize..100) {
        let mut stalled = rates(&[(count, 1000.0)], seed);
        stalled[place.min(count - 1)] = 0.0;
        prop_assert_eq!(Ramp::from_rates(&stalled), Ramp::SettledAt(0));
    }

    #[test]
    fn a_burst_that_ends_is_a_ramp_too(seed: u64) {
        let found = Ramp::from_rates(&rates(&[(6, 9000.0), (24, 3000.0)], seed));
        prop_assert_eq!(found, Ramp::SettledAt(6), "a drive whose cache fills up starts too fast");
    }
}

#[test]
fn a_gradual_ramp_ends_where_it_ends() {
    let climbing: Vec<(usize, f64)> = (1..=10).map(|step| (1, f64::from(step) * 100.0)).collect();
    let levels: Vec<_> = climbing.into_iter().chain([(40, 1000.0)]).collect();
    match Ramp::from_rates(&rates(&levels, 3)) {
        Ramp::SettledAt(bucket) => assert!((8..=10).contains(&bucket), "{bucket}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_changes_late_never_settled() {
    assert_eq!(Ramp::from_rates(&rates(&[(20, 1000.0), (10, 400.0)], 1)), Ramp::Never);
    assert_eq!(Ramp::from_rates(&[1.0; 7]), Ramp::TooShort);
    assert_eq!(Ramp::from_rates(&[0.0; 20]), Ramp::SettledAt(0), "nothing, steadily");
}

#[test]
fn variation_and_slope_have_known_values() {
    assert_eq!(variation(&[90.0, 110.0]), Some(200.0_f64.sqrt() / 100.0));
    assert_eq!(variation(&[5.0]), None);
    assert_eq!(variation(&[0.0, 0.0]), None);
    let slope = relative_slope(&[90.0, 95.0, 100.0, 105.0, 110.0]).unwrap();
    assert!((slope - 0.2).abs() < 1e-12);
    let falling = relative_slope(&[110.0, 100.0, 90.0]).unwrap();
    assert!((falling + 0.2).abs() < 1e-12);
    assert_eq!(relative_slope(&[1.0, 2.0]), None);
}

#[test]
fn the_steady_state_of_snia_looks_at_the_last_five_rounds() {
    assert_eq!(snia_steady(&[100.0; 4]), None);
    assert_eq!(snia_steady(&[900.0, 500.0, 100.0, 101.0, 99.0, 100.0, 100.0]), Some(true));
    assert_eq!(snia_steady(&[100.0, 121.0, 100.0, 100.0, 100.0]), Some(false), "spans more than a fifth");
    assert_eq!(snia_steady(&[94.0, 97.0, 100.0, 103.0, 106.0]), Some(false), "climbs by 12 %");
    assert_eq!(snia_steady(&[96.0, 98.0, 100.0, 102.0, 104.0]), Some(true), "climbs by 8 %");
}

#[test]
fn steadiness_is_measured_after_the_ramp() {
    let mut points = Vec::new();
    for (index, rate) in rates(&[(5, 100.0), (25, 1000.0)], 9).iter().enumerate() {
        points.push(SeriesPoint {
            at: Nanos::millis(100 * index as u64),
            operations: *rate as u64,
            bytes: 0,
            latency_sum: Nanos::ZERO,
            latency_max: Nanos::ZERO,
            ..SeriesPoint::default()
        });
    }
    let steadiness = Steadiness::from_series(&points, Nanos::millis(100));
    assert_eq!(steadiness.ramp_time(), Some(Nanos::millis(500)));
    assert!(steadiness.variation.unwrap() < 0.03, "{steadiness:?}");
    let mut quality = Quality::default();
    steadiness.put_into(&mut quality);
    assert_eq!(quality.ramp_seconds, Some(0.5));
    assert!(quality.rate_slope.unwrap().abs() < 0.05);
}
