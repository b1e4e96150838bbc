//! `plumb cache replace-leg`, `replace-log` and `grow`: changes to the log of a cache, whether it is served
//! or not.

use anyhow::anyhow;
use plumb_block::{Bytes, FailureKind, RealClock, Time};
use plumb_cache::MissingLegs;
use plumb_caches::{CacheConfig, CacheOrder, CacheStatus, DevicePlace, NamedCache, Opening};
use plumb_report::Format;
use plumb_report::progress::{CacheActivity, laying_out, writing_back};
use plumb_serve::named::control::Order;

use super::laying_out::watched;
use super::orders::{config, order};
use super::status;
use crate::arguments::cache::{ReplaceLegArguments, ReplaceLogArguments};
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

/// Replaces a leg, and waits until the new one is complete.
pub(super) fn replace_leg(arguments: &ReplaceLegArguments, format: Format) -> anyhow::Result<Exit> {
    let ReplaceLegArguments { name, lost, log, overwrite, destroy } = arguments;
    let config = config(name)?;
    let is_lost = |(number, place): &(usize, &DevicePlace)| *lost == number.to_string() || place.is_at(lost);
    let Some((leg, _)) = config.legs.iter().enumerate().find(is_lost) else {
        let legs: Vec<_> = config.legs.iter().map(ToString::to_string).collect();
        let legs = legs.join(", ");
        let message = format!(
            "{lost} is not a device of the log of {name}: name one of {legs}, or its number from 0 on"
        );
        return Err(Refusal::new(FailureKind::Usage, message).into());
    };
    let log = for_server(log)?;
    let given =
        CacheOrder::ReplaceLeg { leg, log: log.clone(), overwrite: *overwrite, destroy: destroy.clone() };
    let is_over = |now: &CacheStatus| now.legs[leg].state != "resilvering";
    let end = changed(config, &given, is_over, "is being copied to the new device")?;
    let Some((_, end)) = end else { return Ok(Exit::NOT_MEASURED) };
    if end.legs[leg].state != "live" {
        return Err(anyhow!(
            "{name}: {log} failed before the copy was complete; the cache continues without it: give \
             another device with the same command"
        ));
    }
    status::show(end, format)
}

/// Replaces the log, and waits until the new one is in use.
pub(super) fn replace_log(arguments: &ReplaceLogArguments, format: Format) -> anyhow::Result<Exit> {
    let ReplaceLogArguments { name, log, size, overwrite, destroy } = arguments;
    let config = config(name)?;
    let log = log.iter().map(|typed| for_server(typed)).collect::<anyhow::Result<_>>()?;
    let size = size.map(|size| size.0);
    let given = CacheOrder::ReplaceLog { log, size, overwrite: *overwrite, destroy: destroy.clone() };
    let end = changed(config, &given, |_| true, "moves to another log")?;
    let Some((before, end)) = end else { return Ok(Exit::NOT_MEASURED) };
    let places = |status: &CacheStatus| status.legs.iter().map(|leg| leg.path.clone()).collect::<Vec<_>>();
    if places(&before) == places(&end) {
        terminal::say(&format!("plumb: the log of {name} is already on {}", places(&end).join(", ")));
    }
    status::show(end, format)
}

/// Returns a name in the form that the server can resolve, because its working directory differs.
fn for_server(typed: &str) -> anyhow::Result<String> {
    match typed.contains(':') {
        true => Ok(typed.to_owned()),
        false => Ok(std::path::absolute(typed)?.to_string_lossy().into_owned()),
    }
}

/// Grows the log, and waits for that; without a size, extends the cache to all of its backing device.
pub(super) fn grow(name: &str, size: Option<Bytes>, format: Format) -> anyhow::Result<Exit> {
    let config = config(name)?;
    let Some(Bytes(size)) = size else {
        let end = changed(config, &CacheOrder::GrowBacking, |_| true, "grows")?;
        let Some((before, end)) = end else { return Ok(Exit::NOT_MEASURED) };
        if let Some(size) = end.backing.size.filter(|_| end.backing == before.backing) {
            terminal::say(&format!(
                "plumb: {name} already caches all of its backing device, {}; enlarge that first (lvextend, truncate, a \
                 larger disk) for more",
                Bytes(size)
            ));
        }
        return status::show(end, format);
    };
    let is_over = |now: &CacheStatus| !now.growing && now.serves();
    let end = changed(config, &CacheOrder::Grow { size }, is_over, "makes room for a larger log")?;
    let Some((before, end)) = end else { return Ok(Exit::NOT_MEASURED) };
    if end.log_size <= before.log_size {
        // An order that was interrupted may be given again after the growth.
        if before.size != size || end.log_error.is_some() || end.write_back_error.is_some() {
            return Err(anyhow!(
                "{name}: the log was not enlarged, because data in the way cannot be written back; see its \
                 status, then try again"
            ));
        }
        terminal::say(&format!("plumb: the log of {name} is already so large"));
    }
    status::show(end, format)
}

/// Gives the order to a served cache, or executes it on a cache that is not served, and waits until it is
/// complete. Returns the status before and after; `None` if interrupted, in which case a served cache
/// continues with the order.
fn changed(
    config: CacheConfig,
    given: &CacheOrder,
    is_over: impl Fn(&CacheStatus) -> bool,
    what: &str,
) -> anyhow::Result<Option<(CacheStatus, CacheStatus)>> {
    let (name, interrupted) = (config.name.clone(), stop::on_signals()?);
    let what = |_: &CacheStatus, _: Bytes| what.to_owned();
    let followed = |now: CacheStatus, look: &dyn Fn() -> anyhow::Result<Option<CacheStatus>>| {
        CacheActivity { look, is_over: &is_over, what: &what }.end(now, &interrupted)
    };
    let look = || -> anyhow::Result<_> { Ok(order(&name, &Order::Status)?) };
    // Repeating the order does not execute it again; the answer has the progress.
    let give = || -> anyhow::Result<_> { Ok(order(&name, &Order::Own(given.clone()))?) };
    if let Some(before) = look()?
        && let Some(now) = give()?
    {
        let begun = RealClock::start();
        let what = |now: &CacheStatus, first: Bytes| match now.log_error {
            Some(_) => writing_back(now, first),
            None => laying_out(now, begun),
        };
        let laid_out = CacheActivity { look: &give, is_over: &|now| now.laying_out.is_none(), what: &what };
        let Some(now) = laid_out.end(now, &interrupted)? else { return Ok(None) };
        let end = followed(now, &look)?;
        return Ok(end.map(|end| (before, end)));
    }
    let time = Time::real();
    // The leg to be replaced may be missing; another missing leg might have the only copy.
    let degraded = match given {
        CacheOrder::ReplaceLeg { leg, .. } => MissingLegs::Without(*leg),
        _ => MissingLegs::No,
    };
    let open = NamedCache::open(config, Opening { degraded, ..Opening::STRICT }, &time)?;
    let before = CacheStatus::open(&open);
    watched(&interrupted, |laying_out| given.change(&open, laying_out))?;
    let look = || Ok(Some(CacheStatus::open(&open)));
    let end = followed(CacheStatus::open(&open), &look);
    open.stop()?;
    Ok(end?.map(|end| (before, end)))
}
