//! Where random I/Os went, for targets with a distribution.

use plumb_load::SpanResult;

use super::super::measured::{EffectivePart, asked, effective, parts};
use super::super::profile::TimeSpan;
use super::super::size::shown;
use super::Page;

pub(super) fn section(span: &TimeSpan, result: &SpanResult, page: &mut Page) {
    let mut headed = false;
    for (place, measured) in result.targets.iter().enumerate() {
        let shares_there = asked(span, result, place).and_then(|target| effective(target, measured.size.0));
        let Some(effective) = shares_there.filter(|parts| !parts.is_empty()) else { continue };
        if !headed {
            page.line("\nEffective IO Distributions\n--------------------------");
            headed = true;
        }
        let threads = parts(result).filter(|(_, part)| part.target == place).map(|(thread, _)| thread);
        page.line(&format!("target: {} [thread:{}]", measured.name, runs(threads)));
        shares(&effective, page);
    }
}

/// Ascending numbers, three or more in a row as ` 0 - 3`.
fn runs(numbers: impl Iterator<Item = usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let shown = runs.iter().map(|(first, last)| match last - first {
        0 => format!(" {first}"),
        1 => format!(" {first} {last}"),
        _ => format!(" {first} - {last}"),
    });
    shown.collect()
}

fn shares(parts: &[EffectivePart], page: &mut Page) {
    let sum: u32 = parts.iter().map(|part| u32::from(part.io_percent)).sum();
    for part in parts {
        let share = if sum == 100 {
            format!("   {:>3}%", part.io_percent)
        } else {
            format!("    {:.1}%", 100.0 * f64::from(part.io_percent) / f64::from(sum))
        };
        page.line(&format!("{share} of IO => [{:>9} - {:>9})", shown(part.from), shown(part.to)));
    }
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn threads_in_a_row_are_joined() {
        assert_eq!(runs([0, 1, 2, 3].into_iter()), " 0 - 3");
        assert_eq!(runs([0, 1, 5, 7, 8, 9].into_iter()), " 0 1 5 7 - 9");
        assert_eq!(runs([].into_iter()), "");
    }
}
