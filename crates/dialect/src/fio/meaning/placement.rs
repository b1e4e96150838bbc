//! Processors and priority.

use plumb_workload::{Affinity, Priority};

use crate::fio::options::Options;
use crate::fio::value;
use crate::{Error, Machine, processors};

/// Returns the affinity.
pub(super) fn affinity(options: &Options<'_>, machine: &Machine) -> Result<Affinity, Error> {
    let policy = options.choice("cpus_allowed_policy", &["shared", "split"])?;
    let listed = options.parsed("cpus_allowed", list)?;
    let masked = options
        .parsed("cpumask", |text| value::whole(text, options.base("cpumask")).map(processors::of_mask))?;
    let (name, processors) = match (listed, masked) {
        (Some(listed), mask) if mask.is_none() || !options.is_after("cpumask", "cpus_allowed") => {
            ("cpus_allowed", listed)
        }
        (_, Some(masked)) => ("cpumask", masked),
        (_, None) => return Ok(Affinity::Any),
    };
    processors::check(&processors, machine).map_err(|problem| options.error(name, problem))?;
    if processors.is_empty() {
        return Err(options.error(name, "names no processor"));
    }
    Ok(match policy {
        Some("split") => Affinity::Each(processors),
        _ => Affinity::Shared(processors),
    })
}

fn list(text: &str) -> Result<Vec<u32>, String> {
    let list = processors::of_list(text, &[',', ':']);
    list.ok_or_else(|| format!("`{text}` is not a list of numbers such as 0-3,8"))
}

/// Returns the priority. Three of fio's levels are supported.
pub(super) fn priority(options: &Options<'_>) -> Result<Priority, Error> {
    let class = options.whole("prioclass", 0..=3)?;
    let level = options.whole("prio", 0..=7)?;
    match (class, level) {
        (None | Some(0), None) => Ok(Priority::Normal),
        (Some(3), _) => Ok(Priority::Idle),
        (None | Some(0 | 2), Some(7)) => Ok(Priority::Low),
        (None | Some(0 | 2), Some(4)) => Ok(Priority::Normal),
        (Some(1), _) => Err(options
            .error("prioclass", "real-time priority would starve whatever else uses the disk")
            .remedy("leave it out")),
        (_, level) => {
            let name = if level.is_some() { "prio" } else { "prioclass" };
            let problem = format!("best effort {} is not offered", level.unwrap_or(0));
            Err(options
                .error(name, problem)
                .remedy("use prio=4 (as usual), prio=7 (low) or prioclass=3 (idle)"))
        }
    }
}
