//! Tests in which an apply, and its rollback, are killed at every record of the journal and at every change:
//! afterwards a rollback restores the original state, and a resume reaches the goal. Guards against a change
//! without a record, a record without a change, and an insufficient snapshot.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use plumb_policy::apply::{ApplyEnd, Report, Session, apply, resume};
use plumb_policy::claims::Claims;
use plumb_policy::error::PolicyError;
use plumb_policy::gateway::Gateway;
use plumb_policy::journal::{Journal, JournalError, JournalStore};
use plumb_policy::mock::{Kill, KillPayload, MockDisk, MockGateway, MockKind};
use plumb_policy::plan::{Ask, DiskSelection, Plan, PlanRequest, make};
use plumb_policy::rollback::rollback;

/// Files in memory that outlive the run that wrote them.
type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Nothing was written.
    Before,
    /// Half of an append was written, but nothing of a replacement.
    Torn,
    /// Everything was written, but the writer is killed before the return.
    After,
}

/// A store whose process ends at the write with a certain number.
struct MortalStore {
    files: Files,
    writes: Arc<Mutex<usize>>,
    dies_at: Option<(usize, Cut)>,
}

impl MortalStore {
    fn write(&self, write: impl Fn(&mut BTreeMap<String, Vec<u8>>, Cut)) {
        let number = {
            let mut writes = self.writes.lock().unwrap();
            *writes += 1;
            *writes - 1
        };
        let cut = self.dies_at.filter(|(at, _)| *at == number).map(|(_, cut)| cut);
        write(&mut self.files.lock().unwrap(), cut.unwrap_or(Cut::After));
        if cut.is_some() {
            resume_unwind(Box::new("killed in a write"));
        }
    }
}

impl JournalStore for MortalStore {
    fn place(&self) -> PathBuf {
        "/memory".into()
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, JournalError> {
        Ok(self.files.lock().unwrap().get(name).cloned())
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        self.write(|files, cut| {
            if cut == Cut::After {
                files.insert(name.to_owned(), bytes.to_vec());
            }
        });
        Ok(())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        self.write(|files, cut| {
            let length = match cut {
                Cut::Before => 0,
                Cut::Torn => bytes.len() / 2,
                Cut::After => bytes.len(),
            };
            files.entry(name.to_owned()).or_default().extend(&bytes[..length]);
        });
        Ok(())
    }
}

/// Point at which a run is killed.
#[derive(Debug, Clone, Copy)]
enum Death {
    Write(usize, Cut),
    Change(Kill),
}

/// A machine, its plan, and the files of the journal.
struct Scene {
    gateway: MockGateway,
    plan: Plan,
    files: Files,
    writes: Arc<Mutex<usize>>,
    original: Vec<MockDisk>,
}

const NAMES: [&str; 3] = ["sda", "sdb", "nvme0n1"];

impl Scene {
    fn new(asked: PlanRequest) -> Self {
        let on = asked == PlanRequest::Off;
        let disk = |kind| MockDisk::new(kind).with(|disk| disk.wce = on);
        let gateway = MockGateway::new([
            disk(MockKind::Sata),
            disk(MockKind::Sas).with(|disk| disk.saved = Some(on)),
            disk(MockKind::Nvme),
        ]);
        gateway.device_mapper("dm-0", "LVM-abc", &["sdb"]);
        let claims = Claims::default();
        let ask = Ask { save: true, ..Ask::new(asked, DiskSelection::All, &claims, Timestamp::UNIX_EPOCH) };
        let plan = make(&gateway, &ask).unwrap();
        assert_eq!(plan.changes.len(), NAMES.len(), "{:?}", plan.refused);
        let original = NAMES.map(|name| gateway.disk(name).unwrap()).to_vec();
        Self { gateway, plan, files: Files::default(), writes: Arc::default(), original }
    }

    fn store(&self, dies_at: Option<(usize, Cut)>) -> Box<dyn JournalStore> {
        *self.writes.lock().unwrap() = 0;
        Box::new(MortalStore { files: Arc::clone(&self.files), writes: Arc::clone(&self.writes), dies_at })
    }

