//! Charts of rows: a name, a bar or a mark with its interval on a common scale, and the value in words. They
//! are elements instead of drawings, so that they use the width of the page and their text keeps its size on
//! any screen. Improvements are blue and filled, the opposite is orange and open.

use super::escape::{escape, prose};
use crate::quantity::{duration, thousands};

/// Meaning of a row, which decides its colour and the shape of its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    Better,
    Worse,
    Neutral,
}

impl Sense {
    /// Returns the sense of a difference that is good or bad; neutral if unknown.
    pub(super) fn new(is_good: Option<bool>) -> Self {
        is_good.map_or(Self::Neutral, |is_good| if is_good { Self::Better } else { Self::Worse })
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Neutral => "neutral",
        }
    }
}

/// Row of a chart.
#[derive(Debug)]
pub(super) struct BarRow {
    /// Subject of the row.
    pub(super) name: String,
    /// Value in words, with its unit.
    pub(super) value: String,
    pub(super) sense: Sense,
    /// Ends of the bar on the scale; `None` for an unknown end.
    pub(super) from: Option<f64>,
    pub(super) until: Option<f64>,
    /// Position of the mark; `None` for a bar without one.
    pub(super) mark: Option<f64>,
}

/// Scale from `low` to `high`, with its ticks.
#[derive(Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    ticks: Vec<(f64, String)>,
}

/// Ratios used as ticks, the roundest first.
const RATIOS: [f64; 31] = [
    1.0, 10.0, 0.1, 100.0, 0.01, 1e3, 1e-3, 1e4, 1e-4, 1e6, 1e-6, 2.0, 0.5, 5.0, 0.2, 20.0, 0.05, 50.0, 0.02,
    1.5, 0.8, 1.2, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.01, 0.99, 0.999,
];
/// Minimum distance between two ticks, as a part of the scale.
const APART: f64 = 0.13;

impl Scale {
    fn holding(values: impl IntoIterator<Item = f64>, margin_min: f64) -> Self {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (low, high) =
            finite.fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let margin = ((high - low) * 0.06).max(margin_min);
        Self { low: low - margin, high: high + margin, ticks: Vec::new() }
    }

    /// Returns a logarithmic scale that includes 1 and all `ratios`. Positions on it are logarithms.
    pub(super) fn of_ratios(ratios: impl IntoIterator<Item = f64>) -> Self {
        let mut scale = Self::holding(ratios.into_iter().map(f64::ln), 0.005);
        for tick in RATIOS {
            let words = if tick >= 1e3 { thousands(tick) } else { tick.to_string() };
            scale.add_tick(tick.ln(), format!("{words}×"));
        }
        scale
    }

    /// Returns a scale that includes 0 and all durations, in seconds.
    pub(super) fn of_seconds(seconds: impl IntoIterator<Item = f64>) -> Self {
        let mut scale = Self::holding(seconds, f64::MIN_POSITIVE);
        let length = scale.high - scale.low;
        let decade = 10_f64.powf((length / 4.0).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
        let step = steps.into_iter().find(|step| length / step <= 6.0).unwrap_or(length);
        let (first, last) = ((scale.low / step).ceil() as i64, (scale.high / step).floor() as i64);
        for tick in (first..=last).filter(|_| length > 1e-12) {
            let at = tick as f64 * step;
            scale.add_tick(at, if tick == 0 { "0".to_owned() } else { duration(at) });
        }
        scale
    }

    fn add_tick(&mut self, at: f64, words: String) {
        let is_apart = |(other, _): &(f64, String)| (at - other).abs() >= (self.high - self.low) * APART;
        if (self.low..=self.high).contains(&at) && self.ticks.iter().all(is_apart) {
            self.ticks.push((at, words));
        }
    }

    /// Returns the position of a value, in percent of the width.
    fn percent(&self, value: f64) -> f64 {
        (value.clamp(self.low, self.high) - self.low) / (self.high - self.low) * 100.0
    }

    /// Draws `rows` above this scale, labelled `label`.
    pub(super) fn draw(&self, rows: &[BarRow], label: &str) -> String {
        let rows: String = rows.iter().map(|row| self.row(row)).collect();
        let tick = |(at, words): &(f64, String)| {
            let at = self.percent(*at);
            let side = if at < 6.0 {
                " first"
            } else if at > 94.0 {
                " last"
            } else {
                ""
            };
            format!(r#"<span class="tick{side}" style="left:{at:.2}%">{}</span>"#, escape(words))
        };
        let ticks: String = self.ticks.iter().map(tick).collect();
        format!(
            r#"<div class="bars" role="group" aria-label="{}">{rows}<div class="bar-row axis" aria-hidden="true"><span class="track">{ticks}</span></div></div>"#,
            escape(label)
        )
    }

    fn row(&self, row: &BarRow) -> String {
        let place = |end: Option<f64>, open: f64| end.map_or(open, |end| self.percent(end));
        let (one, other) = (place(row.from, 0.0), place(row.until, 100.0));
        let (from, until) = (one.min(other), one.max(other));
        let mark = row.mark.map_or_else(String::new, |mark| {
            format!(r#"<i class="mark" style="left:{:.2}%"></i>"#, self.percent(mark))
        });
        let kind = if row.mark.is_some() { "interval" } else { "bar" };
        format!(
            r#"<div class="bar-row {}"><span class="name">{}</span><span class="track" aria-hidden="true"><i class="zero" style="left:{:.2}%"></i><i class="{kind}" style="left:{from:.2}%;width:{:.2}%"></i>{mark}</span><span class="value">{}</span></div>"#,
            row.sense.class(),
            prose(&row.name),
            self.percent(0.0),
            until - from,
            prose(&row.value)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(scale: &Scale) -> Vec<&str> {
        let mut ticks: Vec<_> = scale.ticks.iter().collect();
        ticks.sort_by(|one, other| one.0.total_cmp(&other.0));
        ticks.into_iter().map(|(_, words)| words.as_str()).collect()
    }

    #[test]
    fn a_scale_has_round_ticks_that_do_not_touch() {
        assert_eq!(ticks(&Scale::of_ratios([0.5, 13.6])), ["0.5×", "1×", "2×", "5×", "10×"]);
        assert_eq!(
            ticks(&Scale::of_ratios([0.001, 1000.0])),
            ["0.001×", "0.01×", "0.1×", "1×", "10×", "100×", "1,000×"]
        );
        assert_eq!(ticks(&Scale::of_seconds([-2e-3, 3e-3])), ["-2 ms", "-1 ms", "0", "1 ms", "2 ms", "3 ms"]);
        // Equal values: one tick, and no division by zero.
        assert_eq!(ticks(&Scale::of_ratios([1.0])), ["1×"]);
        assert!(Scale::of_seconds([0.0]).percent(0.0).is_finite());
        assert!(Scale::of_ratios([f64::INFINITY, f64::NAN]).percent(f64::MAX).is_finite());
    }

    #[test]
    fn an_end_that_is_not_known_reaches_to_the_edge() {
        let row = BarRow {
            name: "p99".to_owned(),
            value: "2".to_owned(),
            sense: Sense::Worse,
            from: Some(0.0),
            until: None,
            mark: Some(2_f64.ln()),
        };
        let drawn = Scale::of_ratios([4.0]).draw(&[row], "ratios");
        let zero = drawn.split(r#"class="zero" style="left:"#).nth(1).unwrap().split('%').next().unwrap();
        let width = 100.0 - zero.parse::<f64>().unwrap();
        assert!(
            drawn.contains(&format!(r#"class="interval" style="left:{zero}%;width:{width:.2}%"#)),
            "{drawn}"
        );
    }
}
