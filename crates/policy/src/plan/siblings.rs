//! Namespaces of one NVMe controller: disks with one write cache for all of them.
//!
//! Feature 06h belongs to the controller (NVM Express 2.0, figure 317: scope "controller"), so to switch the
//! cache of one namespace is to switch that of all. A plan treats them as one disk: it has one change for
//! them, at the place of the most critical of them, it flushes each, and it is refused where one of them must
//! not be changed or was not meant. What the kernel believes is each namespace's own: to suppress flushes on
//! one touches no other.

use plumb_text::shell_word;

use super::document::PlanRequest;
use super::obstacle::judge;
use crate::device::Reader;
use crate::gateway::{Change, Disk};
use crate::mechanism::{Goal, Step};
use crate::view::{DeviceView, Refusal};

/// Returns true if a change to `goal` switches the drive, and not the kernel's view alone.
pub(crate) fn switches_the_drive(view: &DeviceView, goal: Goal) -> bool {
    let saves = goal.saved.is_some() && goal.saved != view.device.saved;
    saves || view.device.wce != Some(goal.state != crate::state::State::Off)
}

/// Refuses to switch the drive of `view` where that must not be done to `sibling`.
pub(super) fn allow(
    reader: &Reader<'_>,
    view: &DeviceView,
    sibling: &DeviceView,
    asked: PlanRequest,
) -> Result<(), Refusal> {
    let (name, other) = (&view.name, &sibling.name);
    let one_cache = format!("{name} and {other} are namespaces of one controller, with one write cache");
    match asked {
        PlanRequest::Protected => Err(Refusal::new(
            format!(
                "{one_cache}, which is off: it would be on for {other} before its flushes are suppressed"
            ),
            format!("plan `on` for {name} and {other} first, then `protected`"),
        )),
        PlanRequest::On if sibling.kernel.write_cache.as_deref() != Some("write back") => Err(Refusal::new(
            format!("{one_cache}, and the kernel would send {other} no flushes once it is on"),
            {
                let file = shell_word(&format!("/sys/block/{other}/queue/write_cache"));
                format!("`echo 'write back' > {file}`, and plan again")
            },
        )),
        _ => judge(sibling, asked, reader.claims, reader.now).map(|_| ()).map_err(|refusal| {
            Refusal::new(
                format!("{one_cache}, and {other} must not be changed: {}", refusal.reason),
                refusal.remedy,
            )
        }),
    }
}

/// Returns the refusal of a sibling that an expression left out.
pub(super) fn left_out(view: &DeviceView, sibling: &str) -> Refusal {
    let name = &view.name;
    Refusal::new(
        format!(
            "{name} and {sibling} are namespaces of one controller, with one write cache, and the expression leaves {sibling} out"
        ),
        format!("choose both or neither: `name ~ {}*`", name.trim_end_matches(|c: char| c.is_ascii_digit())),
    )
}

/// Returns `steps` with a flush of every sibling before the first and after the last: a flush reaches one
/// namespace.
pub(super) fn flushed(reader: &Reader<'_>, siblings: &[String], steps: Vec<Step>) -> Vec<Step> {
    if !steps.iter().any(|step| matches!(step.change, Change::NvmeAdmin(_))) {
        return steps;
    }
    let disks: Vec<Disk> = siblings.iter().filter_map(|name| reader.disk(name)).collect();
    let flushes =
        |why: &str| -> Vec<Step> { disks.iter().map(|disk| Step::new(disk, Change::Flush, why)).collect() };
    let before = flushes("this namespace shares the cache: the data in it is made durable");
    let after = flushes("data of this namespace acknowledged in the meantime is made durable");
    [before, steps, after].concat()
}
