//! Steps of a change in order.
//!
//! Off: let flushes pass again, flush, set, flush, make the kernel read the drive again. On: set (by
//! `cache_type`, which sets and reads again in one step), set the kernel's view to write back, reload stale
//! dm tables, flush. Protected: as on, with a last step that makes the kernel suppress flushes. At any moment
//! of a power cut, the kernel assumes a volatile cache whenever there is one, except for the requested
//! suppression.

use super::{Above, Condition, Goal, Kind, Material, Step};
use crate::gateway::{Change, Disk};
use crate::state::State;
use crate::view::{DeviceView, Refusal};
use crate::wire::{ata, mode_page, nvme_command, sct};

const WRITE_BACK: &str = "write back";
const WRITE_THROUGH: &str = "write through";

/// Returns the steps that bring a disk to `goal`; none if it is there.
///
/// # Errors
/// A [`Refusal`] if the drive cannot do what is requested: save the state, or on ATA save another value than
/// the current one.
pub fn steps(material: &Material, goal: Goal) -> Result<Vec<Step>, Refusal> {
    if is_there(material, goal) {
        return Ok(Vec::new());
    }
    let mut plan = Plan { material, steps: Vec::new() };
    plan.may_save(goal)?;
    if goal.state == State::Off {
        plan.off(goal)?;
    } else {
        plan.on(goal)?;
    }
    Ok(plan.steps)
}

/// Returns the steps that make the kernel and the layers above recognise an enabled cache (traps H1 to H5);
/// none for a disabled cache, for which the kernel's view does not matter.
pub fn heal(material: &Material) -> Vec<Step> {
    let mut plan = Plan { material, steps: Vec::new() };
    if material.wce {
        plan.write_back();
        plan.look_again();
        plan.write_back();
        plan.reload();
        plan.flush("data written while flushes were lost is made durable");
    }
    plan.steps
}

/// Returns the step that permanently returns control of an ATA drive's write cache to SET FEATURES.
pub fn release_sct(disk: &Disk) -> Step {
    let change = Change::Scsi {
        cdb: ata::write_log(sct::LOG).to_vec(),
        data: sct::set(sct::WriteCache::AtaControlled, true),
    };
    Step::new(disk, change, "control of the write cache returns to SET FEATURES")
}

/// Returns true if the goal is already met, so that nothing needs to be done (rule 5).
fn is_there(material: &Material, goal: Goal) -> bool {
    let queue = material.write_cache_says.as_deref();
    let cache_type = material.cache_type_says.as_deref().map(|says| says.starts_with(WRITE_BACK));
    let kernel = match goal.state {
        // Unnecessary flushes for a disabled cache are harmless; with NVMe they are unavoidable (H7).
        State::Off => {
            material.kind == Kind::Nvme || (queue == Some(WRITE_THROUGH) && cache_type != Some(true))
        }
        State::On => queue == Some(WRITE_BACK) && cache_type != Some(false),
        State::Protected => queue == Some(WRITE_THROUGH) && cache_type != Some(false),
    };
    let saved = goal.saved.is_none() || goal.saved == material.saved;
    material.wce == (goal.state != State::Off) && kernel && saved
}

struct Plan<'a> {
    material: &'a Material,
    steps: Vec<Step>,
}

