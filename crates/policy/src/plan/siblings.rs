//! Namespaces of an NVMe controller, which share a write cache.
//!
//! Feature 06h belongs to the controller (NVM Express 2.0, figure 317: scope "controller"), so switching the
//! cache of one namespace switches that of all. A plan treats them as one disk: it has one change for them,
//! at the position of the most critical one, it flushes each, and it is refused if one of them may not be
//! changed or was not selected. The kernel's view is separate for each namespace: suppressing flushes on one
//! does not affect the others.

use plumb_text::shell_word;

use super::document::PlanRequest;
use super::obstacle::judge;
use crate::device::Reader;
use crate::gateway::{Change, Disk};
use crate::mechanism::{Goal, Step};
use crate::view::{DeviceView, Refusal};

/// Returns true if a change to `goal` switches the drive, rather than only the kernel's view.
pub(crate) fn switches_the_drive(view: &DeviceView, goal: Goal) -> bool {
    let saves = goal.saved.is_some() && goal.saved != view.device.saved;
    saves || view.device.wce != Some(goal.state != crate::state::State::Off)
}

/// Refuses to switch the drive of `view` if that is not allowed for `sibling`.
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

/// Returns the refusal for a sibling excluded by an expression.
pub(super) fn left_out(view: &DeviceView, sibling: &str) -> Refusal {
    let name = &view.name;
    Refusal::new(
        format!(
            "{name} and {sibling} are namespaces of one controller, with one write cache, and the expression leaves {sibling} out"
        ),
        format!("choose both or neither: `name ~ {}*`", name.trim_end_matches(|c: char| c.is_ascii_digit())),
    )
}

/// Adds a flush of every sibling before the first and after the last of `steps`, since a flush covers only
/// one namespace.
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
