//! Switches that may accompany a profile file and change it: -W -d -C -R -v -z and -: . Without a profile
//! file they apply to the only time span.

use super::profile::{Profile, ResultFormat, TimeSpan};
use super::size::number_within;
use crate::error::Error;
use crate::machine::Machine;

/// Returns true if `typed` is one of these switches.
pub(super) fn is_one(typed: &str) -> bool {
    typed.get(1..).is_some_and(|switch| switch.starts_with(['W', 'd', 'C', 'R', 'v', 'z', ':']))
}

/// Applies `switches`, all of this kind, to `profile`. Returns true if the profile is only to be printed.
///
/// # Errors
/// The first switch with an invalid value.
pub(super) fn apply(switches: &[&str], profile: &mut Profile, machine: &Machine) -> Result<bool, Error> {
    let mut profile_only = false;
    for typed in switches {
        let (switch, value) = typed[1..].split_at(1);
        let taken = match switch {
            "W" => set(profile, whole(value), |span| &mut span.warmup),
            "d" => set(profile, whole(value), |span| &mut span.duration),
            "C" => set(profile, whole(value), |span| &mut span.cooldown),
            // The default is the number of milliseconds since boot.
            "z" if value.is_empty() => set(profile, Ok(machine.uptime_ms as u32), |span| &mut span.seed),
            "z" => set(profile, whole(value), |span| &mut span.seed),
            ":" => whole(value).map(|flags| profile.experiment_flags = flags),
            "R" => {
                profile_only |= value.starts_with('p');
                take_format(value, &mut profile.result_format)
            }
            _ => {
                profile.verbose |= value.is_empty();
                profile.verbose_stats |= value == "s";
                let is_known = value.is_empty() || value == "s";
                is_known.then_some(()).ok_or_else(|| format!("'{value}': expected nothing or s"))
            }
        };
        taken.map_err(|problem| Error::new(*typed, problem))?;
    }
    Ok(profile_only)
}

fn set(
    profile: &mut Profile,
    value: Result<u32, String>,
    place: fn(&mut TimeSpan) -> &mut u32,
) -> Result<(), String> {
    let value = value?;
    profile.time_spans.iter_mut().for_each(|span| *place(span) = value);
    Ok(())
}

fn whole(value: &str) -> Result<u32, String> {
    number_within(value, 0, u32::MAX)
}

/// Parses the output format. The last one on the command line applies, as there is one output stream.
fn take_format(value: &str, format: &mut ResultFormat) -> Result<(), String> {
    match value.strip_prefix('p').unwrap_or(value) {
        "text" => *format = ResultFormat::Text,
        "xml" => *format = ResultFormat::Xml,
        "" if !value.is_empty() => {}
        _ => return Err(format!("'{value}' is not an output: expected [p]text or [p]xml, or p")),
    }
    Ok(())
}