impl Plan<'_> {
    fn add(&mut self, change: Change, why: &str) -> &mut Step {
        self.steps.push(Step::new(&self.material.disk, change, why));
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    fn flush(&mut self, why: &str) {
        self.add(Change::Flush, why);
    }

    fn may_save(&self, goal: Goal) -> Result<(), Refusal> {
        let Some(saved) = goal.saved else { return Ok(()) };
        let name = &self.material.disk.name;
        if !self.material.saveable {
            return Err(Refusal::new(
                format!("{name} cannot save its setting"),
                "leave saving to plumb: `plumb policy persist` writes a udev rule and a unit",
            ));
        }
        if self.material.kind == Kind::Ata && saved != (goal.state != State::Off) {
            return Err(Refusal::new(
                format!("{name} saves by SCT, which forces the cache to what is saved"),
                "save the state that is set, or do not save",
            ));
        }
        Ok(())
    }

    fn off(&mut self, goal: Goal) -> Result<(), Refusal> {
        if self.material.wce {
            // A remaining flag of the queue would be a trap when the cache is enabled again.
            self.write_back();
            self.flush("everything in the cache is made durable");
        }
        self.set(goal)?;
        self.flush("data acknowledged in the meantime is made durable");
        self.look_again();
        Ok(())
    }

    fn on(&mut self, goal: Goal) -> Result<(), Refusal> {
        let protected = goal.state == State::Protected;
        let healed_first = self.material.wce && !protected;
        if healed_first {
            self.write_back();
        }
        self.set(goal)?;
        self.look_again();
        if !protected || self.material.write_cache_says.as_deref() != Some(WRITE_THROUGH) {
            self.write_back();
        }
        self.reload();
        self.flush("data written before the kernel knew of the cache is made durable");
        if protected {
            let change = self.queue(WRITE_THROUGH);
            // Not by the value of the queue: before the kernel has seen the cache, the queue has the same
            // value for another reason.
            let after = self.seen();
            self.add(change, "flushes are kept from the drive, as was asked for").after = after;
        }
        Ok(())
    }

    /// Sets the drive: first saved and current value together, then the current value if it differs.
    fn set(&mut self, goal: Goal) -> Result<(), Refusal> {
        let wce = goal.state != State::Off;
        let mut now = self.material.wce;
        if let Some(saved) = goal.saved
            && goal.saved != self.material.saved
        {
            self.set_saved(saved)?;
            now = saved;
        }
        if now == wce {
            return Ok(());
        }
        let why = if wce { "the write cache is switched on" } else { "the write cache is switched off" };
        match self.material.kind {
            Kind::Nvme => {
                self.add(Change::NvmeAdmin(nvme_command::set_write_cache(wce, false)), why);
            }
            Kind::Virtio => self.cache_type(wce, why)?,
            // `cache_type` also saves if the drive supports it (SP=1 with PS=1), which was not requested.
            Kind::Scsi | Kind::Ata if wce && self.prefers_cache_type() => self.cache_type(true, why)?,
            Kind::Scsi => self.mode_select(wce, mode_page::Save::No, why)?,
            Kind::Ata => {
                self.add(Change::Scsi { cdb: ata::set_write_cache(wce).to_vec(), data: Vec::new() }, why);
            }
        }
        Ok(())
    }

    /// Returns true if `cache_type` should be used. A stale `cache_type` that already says write back should
    /// not: some controllers refuse an equal value.
    fn prefers_cache_type(&self) -> bool {
        let stale = self.material.cache_type_says.as_deref().is_none_or(|says| says.starts_with(WRITE_BACK));
        let saves = self.material.kind == Kind::Scsi && self.material.saveable;
        self.material.cache_type.is_some() && !stale && !saves
    }

    fn set_saved(&mut self, saved: bool) -> Result<(), Refusal> {
        let why = if saved { "on, also after a power cut" } else { "off, also after a power cut" };
        match self.material.kind {
            Kind::Nvme => {
                self.add(Change::NvmeAdmin(nvme_command::set_write_cache(saved, true)), why);
            }
            Kind::Scsi => self.mode_select(saved, mode_page::Save::Yes, why)?,
            Kind::Ata => {
                let state = if saved { sct::WriteCache::ForcedOn } else { sct::WriteCache::ForcedOff };
                let cdb = ata::write_log(sct::LOG).to_vec();
                self.add(Change::Scsi { cdb, data: sct::set(state, true) }, why);
                // The drive ignores this command now, but the command makes libata read IDENTIFY again.
                let cdb = ata::set_write_cache(saved).to_vec();
                self.add(Change::Scsi { cdb, data: Vec::new() }, "the kernel is told");
            }
            Kind::Virtio => {
                return Err(Refusal::new("a virtio disk saves nothing", "persist the setting on the host"));
            }
        }
        Ok(())
    }

    fn mode_select(&mut self, wce: bool, save: mode_page::Save, why: &str) -> Result<(), Refusal> {
        let answer = self.material.mode_page.as_deref().unwrap_or_default();
        let Some(command) = mode_page::select(answer, wce, save) else {
            let reason = format!("the caching page of {} is incomplete", self.material.disk.name);
            return Err(Refusal::new(reason, "look at it: `sdparm --page=ca --hex /dev/DISK`"));
        };
        self.add(Change::Scsi { cdb: command.cdb.to_vec(), data: command.parameters }, why);
        Ok(())
    }

    fn cache_type(&mut self, wce: bool, why: &str) -> Result<(), Refusal> {
        let Some(path) = self.material.cache_type.clone() else {
            let reason = format!("{} has no cache_type", self.material.disk.name);
            return Err(Refusal::new(reason, "is /sys mounted?"));
        };
        let text = if wce { WRITE_BACK } else { WRITE_THROUGH }.to_owned();
        self.add(Change::Attribute { path, text }, why);
        Ok(())
    }

    /// Makes sd read the drive again, without any remaining override.
    fn look_again(&mut self) {
        if !matches!(self.material.kind, Kind::Scsi | Kind::Ata) {
            return;
        }
        if let Some(path) = self.material.cache_type.clone() {
            self.add(Change::ClearOverride { path }, "a temporary setting of the kernel is forgotten");
        }
        if let Some(path) = self.material.rescan.clone() {
            let change = Change::Attribute { path, text: "1".to_owned() };
            self.add(change, "the kernel reads the drive again");
        }
    }

    fn queue(&self, text: &str) -> Change {
        Change::Attribute { path: self.material.write_cache.clone(), text: text.to_owned() }
    }

    /// Returns the condition that the kernel has seen the enabled cache; its queue flag is separate.
    fn seen(&self) -> Option<Condition> {
        let path = self.material.cache_type.clone()?;
        Some(Condition { path, says: WRITE_BACK.to_owned() })
    }

    fn unless(&self, path: &str, says: &str) -> Condition {
        Condition { path: path.to_owned(), says: says.to_owned() }
    }

    /// Makes the kernel send flushes. Kernels before 6.11 refuse that while they assume that there is no
    /// cache.
    fn write_back(&mut self) {
        let change = self.queue(WRITE_BACK);
        let unless = self.unless(&self.material.write_cache.clone(), WRITE_BACK);
        let step = self.add(change, "the kernel sends flushes to the drive");
        step.only_unless = Some(unless);
        step.may_be_refused = true;
    }

    /// Reloads dm tables, the lowest first, since each adopts the state of the device below it.
    fn reload(&mut self) {
        for Above { disk, write_cache } in &self.material.above {
            let mut reload = Step::new(disk, Change::ReloadTable, "the dm device sees the cache below it");
            reload.after = self.seen();
            reload.only_unless = Some(Condition { path: write_cache.clone(), says: WRITE_BACK.to_owned() });
            self.steps.push(reload);
        }
    }
}

/// Returns true if the view shows a trap that [`heal`] can heal: H1 to H5.
pub fn needs_healing(view: &DeviceView) -> bool {
    const HEALED: [&str; 5] = [
        "h1-temporary-write-through",
        "h2-queue-write-through",
        "h3-stale-kernel-view",
        "h4-stale-dm-table",
        "h5-dm-over-disabled-queue",
    ];
    view.findings.iter().any(|finding| HEALED.contains(&finding.id.as_str()))
}
