//! Tests of switching each kind of disk: the commands and their order, and the agreement of the device, the
//! kernel and the stack above afterwards. Drives that only pretend are recognised.
use jiff::Timestamp;
use plumb_block::{Errno, Nanos};
use plumb_policy::device::{Claims, Reader};
use plumb_policy::gateway::{Change, Gateway, GatewayError};
use plumb_policy::mechanism::{self, Execution, Goal, Material, Outcome, Step};
use plumb_policy::mock::{Kill, KillPayload, MockDisk, MockGateway, MockKind, Trap};
use plumb_policy::state::{FoundState, State};
use plumb_policy::view::DeviceView;
use plumb_policy::wire::sct::WriteCache;

const SWITCHABLE: [MockKind; 5] =
    [MockKind::Sas, MockKind::Sata, MockKind::Nvme, MockKind::Virtio, MockKind::Usb];

fn goal(state: State) -> Goal {
    Goal { state, saved: None }
}

pub(crate) fn view(gateway: &MockGateway, name: &str) -> DeviceView {
    let claims = Claims::default();
    Reader::new(gateway, &claims, Timestamp::UNIX_EPOCH).unwrap().one(name).unwrap()
}

fn material(gateway: &MockGateway, name: &str) -> Material {
    let claims = Claims::default();
    let reader = Reader::new(gateway, &claims, Timestamp::UNIX_EPOCH).unwrap();
    let view = reader.one(name).unwrap();
    Material::read(&reader, &view).unwrap()
}

fn carry_out(gateway: &MockGateway, steps: &[Step]) -> Vec<Execution> {
    steps.iter().map(|step| mechanism::execute(gateway, step).unwrap()).collect()
}

/// Brings the disk to the goal. Returns the outcome of the read-back.
fn bring(gateway: &MockGateway, name: &str, goal: Goal) -> Outcome {
    let material = material(gateway, name);
    let steps = mechanism::steps(&material, goal).unwrap();
    carry_out(gateway, &steps);
    mechanism::settle(gateway, &material, goal)
}

fn name_of(gateway: &MockGateway) -> String {
    let claims = Claims::default();
    Reader::new(gateway, &claims, Timestamp::UNIX_EPOCH).unwrap().all().devices[0].name.clone()
}

#[test]
fn every_kind_goes_through_all_states_and_back() {
    for kind in SWITCHABLE {
        let gateway = MockGateway::new([MockDisk::new(kind)]);
        let name = name_of(&gateway);
        for (state, found) in [
            (State::Off, FoundState::Off),
            (State::On, FoundState::On),
            (State::Protected, FoundState::Protected),
            (State::Off, FoundState::Off),
            (State::Protected, FoundState::Protected),
            (State::On, FoundState::On),
        ] {
            let outcome = bring(&gateway, &name, goal(state));
            assert_eq!(outcome.disagreements, [], "{kind:?} to {state}");
            assert_eq!(view(&gateway, &name).state, found, "{kind:?} to {state}");
            assert_eq!(gateway.disk(&name).unwrap().wce, state != State::Off);
            assert_eq!(gateway.flush_arrives(&name), state != State::Protected, "{kind:?} {state}");
            let again = mechanism::steps(&material(&gateway, &name), goal(state)).unwrap();
            assert_eq!(again, [], "{kind:?}: what is there needs nothing");
        }
    }
}

#[test]
fn a_cache_is_emptied_before_and_after_it_is_switched_off() {
    for kind in SWITCHABLE {
        let gateway = MockGateway::new([MockDisk::new(kind)]);
        let name = name_of(&gateway);
        let steps = mechanism::steps(&material(&gateway, &name), goal(State::Off)).unwrap();
        let flushes: Vec<usize> = (0..steps.len()).filter(|at| steps[*at].change == Change::Flush).collect();
        let set = steps.iter().position(|step| step.why.contains("switched off")).unwrap();
        assert!(flushes.len() == 2 && flushes[0] < set && set < flushes[1], "{kind:?}: {steps:?}");
    }
}

