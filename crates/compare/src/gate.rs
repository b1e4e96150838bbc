//! Limits that a user sets: `p99 ratio > 1.1` fails a comparison.

use std::str::FromStr;

use plumb_report::document::comparison::{Contrast, LimitResult};
use plumb_text::nearest;

use crate::block::figure_names;

/// A limit on the ratio of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    typed: String,
    pub(crate) figure: String,
    fails_above: bool,
    limit: f64,
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let wrong = |because: String| {
            format!(
                "`{typed}` is not a limit: {because}; type it as in 'p99 ratio > 1.1' or 'iops ratio < 0.95'"
            )
        };
        let (left, right, fails_above) = match (typed.split_once('>'), typed.split_once('<')) {
            (Some((left, right)), None) => (left, right, true),
            (None, Some((left, right))) => (left, right, false),
            _ => return Err(wrong("expected one `>` or `<`".to_owned())),
        };
        let of_ratio =
            left.trim().strip_suffix("ratio").filter(|figure| figure.ends_with(char::is_whitespace));
        let Some(figure) = of_ratio.map(str::trim) else {
            return Err(wrong(
                "a limit is on the ratio of a figure, with the word `ratio` after it".to_owned(),
            ));
        };
        if !figure_names().any(|known| known == figure) {
            let near = nearest(figure, figure_names());
            let known = figure_names().collect::<Vec<_>>().join(", ");
            let meant =
                near.map_or_else(|| format!("there are {known}"), |near| format!("did you mean `{near}`?"));
            return Err(wrong(format!("`{figure}` is not a figure; {meant}")));
        }
        let limit = right.trim().parse().ok().filter(|limit: &f64| limit.is_finite() && *limit > 0.0);
        let limit = limit.ok_or_else(|| wrong(format!("`{}` is not a ratio above 0", right.trim())))?;
        Ok(Self { typed: typed.trim().to_owned(), figure: figure.to_owned(), fails_above, limit })
    }
}

impl Gate {
    /// Judges whether a contrast is beyond the limit, which it is only if its whole interval is.
    pub(crate) fn judge(&self, contrast: &Contrast) -> LimitResult {
        let ends = contrast.ratios.get(&self.figure).and_then(|ratio| Some((ratio.low?, ratio.high?)));
        let exceeded = ends.and_then(|(low, high)| {
            let (surely, surely_not) = match self.fails_above {
                true => (low > self.limit, high <= self.limit),
                false => (high < self.limit, low >= self.limit),
            };
            (surely || surely_not).then_some(surely)
        });
        LimitResult { limit: self.typed.clone(), compared: contrast.compared.clone(), exceeded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_on_a_ratio() {
        for typed in ["p99 ratio > 1.1", "iops ratio<0.95"] {
            assert_eq!(typed.parse::<Gate>().map(|gate| gate.typed).as_deref(), Ok(typed));
        }
        for typed in ["iops > 1", "iops >= 1", "ratio > 1", "iopsratio > 1"] {
            let error = typed.parse::<Gate>().unwrap_err();
            assert!(error.contains("type it as in 'p99 ratio > 1.1'"), "{error}");
        }
    }
}
