//! One row for each figure, as RFC 4180 has it but with plain line ends: long rather than wide, so that every figure
//! carries its unit and new ones change no column.
//!
//! A check has `section,name,metric,value,unit`, with the sections `sync`, `io` and `verdict`. A load has
//! `section,name,at_seconds,metric,value,unit`, with the sections `load`, `target`, `series` (one row for each figure of
//! each bucket of time) and `verdict`. Durations are seconds, sizes bytes, rates per second. What is not known has no
//! row.

mod check;
mod load;

use plumb_measure::Latency;

pub use check::check;
pub use load::load;

/// Rows of five fields, or of six with a time.
#[derive(Debug)]
struct Csv {
    text: String,
    /// Whether rows have a third field, the time; empty for figures of a whole window.
    timed: bool,
}

impl Csv {
    fn latency(&mut self, section: &str, name: &str, metric: &str, latency: Option<&Latency>) {
        let Some(latency) = latency else { return };
        for (statistic, of) in crate::figures::STATISTICS {
            let statistic = statistic.replace("99.9", "999");
            self.number(section, name, &format!("{metric}_{statistic}"), Some(of(latency)), "seconds");
        }
    }

    fn number(&mut self, section: &str, name: &str, metric: &str, value: Option<f64>, unit: &str) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            let value = value.to_string();
            match self.timed {
                true => self.row(&[section, name, "", metric, &value, unit]),
                false => self.row(&[section, name, metric, &value, unit]),
            }
        }
    }

    fn row(&mut self, fields: &[&str]) {
        let fields: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
        self.text.push_str(&fields.join(","));
        self.text.push('\n');
    }
}

/// A field, quoted where it must be; what a spreadsheet would take for a formula is kept as text.
fn quoted(field: &str) -> String {
    let formula = field.starts_with(['=', '@', '+', '-']) && field.parse::<f64>().is_err();
    let field = if formula { format!("'{field}") } else { field.to_owned() };
    if field.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_and_formulas_defused() {
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("=1+1"), "'=1+1");
        assert_eq!(quoted("-0.5"), "-0.5");
    }
}