#[test]
fn nothing_is_told_to_suppress_flushes_unless_it_was_asked_for() {
    for kind in SWITCHABLE {
        for (from, to) in [(true, State::Off), (false, State::On)] {
            let disk = if from { MockDisk::new(kind) } else { MockDisk::new(kind).off() };
            let gateway = MockGateway::new([disk]);
            let name = name_of(&gateway);
            for step in mechanism::steps(&material(&gateway, &name), goal(to)).unwrap() {
                if let Change::Attribute { path, text } = &step.change {
                    assert!(!text.starts_with("temporary"), "{step:?}");
                    assert!(!(path.ends_with("queue/write_cache") && text == "write through"), "{step:?}");
                }
            }
        }
    }
}

#[test]
fn traps_are_healed_and_flushes_arrive_again() {
    for kind in [MockKind::Sas, MockKind::Sata, MockKind::Usb] {
        for trap in [Trap::Temporary, Trap::Queue, Trap::Stale] {
            let gateway = MockGateway::new([MockDisk::new(kind).trapped(trap)]);
            let name = name_of(&gateway);
            let before = view(&gateway, &name);
            assert!(mechanism::needs_healing(&before), "{kind:?} {trap:?}: {:?}", before.findings);
            assert!(!gateway.flush_arrives(&name));
            let material = material(&gateway, &name);
            carry_out(&gateway, &mechanism::heal(&material));
            assert_eq!(mechanism::settle(&gateway, &material, goal(State::On)).disagreements, []);
            assert!(gateway.flush_arrives(&name), "{kind:?} {trap:?}");
            assert!(!mechanism::needs_healing(&view(&gateway, &name)));
            assert!(gateway.disk(&name).unwrap().wce, "healing leaves the drive as it is");
        }
    }
}

#[test]
fn a_stale_dm_table_is_loaded_again_from_below() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas).off()]);
    gateway.device_mapper("dm-0", "CRYPT-x", &["sda"]);
    gateway.device_mapper("dm-1", "LVM-y", &["dm-0"]);
    assert_eq!(bring(&gateway, "sda", goal(State::On)).disagreements, []);
    assert!(gateway.flush_arrives("dm-1"));
    let reloaded: Vec<String> = gateway
        .log()
        .into_iter()
        .filter(|(_, change)| *change == Change::ReloadTable)
        .map(|(disk, _)| disk.name)
        .collect();
    assert_eq!(reloaded, ["dm-0", "dm-1"]);
}

#[test]
fn dm_over_sata_is_loaded_again_only_when_the_kernel_has_seen_the_cache() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sata).off()]);
    gateway.device_mapper("dm-0", "CRYPT-x", &["sda"]);
    assert_eq!(bring(&gateway, "sda", goal(State::On)).disagreements, []);
    assert!(gateway.flush_arrives("dm-0"));
}

#[test]
fn trap_h4_is_found_on_the_disk_below_and_healed() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas).off()]);
    gateway.device_mapper("dm-0", "LVM-y", &["sda"]);
    gateway.meddle("sda", |disk| {
        disk.wce = true;
        disk.kernel.cache = true;
    });
    let found = view(&gateway, "sda");
    assert_eq!(found.state, FoundState::On);
    assert!(found.findings.iter().any(|finding| finding.id == "h4-stale-dm-table"), "{:?}", found.findings);
    assert!(!gateway.flush_arrives("dm-0"));
    carry_out(&gateway, &mechanism::heal(&material(&gateway, "sda")));
    assert!(gateway.flush_arrives("dm-0"));
}

#[test]
fn trap_h5_is_found_and_healed() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas)]);
    gateway.device_mapper("dm-0", "LVM-y", &["sda"]);
    gateway.meddle("sda", |disk| disk.kernel.disabled = true);
    let ids: Vec<String> = view(&gateway, "sda").findings.into_iter().map(|finding| finding.id).collect();
    assert!(ids.iter().any(|id| id == "h5-dm-over-disabled-queue"), "{ids:?}");
    carry_out(&gateway, &mechanism::heal(&material(&gateway, "sda")));
    assert!(gateway.flush_arrives("dm-0"));
}

