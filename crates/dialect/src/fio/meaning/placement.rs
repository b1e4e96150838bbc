//! On which processors, and with what priority.

use plumb_workload::{Affinity, Priority};

use crate::fio::options::Options;
use crate::fio::value;
use crate::{Error, Machine};

/// What `options` say of processors.
pub(super) fn affinity(options: &Options<'_>, machine: &Machine) -> Result<Affinity, Error> {
    let policy = options.choice("cpus_allowed_policy", &["shared", "split"])?;
    let listed = options.parsed("cpus_allowed", value::numbers)?;
    let masked = options.parsed("cpumask", |text| value::whole(text, options.base()).map(of_mask))?;
    let (name, processors) = match (listed, masked) {
        (Some(listed), Some(masked)) if options.is_after("cpumask", "cpus_allowed") => {
            drop(listed);
            ("cpumask", masked)
        }
        (Some(listed), _) => ("cpus_allowed", listed),
        (None, Some(masked)) => ("cpumask", masked),
        (None, None) => return Ok(Affinity::Any),
    };
    if let Some(missing) = processors.iter().find(|processor| !machine.processors.contains(processor)) {
        let problem =
            format!("processor {missing} is not one of those allowed here, {:?}", machine.processors);
        return Err(options.error(name, problem));
    }
    if processors.is_empty() {
        return Err(options.error(name, "names no processor"));
    }
    Ok(match policy {
        Some("split") => Affinity::Each(processors),
        _ => Affinity::Shared(processors),
    })
}

fn of_mask(mask: u64) -> Vec<u32> {
    (0..64).filter(|bit| mask >> bit & 1 == 1).collect()
}

/// What `options` say of priority: of fio's levels, three can be had.
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
