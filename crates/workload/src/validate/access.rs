//! Rules for a valid access pattern.

use plumb_block::Bytes;

use super::CheckResult;
use crate::access::{Access, Distribution, Random, Runs, Sequential, Walk, Zone, ZoneLength};
use crate::generator::zones::{PERCENT_SLACK, Zones};
use crate::invalid::{Invalid, invalid_if};
use crate::workload::{Division, Workload};

/// Common sector size: multiples of it are on the grid of most devices.
const SECTOR: u64 = 512;
/// Maximum exponent. Steeper distributions send everything to one place.
const THETA_MAX: f64 = 100.0;

pub(super) fn check(workload: &Workload) -> CheckResult {
    match &workload.access {
        Access::Random(random) => {
            check_random(random, workload).map_err(|invalid| invalid.within("access.random"))
        }
        Access::Sequential(sequential) => {
            check_sequential(*sequential, workload).map_err(|invalid| invalid.within("access.sequential"))
        }
    }?;
    check_division(workload)
}

fn check_random(random: &Random, workload: &Workload) -> CheckResult {
    if let Some(align) = random.align {
        invalid_if!(align == Bytes(0), "align", align, "above zero");
        check_step("align", align, workload)?;
    }
    match random.runs {
        Runs::Single => {}
        Runs::Geometric { random_percent: 1..=99 } | Runs::Fixed(2..) => {}
        Runs::Geometric { random_percent } => {
            return Err(Invalid::new("runs.geometric.random_percent", random_percent, "1 to 99"));
        }
        Runs::Fixed(count) => return Err(Invalid::new("runs.fixed", count, "at least 2")),
    }
    if random.distribution == Distribution::EachOnce && random.runs != Runs::Single {
        let expected = "single with each-once: a run covers places that have a turn of their own";
        return Err(Invalid::new("runs", format!("{:?}", random.runs), expected));
    }
    check_distribution(&random.distribution, workload)
}

fn check_distribution(distribution: &Distribution, workload: &Workload) -> CheckResult {
    match distribution {
        Distribution::Uniform | Distribution::EachOnce => Ok(()),
        Distribution::Zipf { theta } => {
            let valid = *theta > 0.0 && *theta <= THETA_MAX && *theta != 1.0;
            let expected = format!("above 0, at most {THETA_MAX}, not 1");
            valid.then_some(()).ok_or_else(|| Invalid::new("distribution.zipf.theta", theta, expected))
        }
        Distribution::Pareto { power } => {
            let valid = *power > 0.0 && *power < 1.0;
            let expected = "between 0 and 1; 0.2 sends 80 % of operations to 20 % of the places";
            valid.then_some(()).ok_or_else(|| Invalid::new("distribution.pareto.power", power, expected))
        }
        Distribution::Normal { deviation_percent } => {
            let valid = *deviation_percent > 0.0 && *deviation_percent <= 100.0;
            let field = "distribution.normal.deviation_percent";
            valid.then_some(()).ok_or_else(|| Invalid::new(field, deviation_percent, "above 0, at most 100"))
        }
        Distribution::Zoned(zones) => {
            check_zones(zones).map_err(|invalid| invalid.within("distribution.zoned"))?;
            if !workload.range.is_open_ended() {
                let cut = Zones::new(zones, workload.range, workload.grid(), None);
                cut.map_err(|invalid| invalid.within("distribution.zoned"))?;
            }
            Ok(())
        }
    }
}

fn check_zones(zones: &[Zone]) -> CheckResult {
    invalid_if!(zones.is_empty(), "", "empty", "at least one zone");
    let (mut io_percent, mut length_percent) = (0.0, 0.0);
    for (index, zone) in zones.iter().enumerate() {
        if !(0.0..=100.0).contains(&zone.io_percent) {
            return Err(Invalid::new(format!("[{index}].io_percent"), zone.io_percent, "0 to 100"));
        }
        let (length, valid) = match zone.length {
            ZoneLength::Percent(percent) => (format!("{percent} %"), percent > 0.0 && percent <= 100.0),
            ZoneLength::Bytes(bytes) => (bytes.to_string(), bytes > Bytes(0)),
        };
        invalid_if!(!valid, format!("[{index}].length"), length, "above zero, at most 100 %");
        io_percent += zone.io_percent;
        if let ZoneLength::Percent(percent) = zone.length {
            length_percent += percent;
        }
    }
    for (what, sum) in [("of the operations", io_percent), ("of the range", length_percent)] {
        invalid_if!(sum > 100.0 + PERCENT_SLACK, "", format!("{sum} % {what}"), "at most 100 % together");
    }
    Ok(())
}

fn check_sequential(sequential: Sequential, workload: &Workload) -> CheckResult {
    if let Some(stride) = sequential.stride {
        check_step("stride", stride, workload)?;
    }
    match sequential.walk {
        Walk::Each => Ok(()),
        Walk::Interlocked if workload.division == Division::Overlap => Ok(()),
        Walk::Interlocked => {
            let expected = "each or parallel, or the division overlap: interlocked workers share one range";
            Err(Invalid::new("walk", "interlocked", expected))
        }
        Walk::Parallel if sequential.stride.is_none() && workload.block_min() != workload.block_max() => {
            let expected = "a number of bytes: operations of different lengths at one place do not say where the \
                            next place is";
            Err(Invalid::new("stride", "none", expected))
        }
        Walk::Parallel => Ok(()),
    }
}

fn check_division(workload: &Workload) -> CheckResult {
    let Division::Offset(offset) = workload.division else { return Ok(()) };
    let expected = "parts or overlap with random access: random workers do not start anywhere";
    invalid_if!(workload.access.is_random(), "division.offset", offset, expected);
    check_step("division.offset", offset, workload)
}

/// Checks a distance between starts: within the range, and a multiple of the sector size if the operations
/// are.
fn check_step(field: &str, step: Bytes, workload: &Workload) -> CheckResult {
    if step > workload.range.length {
        return Err(Invalid::new(field, step, format!("at most the range, {}", workload.range.length)));
    }
    let sectors =
        [workload.block_min(), workload.block_max()].iter().all(|block| block.0.is_multiple_of(SECTOR));
    if sectors && !step.0.is_multiple_of(SECTOR) {
        let value = format!("{} bytes", step.0);
        return Err(Invalid::new(field, value, format!("a multiple of {SECTOR} bytes, as the blocks are")));
    }
    Ok(())
}
