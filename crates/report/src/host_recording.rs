//! `plumb report GUEST --beneath HOST`: joins recordings of a guest and its host from the same minutes into
//! one path.
//!
//! # Limitations
//! The clocks of both machines are trusted. The counters of the host include all its programs.

use jiff::Timestamp;
use plumb_block::in_one_line;
use plumb_measure::StorageSide;
use plumb_text::printable;

use crate::document::{RunDocument, Sides};
use crate::quantity::{bytes, count, counted, duration, ratio};

/// Extends the path of `guest` with that of `host`.
///
/// # Errors
/// The reason why the recordings do not belong together.
pub fn join(guest: &mut RunDocument, host: &RunDocument) -> Result<(), String> {
    let together = overlap(guest, host)?;
    let machine = host.environment.host.as_deref().map_or_else(|| "the host".to_owned(), printable);
    guest.notes.push(format!(
        "Joined with the recording of {machine}, of {}: by their clocks, both ran together for {} of {}.",
        printable(&host.target),
        duration(together),
        duration(guest.duration)
    ));
    match (&guest.total.storage, &host.total.storage) {
        (Some(above), Some(below)) => guest.notes.extend(passed_on(&guest.total, above, below, &machine)),
        _ => guest.notes.push(
            "The counts of the devices are not known on both machines, so they are not compared.".to_owned(),
        ),
    }
    guest.path = match (guest.path.take(), &host.path) {
        (Some(path), Some(beneath)) => Some(path.continued_by(beneath, &machine)),
        (path, _) => path,
    };
    Ok(())
}

/// Returns the time in seconds during which both ran.
fn overlap(guest: &RunDocument, host: &RunDocument) -> Result<f64, String> {
    let span = |document: &RunDocument| -> Result<(f64, f64), String> {
        let started_at = &document.environment.started_at;
        let at: Timestamp = started_at
            .parse()
            .map_err(|error| format!("when it was made, `{started_at}`: {}", in_one_line(&error)))?;
        let from = at.as_duration().as_secs_f64();
        // The duration does not include the preparation before the measurement.
        Ok((from, from + document.duration))
    };
    let ((from, until), (host_from, host_until)) = (span(guest)?, span(host)?);
    let together = until.min(host_until) - from.max(host_from);
    if together > 0.0 {
        return Ok(together);
    }
    let (guest, host) = (&guest.environment.started_at, &host.environment.started_at);
    Err(format!(
        "the two recordings do not overlap (host begun {host}, guest begun {guest}): record both at the \
         same time, with synchronized clocks"
    ))
}

/// Describes the part of the guest's requests that reached the devices of the host.
fn passed_on(asked: &Sides, above: &StorageSide, below: &StorageSide, machine: &str) -> Vec<String> {
    let requests = |side: &StorageSide| side.reads + side.writes;
    let of = |side: &StorageSide| {
        let flushes =
            side.flushes.map_or_else(String::new, |flushes| format!(" and {}", counted(flushes, "flush")));
        format!(
            "{} requests ({}){flushes}",
            count(requests(side)),
            bytes((side.read_bytes + side.write_bytes) as f64)
        )
    };
    let application = &asked.application;
    let mut lines = vec![format!(
        "{} operations ({}) and {} syncs in the guest became {} at its devices, and {} at those of {machine}: {} there for each \
         operation in the guest.",
        count(application.operations),
        bytes(application.bytes as f64),
        count(asked.sync.ios),
        of(above),
        of(below),
        ratio(requests(below) as f64 / application.operations.max(1) as f64)
    )];
    if let (Some(flushes @ 1..), Some(0)) = (above.flushes, below.flushes) {
        lines.push(format!(
            "None of the {} flushes of the guest reached a device of {machine}: unless these devices have \
             no volatile cache, data that the guest believes durable is not.",
            count(flushes)
        ));
    }
    lines
}