#[test]
fn libata_is_waited_for() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sata)]);
    let material = material(&gateway, "sda");
    let set =
        Change::Scsi { cdb: plumb_policy::wire::ata::set_write_cache(false).to_vec(), data: Vec::new() };
    gateway.carry_out(&material.disk, &set).unwrap();
    let early = mechanism::read_back(&gateway, &material);
    assert!(!mechanism::disagreements(material.kind, goal(State::Off), &early).is_empty(), "{early:?}");
    let outcome = mechanism::settle(&gateway, &material, goal(State::Off));
    assert_eq!(outcome.disagreements, []);
    assert!(outcome.waited >= Nanos(20_000_000) && outcome.waited <= Nanos(32_000_000), "{outcome:?}");
}

#[test]
fn a_drive_that_pretends_is_a_disagreement_and_never_a_success() {
    for kind in SWITCHABLE {
        for (wce, state) in [(true, State::Off), (false, State::On)] {
            let disk = MockDisk::new(kind).with(|disk| {
                disk.ignores_set = true;
                disk.wce = wce;
            });
            let gateway = MockGateway::new([disk]);
            let outcome = bring(&gateway, &name_of(&gateway), goal(state));
            assert!(outcome.waited >= Nanos(2_000_000_000), "{outcome:?}");
            let what: Vec<&str> = outcome.disagreements.iter().map(|one| one.what.as_str()).collect();
            assert!(what.contains(&"the write cache of the device"), "{kind:?} {state}: {outcome:?}");
        }
    }
}

#[test]
fn a_set_that_takes_effect_late_is_waited_for() {
    for kind in [MockKind::Sas, MockKind::Nvme] {
        let gateway = MockGateway::new([MockDisk::new(kind).with(|disk| {
            disk.set_delay = Nanos(400_000_000);
            disk.attention_after_change = true;
        })]);
        let name = name_of(&gateway);
        let outcome = bring(&gateway, &name, goal(State::Off));
        // sd has read the drive too early: the kernel keeps its old view, which wastes flushes and loses
        // none.
        assert!(outcome.disagreements.iter().all(|one| one.what != "the write cache of the device"));
        let second = bring(&gateway, &name, goal(State::Off));
        assert_eq!(second.disagreements, [], "{kind:?}");
    }
}

#[test]
fn what_is_saved_changes_only_when_asked() {
    for kind in [MockKind::Sas, MockKind::Nvme] {
        let gateway = MockGateway::new([MockDisk::new(kind).off().with(|disk| disk.saved = Some(false))]);
        let name = name_of(&gateway);
        let saved = || gateway.disk(&name).unwrap().saved;
        assert_eq!(bring(&gateway, &name, goal(State::On)).disagreements, [], "{kind:?}");
        assert_eq!(saved(), Some(false), "{kind:?}: not asked for");
        let kept = Goal { state: State::On, saved: Some(true) };
        assert_eq!(bring(&gateway, &name, kept).disagreements, []);
        assert_eq!(saved(), Some(true));
        // Back to what a snapshot said: off after a power cut, on now.
        let back = Goal { state: State::On, saved: Some(false) };
        assert_eq!(bring(&gateway, &name, back).disagreements, [], "{kind:?}");
        assert_eq!((saved(), gateway.disk(&name).unwrap().wce), (Some(false), true));
        gateway.power_cycle();
        assert_eq!(view(&gateway, &name).state, FoundState::Off);
    }
}

#[test]
fn sata_saves_by_sct_and_is_given_back() {
    let disk = MockDisk::new(MockKind::Sata).with(|disk| disk.sct = Some(WriteCache::AtaControlled));
    let gateway = MockGateway::new([disk]);
    let material = material(&gateway, "sda");
    let kept = Goal { state: State::Off, saved: Some(false) };
    assert_eq!(bring(&gateway, "sda", kept).disagreements, []);
    gateway.power_cycle();
    let found = view(&gateway, "sda");
    assert_eq!((found.state, found.device.sct.as_deref()), (FoundState::Off, Some("forced-off")));
    assert!(found.refusal.unwrap().reason.contains("SCT"));
    mechanism::execute(&gateway, &mechanism::release_sct(&material.disk)).unwrap();
    assert_eq!(view(&gateway, "sda").refusal, None);
    let crossed = Goal { state: State::On, saved: Some(false) };
    assert!(mechanism::steps(&material, crossed).unwrap_err().reason.contains("SCT"));
}

