//! Tests of the statistics against SciPy 1.10 on fixed data. Each test names the function that it used.

use plumb_compare::statistics::{
    Interval, Orders, ShiftInterval, TypicalValues, normal_quantile, student_quantile,
};
use plumb_compare::{Design, Terms};
use plumb_measure::median;

const DIFFERENCES: [f64; 10] = [0.031, -0.012, 0.054, 0.027, 0.008, -0.021, 0.043, 0.019, 0.036, 0.005];

fn assert_near(ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() <= 1e-9 * theirs.abs().max(1.0), "{ours}, and SciPy says {theirs}");
}

fn assert_ends(ours: Interval, low: f64, high: f64) {
    assert_near(ours.low, low);
    assert_near(ours.high, high);
}

/// Compares the intervals with those of the inverted test (`permutation_test((x - t,), mean,
/// permutation_type='samples', n_resamples=inf)`), whose ends are found by bisection; the balanced one over
/// the 252 flips that keep five pairs in each order.
#[test]
fn intervals_are_those_of_the_test_inverted() {
    let means = TypicalValues::from_differences(&DIFFERENCES, &Orders::Free.flips(10, 1), f64::INFINITY);
    assert_ends(means.interval(0.05), 0.0014, 0.0365);
    assert_ends(means.interval(0.01), -0.008_333_333_333_333_3, 0.043);
    let swapped = [false, true, true, false, false, true, false, true, true, false];
    let balanced = TypicalValues::from_differences(
        &DIFFERENCES,
        &Orders::Balanced { swapped: &swapped, stages: &[10] }.flips(10, 1),
        f64::INFINITY,
    );
    assert_ends(balanced.interval(0.05), -0.000_25, 0.0395);
    assert_eq!(balanced.interval(0.005), Interval::ALL, "252 orders cannot show so much");
    assert_eq!(
        TypicalValues::from_differences(&[], &Orders::Free.flips(0, 1), f64::INFINITY).interval(0.05),
        Interval::ALL
    );
}

/// Compares with the permutation test with the statistic `lambda x, axis: np.sum(np.clip(x, -0.02, 0.02),
/// axis=axis)`.
#[test]
fn limited_differences_are_judged_as_by_the_permutation_test() {
    let values = TypicalValues::from_differences(&DIFFERENCES, &Orders::Free.flips(10, 1), 0.02);
    assert_ends(values.interval(0.05), -0.001_666_666_666_67, 0.037_666_666_666_67);
    assert_ends(values.interval(0.01), -0.008_333_333_333_33, 0.043);
}

#[test]
fn drawn_orders_give_nearly_the_interval_of_all() {
    let many: Vec<f64> = DIFFERENCES.iter().chain(&DIFFERENCES[..5]).copied().collect();
    let drawn =
        TypicalValues::from_differences(&many, &Orders::Free.flips(15, 1), f64::INFINITY).interval(0.05);
    // The expected values are those of all 32,768 flips.
    assert!((drawn.low - 0.006_666).abs() < 0.002 && (drawn.high - 0.033).abs() < 0.003, "{drawn:?}");
    assert_eq!(
        drawn,
        TypicalValues::from_differences(&many, &Orders::Free.flips(15, 1), f64::INFINITY).interval(0.05),
        "the same seed, the same interval"
    );
}

/// `norm.ppf`.
#[test]
fn normal_quantiles() {
    for (share, quantile) in [
        (1e-300, -37.047_096_299_361_2),
        (1e-9, -5.997_807_015_007_686_5),
        (0.001, -3.090_232_306_167_813),
        (0.025, -1.959_963_984_540_054_5),
        (0.1, -1.281_551_565_544_600_4),
        (0.3, -0.524_400_512_708_040_9),
        (0.5, 0.0),
        (0.8, 0.841_621_233_572_914_3),
        (0.975, 1.959_963_984_540_054),
        (0.9999, 3.719_016_485_455_709),
        (0.999_999_999_999, 7.034_486_910_047_836),
    ] {
        assert_near(normal_quantile(share), quantile);
    }
    assert_eq!((normal_quantile(0.0), normal_quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
}

/// `t.ppf`.
#[test]
fn student_quantiles() {
    for (share, freedom, quantile) in [
        (0.975, 1, 12.706_204_736_432_1),
        (0.975, 2, 4.302_652_729_911_275),
        (0.975, 3, 3.182_446_305_284_263),
        (0.8, 3, 0.978_472_312_363_302_5),
        (0.995, 4, 4.604_094_871_415_897),
        (0.975, 7, 2.364_624_251_592_785),
        (0.5, 3, 0.0),
    ] {
        assert_near(student_quantile(share, freedom), quantile);
    }
}

#[test]
fn a_median() {
    let values = [3.1, 2.2, 5.9, 4.4, 1.7, 8.3, 6.1, 2.9, 7.5, 3.8, 4.9];
    assert_eq!((median(&values), median(&[1.0, 4.0]), median(&[])), (Some(4.4), Some(2.5), None));
}

/// `mannwhitneyu(a - t, b, method='exact')`: the shifts with a p-value above 0.05.
#[test]
fn the_interval_of_a_shift() {
    let one = [10.2, 11.1, 9.8, 10.9, 11.4, 10.6];
    let other = [9.1, 9.9, 10.0, 8.7, 9.4, 9.6, 10.1];
    let shift = ShiftInterval::between(&one, &other);
    assert_near(shift.center().unwrap(), 1.1);
    assert_ends(shift.interval(0.05), 0.3, 1.9);
    assert_eq!(ShiftInterval::between(&one[..2], &other[..2]).interval(0.05), Interval::ALL);
}

#[test]
fn a_design_is_balanced_and_spends_the_whole_error() {
    for (levels, rounds, early) in [(2, 8, true), (2, 24, true), (2, 64, true), (2, 64, false), (4, 30, true)]
    {
        let terms = Terms::default();
        let design = Design::new(levels, rounds, &terms, early, 7);
        let spent: f64 = design.looks().iter().map(|look| look.error).sum();
        assert_near(spent, terms.error / (levels - 1) as f64);
        let orders = design.orders();
        assert_eq!((orders.len(), design.rounds()), (rounds, rounds));
        let mut begin = 0;
        for look in design.looks().iter().filter(|_| levels == 2) {
            let swapped = orders[begin..look.rounds].iter().filter(|order| order[0] == 1).count();
            assert_eq!(2 * swapped, look.rounds - begin, "from {begin} to {}", look.rounds);
            begin = look.rounds;
        }
        assert!(early || design.looks().len() == 1);
    }
}