    /// Runs a function in a process that may be killed.
    fn run<T>(
        &self,
        death: Option<Death>,
        body: impl FnOnce(&Session<'_>, Box<dyn JournalStore>) -> T,
    ) -> Option<T> {
        let claims = Claims::default();
        let stop = AtomicBool::new(false);
        let session = Session {
            gateway: &self.gateway,
            claims: &claims,
            now: Timestamp::UNIX_EPOCH,
            stop: &stop,
            progress: &|_| (),
        };
        let dies_at = match death {
            Some(Death::Write(number, cut)) => Some((number, cut)),
            Some(Death::Change(kill)) => {
                self.gateway.kill(kill);
                None
            }
            None => None,
        };
        let store = self.store(dies_at);
        match catch_unwind(AssertUnwindSafe(|| body(&session, store))) {
            Ok(value) => Some(value),
            Err(payload) => {
                assert!(payload.is::<KillPayload>() || payload.is::<&str>(), "it panicked by itself");
                None
            }
        }
    }

    fn apply(&self, death: Option<Death>) -> Option<Report> {
        self.run(death, |session, store| apply(session, &self.plan, store).unwrap())
    }

    fn roll_back(&self, death: Option<Death>) -> Option<Result<Report, PolicyError>> {
        self.run(death, |session, store| rollback(session, Journal::reopen(store)?))
    }

    fn resume(&self) -> Result<Report, PolicyError> {
        self.run(None, |session, store| resume(session, Journal::reopen(store)?)).unwrap()
    }

    fn assert_original(&self, death: &str) {
        for (name, before) in NAMES.into_iter().zip(&self.original) {
            let now = self.gateway.disk(name).unwrap();
            assert_eq!(
                (now.wce, now.saved, now.kernel),
                (before.wce, before.saved, before.kernel),
                "{name}: {death}"
            );
        }
    }

    fn assert_goal(&self, death: &str) {
        let on = self.plan.asked != PlanRequest::Off;
        for (name, before) in NAMES.into_iter().zip(&self.original) {
            let now = self.gateway.disk(name).unwrap();
            assert_eq!((now.wce, now.saved), (on, before.saved.map(|_| on)), "{name}: {death}");
            // The kernel knows nothing of feature 06h.
            let believes = on || name.starts_with("nvme");
            assert_eq!(now.kernel.cache && !now.kernel.disabled, believes, "{name}: {death}");
        }
        if on {
            assert!(self.gateway.flush_arrives("dm-0"), "{death}");
        }
    }
}

/// Returns every way to die at every write and every change of a run.
fn deaths(writes: usize, first_change: usize, changes: usize) -> Vec<Death> {
    let cuts = [Cut::Before, Cut::Torn, Cut::After];
    let writes = (0..writes).flat_map(|number| cuts.map(|cut| Death::Write(number, cut)));
    let changes = (first_change..changes)
        .flat_map(|number| [Death::Change(Kill::Before(number)), Death::Change(Kill::After(number))]);
    writes.chain(changes).collect()
}

fn deaths_of_apply(asked: PlanRequest) -> Vec<Death> {
    let scene = Scene::new(asked);
    let report = scene.apply(None).unwrap();
    assert_eq!(report.ended, ApplyEnd::Complete, "{report:#?}");
    scene.assert_goal("nothing died");
    let (writes, changes) = (*scene.writes.lock().unwrap(), scene.gateway.changes());
    assert!(writes > changes && changes > 10, "{writes} writes, {changes} changes");
    deaths(writes, 0, changes)
}

#[test]
fn after_a_kill_anywhere_a_rollback_restores_the_original_state() {
    for asked in [PlanRequest::Off, PlanRequest::On] {
        for death in deaths_of_apply(asked) {
            let scene = Scene::new(asked);
            assert!(scene.apply(Some(death)).is_none(), "it was not killed: {death:?}");
            let place = format!("{asked} {death:?}");
            match scene.roll_back(None).unwrap() {
                Ok(report) => assert_eq!(report.ended, ApplyEnd::Complete, "{place}: {report:#?}"),
                Err(PolicyError::Journal(JournalError::NotBegun { .. })) => {
                    assert_eq!(scene.gateway.changes(), 0, "{place}: changed without a journal");
                }
                Err(error) => panic!("{place}: {error}"),
            }
            scene.assert_original(&place);
            if let Ok(again) = scene.roll_back(None).unwrap() {
                let changes = scene.gateway.changes();
                assert_eq!(again.ended, ApplyEnd::Complete, "{place}");
                assert_eq!(
                    scene.gateway.changes(),
                    changes,
                    "{place}: the second time there is nothing to do"
                );
            }
            scene.assert_original(&place);
        }
    }
}

#[test]
fn after_a_kill_anywhere_a_resume_reaches_the_goal() {
    for asked in [PlanRequest::Off, PlanRequest::On] {
        for death in deaths_of_apply(asked) {
            let scene = Scene::new(asked);
            assert!(scene.apply(Some(death)).is_none(), "it was not killed: {death:?}");
            let place = format!("{asked} {death:?}");
            match scene.resume() {
                Ok(report) => assert_eq!(report.ended, ApplyEnd::Complete, "{place}: {report:#?}"),
                Err(PolicyError::Journal(JournalError::NotBegun { .. })) => {
                    assert_eq!(scene.gateway.changes(), 0, "{place}: changed without a journal");
                    scene.files.lock().unwrap().clear();
                    assert_eq!(scene.apply(None).unwrap().ended, ApplyEnd::Complete, "{place}");
                }
                Err(error) => panic!("{place}: {error}"),
            }
            scene.assert_goal(&place);
            assert_eq!(scene.roll_back(None).unwrap().unwrap().ended, ApplyEnd::Complete, "{place}");
            scene.assert_original(&place);
        }
    }
}

#[test]
fn a_rollback_that_is_killed_anywhere_is_brought_to_its_end_by_the_next() {
    let prepare = || {
        let scene = Scene::new(PlanRequest::Off);
        scene.apply(None).unwrap();
        scene
    };
    let scene = prepare();
    let first_change = scene.gateway.changes();
    scene.roll_back(None).unwrap().unwrap();
    let (writes, changes) = (*scene.writes.lock().unwrap(), scene.gateway.changes());
    for death in deaths(writes, first_change, changes) {
        let scene = prepare();
        assert!(scene.roll_back(Some(death)).is_none(), "it was not killed: {death:?}");
        let report = scene.roll_back(None).unwrap().unwrap();
        assert_eq!(report.ended, ApplyEnd::Complete, "{death:?}: {report:#?}");
        scene.assert_original(&format!("{death:?}"));
        let refused = scene.resume().unwrap_err();
        let reopened = matches!(refused, PolicyError::NotPossible { .. });
        assert!(reopened, "a journal that was rolled back is not applied again: {refused}");
    }
}

#[test]
fn a_stop_between_two_steps_ends_cleanly_and_says_how_to_go_on() {
    let total = {
        let scene = Scene::new(PlanRequest::Off);
        scene.apply(None).unwrap();
        scene.gateway.changes()
    };
    for number in 0..total {
        let scene = Scene::new(PlanRequest::Off);
        let stop = Arc::new(AtomicBool::new(false));
        let pressed = Arc::clone(&stop);
        scene.gateway.before_change(move |at, _, _| {
            if at == number {
                pressed.store(true, Ordering::Relaxed);
            }
        });
        let claims = Claims::default();
        let gateway: &dyn Gateway = &scene.gateway;
        let session =
            Session { gateway, claims: &claims, now: Timestamp::UNIX_EPOCH, stop: &stop, progress: &|_| () };
        let report = apply(&session, &scene.plan, scene.store(None)).unwrap();
        let at_the_end = report.ended == ApplyEnd::Complete && number + 1 == total;
        assert!(report.ended == ApplyEnd::Interrupted || at_the_end, "{number}: {report:#?}");
        assert_eq!(
            scene.gateway.changes(),
            number + 1,
            "the step under way is brought to its end, and no other begun"
        );
        assert_eq!(report.go_on.is_some(), report.ended == ApplyEnd::Interrupted);
        scene.gateway.before_change(|_, _, _| {});
        scene.resume().unwrap();
        scene.assert_goal(&format!("stopped at {number}"));
    }
}
