//! Statistics of pairs: machines drift, so two programs run in turn, and only the ratios count.

use anyhow::Result;

/// Side that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Ours,
    Theirs,
}

impl Side {
    /// Returns 0 for ours, 1 for the peer.
    pub(super) fn index(self) -> usize {
        usize::from(self == Self::Theirs)
    }
}

/// Rates of two programs that do the same in turn.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

impl Pairs {
    /// Measures one more pair. The order alternates, so that neither side always runs after the other.
    pub(super) fn measure(&mut self, mut one: impl FnMut(Side) -> Result<f64>) -> Result<()> {
        if self.ours.len().is_multiple_of(2) {
            self.ours.push(one(Side::Ours)?);
            self.theirs.push(one(Side::Theirs)?);
        } else {
            self.theirs.push(one(Side::Theirs)?);
            self.ours.push(one(Side::Ours)?);
        }
        Ok(())
    }

    /// Prints a line: the medians, the median of the ratios with its interval, and whether `bar` is met.
    pub(super) fn print(&self, name: &str, bar: impl Into<Option<f64>>) {
        let ratios: Vec<f64> =
            self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| ours / theirs).collect();
        let (ratio, (low, high)) = (median(&ratios), median_interval(&ratios));
        let said =
            bar.into().map_or_else(String::new, |bar| format!(" (bar {bar}): {}", verdict(ratio >= bar)));
        let (ours, theirs) = (median(&self.ours), median(&self.theirs));
        println!("{name:<26} {ours:>8.0} / {theirs:>8.0}  {ratio:.2} ({low:.2} to {high:.2}){said}");
    }
}

/// Case of a bench: its name, the options of fio, and the required share of the peer's rate, if any.
pub(super) type Case = (&'static str, &'static str, Option<f64>);

/// Measures each case in pairs, and prints a line for each that begins with `what`.
pub(super) fn compare(
    what: &str,
    cases: &[Case],
    pairs: usize,
    mut one: impl FnMut(&str, Side) -> Result<f64>,
) -> Result<()> {
    let mut all: Vec<Pairs> = cases.iter().map(|_| Pairs::default()).collect();
    for pair in 1..=pairs {
        eprintln!("{what}pair {pair} of {pairs}");
        for ((_, words, _), rates) in cases.iter().zip(&mut all) {
            rates.measure(|side| one(words, side))?;
        }
    }
    for ((name, _, bar), rates) in cases.iter().zip(&all) {
        rates.print(&format!("{what}{name}"), *bar);
    }
    Ok(())
}

/// Returns the words for a limit that is met or not.
pub(super) const fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "NOT MET" }
}

/// Returns the median of some values; NaN if there are none.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n.is_multiple_of(2) => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        n => sorted[n / 2],
    }
}

/// Returns the interval that covers the median of the population with at least 95 % (order statistics of the
/// binomial, without assumptions about the distribution); the whole range if there are too few pairs.
pub(super) fn median_interval(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return (f64::NAN, f64::NAN) };
    // P(fewer than k of n fall below the median) <= 2.5 %.
    let n = sorted.len() as i32;
    let mut below = 0.0;
    let mut choose = 1.0;
    let mut cut = 0_usize;
    for k in 0..n {
        below += choose * 0.5_f64.powi(n);
        if below > 0.025 {
            break;
        }
        cut = k as usize + 1;
        choose *= f64::from(n - k) / f64::from(k + 1);
    }
    let cut = cut.saturating_sub(1).min(last / 2);
    (sorted[cut], sorted[last - cut])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_median_and_narrows_with_more_pairs() {
        let seven: Vec<f64> = (1..=7).map(f64::from).collect();
        assert_eq!(median(&seven), 4.0);
        assert_eq!(median_interval(&seven), (1.0, 7.0), "7 pairs: 98.4 % only for the whole range");
        let twenty: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(median(&twenty), 10.5);
        assert_eq!(median_interval(&twenty), (6.0, 15.0), "the textbook ranks for n = 20");
        assert!(median(&[]).is_nan() && median_interval(&[]).0.is_nan());
    }
}