#[test]
fn what_cannot_save_is_refused_before_anything_is_sent() {
    for kind in [MockKind::Usb, MockKind::Nvme, MockKind::Virtio, MockKind::Sata] {
        let gateway = MockGateway::new([MockDisk::new(kind)]);
        let refused = mechanism::steps(
            &material(&gateway, &name_of(&gateway)),
            Goal { state: State::Off, saved: Some(false) },
        );
        assert!(refused.unwrap_err().remedy.contains("persist"), "{kind:?}");
        assert_eq!(gateway.changes(), 0);
    }
}

#[test]
fn a_controller_that_refuses_the_same_value_is_not_asked_for_it() {
    let disk = MockDisk::new(MockKind::Sas).trapped(Trap::Stale).with(|disk| {
        disk.driver = "hpsa".to_owned();
        disk.refuses_same_value = true;
    });
    let gateway = MockGateway::new([disk]);
    assert_eq!(bring(&gateway, "sda", goal(State::On)).disagreements, []);
    assert_eq!(bring(&gateway, "sda", goal(State::Off)).disagreements, []);
    assert_eq!(bring(&gateway, "sda", goal(State::On)).disagreements, []);
}

#[test]
fn another_disk_behind_the_name_is_never_changed() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas), MockDisk::new(MockKind::Nvme)]);
    for name in ["sda", "nvme1n1", "nvme0n1"] {
        let Some(_) = gateway.disk(name) else { continue };
        let steps = mechanism::steps(&material(&gateway, name), goal(State::Off)).unwrap();
        gateway.meddle(name, |disk| disk.serial = "ANOTHER".to_owned());
        for step in &steps {
            let refused = mechanism::execute(&gateway, step);
            assert!(
                matches!(refused, Err(GatewayError::OtherDisk { .. }) | Ok(Execution::NotNeeded)),
                "{refused:?}"
            );
        }
        assert!(gateway.disk(name).unwrap().wce);
        gateway.vanish(name);
        assert_eq!(
            mechanism::execute(&gateway, &steps[1]),
            Err(GatewayError::Gone { name: name.to_owned() })
        );
    }
    assert_eq!(gateway.changes(), 0);
}

#[test]
fn a_run_can_be_killed_before_and_after_every_change() {
    let disk = || MockDisk::new(MockKind::Sata);
    let steps = mechanism::steps(&material(&MockGateway::new([disk()]), "sda"), goal(State::Off)).unwrap();
    for number in 0..4 {
        for kill in [Kill::Before(number), Kill::After(number)] {
            let gateway = MockGateway::new([disk()]);
            gateway.kill(kill);
            let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| carry_out(&gateway, &steps)));
            assert_eq!(run.unwrap_err().downcast_ref::<KillPayload>(), Some(&KillPayload(kill)));
            let done = number + usize::from(kill == Kill::After(number));
            assert_eq!(gateway.changes(), done, "{kill:?}");
            // Continuing from any state left by the kill reaches the goal.
            assert_eq!(bring(&gateway, "sda", goal(State::On)).disagreements, [], "{kill:?}");
        }
    }
}

#[test]
fn failures_and_watchers_come_where_they_were_put() {
    let gateway = MockGateway::new([MockDisk::new(MockKind::Sas)]);
    let error = GatewayError::Os { step: "set".to_owned(), errno: Errno::EIO };
    gateway.fail_at(1, error.clone());
    let (sender, receiver) = std::sync::mpsc::channel();
    gateway.before_change(move |number, disk, _| sender.send((number, disk.name.clone())).unwrap());
    let steps = mechanism::steps(&material(&gateway, "sda"), goal(State::Off)).unwrap();
    let needed: Vec<&Step> = steps.iter().filter(|step| step.only_unless.is_none()).collect();
    assert_eq!(mechanism::execute(&gateway, needed[0]), Ok(Execution::Done));
    assert_eq!(mechanism::execute(&gateway, needed[1]), Err(error));
    assert_eq!(mechanism::execute(&gateway, needed[1]), Ok(Execution::Done));
    let seen: Vec<(usize, String)> = receiver.try_iter().collect();
    assert_eq!(seen, [(0, "sda".to_owned()), (1, "sda".to_owned()), (1, "sda".to_owned())]);
}
