//! Effective distributions of random I/Os.

use plumb_load::SpanResult;

use plumb_workload::EffectiveZone;

use super::super::measured::{asked, effective, parts};
use super::super::profile::TimeSpan;
use super::super::size::shown;
use super::page::Page;

pub(super) fn section(span: &TimeSpan, result: &SpanResult, page: &mut Page) {
    let mut headed = false;
    for (place, measured) in result.targets.iter().enumerate() {
        let shares_there =
            asked(span, result, place).and_then(|target| effective(span, target, measured.size.0));
        let Some(effective) = shares_there else { continue };
        if !headed {
            page.line("\nEffective IO Distributions\n--------------------------");
            headed = true;
        }
        let threads = parts(result).filter(|(_, part)| part.target == place).map(|(thread, _)| thread);
        page.line(&format!("target: {} [thread:{}]", measured.name, runs(threads)));
        shares(&effective, page);
    }
}

/// Formats ascending numbers, three or more consecutive ones as ` 0 - 3`.
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

fn shares(zones: &[EffectiveZone], page: &mut Page) {
    let sum: f64 = zones.iter().map(|zone| zone.io_percent).sum();
    for EffectiveZone { io_percent, range } in zones {
        let share = if sum == 100.0 {
            format!("   {io_percent:>3}%")
        } else {
            format!("    {:.1}%", 100.0 * io_percent / sum)
        };
        let (from, to) = (range.offset.0, range.offset.0 + range.length.0);
        page.line(&format!("{share} of IO => [{:>9} - {:>9})", shown(from), shown(to)));
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
