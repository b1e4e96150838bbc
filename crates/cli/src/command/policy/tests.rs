//! Tests of whole commands on mock disks: changes, output, and exit codes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser as _;
use jiff::Timestamp;
use plumb_block::FailureKind;
use plumb_policy::apply::{ApplyEnd, DiskResult, Event};
use plumb_policy::claims::Claims;
use plumb_policy::gateway::recording::RecordingGateway;
use plumb_policy::job::Job;
use plumb_policy::machine::Machine;
use plumb_policy::mock::{MockDisk, MockGateway, MockKind, Trap};
use plumb_policy::persist::{self, InstallPaths, Ledger};
use plumb_policy::plan::Plan;
use plumb_policy::state::FoundState;
use plumb_policy::view::PolicyDocument;
use plumb_policy::watch::Watcher;
use plumb_report::document::policy::{PolicyApply, PolicyClaim, PolicyPersist, PolicyShow, ShownPlan};
use plumb_report::{Format, RenderInput, StatusDocument, Style, render};
use plumb_testkit::schema::Schema;

use super::{claim, enforce, heal, plan};
use crate::arguments::policy::PolicyCommand;
use crate::arguments::{Arguments, Command};
use crate::exit::{Exit, kind_of};

fn parsed(typed: &[&str]) -> PolicyCommand {
    let words = ["plumb", "policy"].iter().chain(typed);
    match Arguments::try_parse_from(words).unwrap().command {
        Command::Policy(policy) => policy.command,
        other => panic!("{other:?}"),
    }
}

fn here(disks: impl IntoIterator<Item = MockDisk>) -> (Machine, Arc<MockGateway>) {
    let mock = Arc::new(MockGateway::new(disks));
    let now = Timestamp::now();
    (Machine { gateway: mock.clone(), claims: Claims::default(), now, is_root: true }, mock)
}

fn planned(host: &Machine, typed: &[&str]) -> Plan {
    let PolicyCommand::Plan(arguments) = parsed(typed) else { panic!("{typed:?}") };
    plan::make(host, &arguments).unwrap()
}

fn applied(host: &Machine, plan: &Plan, journal: &Path, stop: &AtomicBool) -> PolicyApply {
    let ended = Job::New { plan, journals: journal }.carry_out(host, None, stop, &|_| ());
    let (report, observation) = ended.unwrap();
    PolicyApply { report, observation }
}

fn text(document: &dyn StatusDocument, style: Style) -> String {
    render(RenderInput::Status(document), Format::Terminal, style).unwrap()
}

fn plan_page(plan: &Plan, style: Style, with_bytes: bool) -> String {
    text(&ShownPlan { plan, with_bytes, end: String::new() }, style)
}

fn shown(document: PolicyDocument, is_of_one: bool) -> PolicyShow {
    let raid_controllers = Vec::new();
    PolicyShow { document, raid: None, raid_controllers, as_root: true, exchanges: None, is_of_one }
}

/// Checks that a document matches its published schema and has no other fields, and returns it as JSON.
fn validates(name: &str, document: &impl serde::Serialize) -> serde_json::Value {
    let document = serde_json::to_value(document).unwrap();
    Schema::closed(name).assert_holds(&document);
    document
}

#[test]
fn a_plan_for_many_disks_says_each_way_once_and_fits_the_terminal() {
    let sibling = |name: &str| {
        let name = name.to_owned();
        MockDisk::new(MockKind::Nvme).with(|disk| (disk.controller, disk.name) = ("nvme0".into(), name))
    };
    let many = (0..30).map(|_| MockDisk::new(MockKind::Sas));
    let (host, mock) =
        here(many.chain([sibling("nvme0n1"), sibling("nvme0n2"), MockDisk::new(MockKind::Raid)]));
    mock.mount("nvme0n2", "/", "ext4", "rw");
    let plan = planned(&host, &["plan", "off", "--all"]);
    for width in [60, 80, 100, 160] {
        let page = plan_page(&plan, Style { width, ..Style::PLAIN }, false);
        eprintln!("{page}");
        assert!(page.lines().all(|line| line.chars().count() <= width), "{width}:\n{page}");
        assert_eq!(page.matches("   1. ").count(), 2, "{page}");
        let row = page.lines().find(|line| line.contains(" nvme0n1 ")).unwrap();
        assert!(row.contains("root"), "{row}");
        assert!(page.contains("nvme0n2 changes with it"), "{page}");
        assert!(page.contains("and 27 more"), "{page}");
    }
    let ascii = plan_page(&plan, Style { unicode: false, ..Style::PLAIN }, false);
    assert!(ascii.is_ascii() && ascii.contains("on -> off"), "{ascii}");
}

#[test]
fn a_plan_is_shown_applied_and_verified() {
    let (host, mock) =
        here([MockKind::Sas, MockKind::Sata, MockKind::Nvme, MockKind::Raid].map(MockDisk::new));
    let plan = planned(&host, &["plan", "quick-removal", "--all"]);
    let names: Vec<&str> = plan.changes.iter().map(|change| change.name.as_str()).collect();
    assert_eq!((names.len(), plan.refused.len()), (3, 1), "{plan:#?}");
    let page = plan_page(&plan, Style::PLAIN, true);
    for name in &names {
        let row = page.lines().find(|line| line.split_whitespace().any(|word| word == *name));
        assert!(row.is_some_and(|row| row.contains("on → off")), "{page}");
    }
    assert!(page.contains("0 canary") && page.contains("refused  ") && page.contains("    → "), "{page}");
    validates("policy-plan", &plan);
    assert_eq!(plan::exit_of(&plan), Exit::Failed(FailureKind::Refused));
    assert_eq!(mock.changes(), 0, "a plan changes nothing");

    let root = tempfile::tempdir().unwrap();
    let outcome = applied(&host, &plan, root.path(), &AtomicBool::new(false));
    assert_eq!(outcome.report.ended, ApplyEnd::Complete);
    let page = text(&outcome.report, Style::PLAIN);
    for name in names {
        assert!(!mock.disk(name).unwrap().wce, "{name}");
        let row = page.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{page}"));
        assert!(row.contains("verified"), "{page}");
    }
    let document = validates("policy-apply", &outcome);
    assert_eq!(document["schema"], "plumb/policy-apply/1");
    assert_eq!(document["disks"][0]["result"], "verified");
    assert!(document["observation"].is_null());
}

#[test]
fn a_drive_that_ignores_the_command_is_a_failure_by_its_own_word() {
    let (host, _) = here([MockDisk::new(MockKind::Sas).with(|disk| disk.ignores_set = true)]);
    let plan = planned(&host, &["plan", "off", "--all"]);
    let root = tempfile::tempdir().unwrap();
    let outcome = applied(&host, &plan, root.path(), &AtomicBool::new(false));
    assert_eq!(outcome.report.ended, ApplyEnd::Failed);
    assert!(matches!(outcome.report.disks[0].result, DiskResult::Mismatch { .. }), "{outcome:?}");
    let page = text(&outcome.report, Style::PLAIN);
    assert!(page.contains("MISMATCH") && page.contains("plumb policy rollback"), "{page}");
}

#[test]
fn an_interruption_says_how_to_go_on_and_going_on_ends_it() {
    let (host, mock) = here((0..3).map(|_| MockDisk::new(MockKind::Sas)));
    let plan = planned(&host, &["plan", "off", "--all"]);
    let root = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let job = Job::New { plan: &plan, journals: root.path() };
    // Ctrl-C while the first disk is being changed.
    let stops = |event: &Event<'_>| {
        stop.fetch_or(matches!(event, Event::DiskEnded { .. }), Ordering::Relaxed);
    };
    let (report, _) = job.carry_out(&host, None, &stop, &stops).unwrap();
    assert_eq!(report.ended, ApplyEnd::Interrupted);
    let place = &report.journal;
    let go_on = report.go_on.clone().unwrap();
    assert!(go_on.contains(&format!("apply --resume {}", place.display())), "{go_on}");
    let off = || plan.changes.iter().filter(|change| !mock.disk(&change.name).unwrap().wce).count();
    assert_eq!(off(), 1);

    let job = Job::Resumed { journal: place, plan: &plan };
    let (resumed, _) = job.carry_out(&host, None, &AtomicBool::new(false), &|_| ()).unwrap();
    assert_eq!(resumed.ended, ApplyEnd::Complete);
    assert_eq!(off(), 3);
}

#[test]
fn a_disk_that_is_another_one_or_gone_is_refused_before_anything_is_changed() {
    for vanish in [false, true] {
        let (host, mock) = here([MockDisk::new(MockKind::Sas), MockDisk::new(MockKind::Sas)]);
        let plan = planned(&host, &["plan", "off", "--all"]);
        let last = plan.changes.last().unwrap().name.clone();
        if vanish {
            mock.vanish(&last);
        } else {
            mock.meddle(&last, |disk| "another".clone_into(&mut disk.serial));
        }
        let root = tempfile::tempdir().unwrap();
        let job = Job::New { plan: &plan, journals: root.path() };
        let error = job.carry_out(&host, None, &AtomicBool::new(false), &|_| ()).unwrap_err().into();
        assert_eq!(kind_of(&error), FailureKind::Refused, "{error:#}");
        assert_eq!(mock.changes(), 0, "{error:#}");
    }
}

#[test]
fn a_load_that_would_feel_nothing_is_not_started() {
    let (host, mock) = here([MockDisk::new(MockKind::Sas)]);
    let plan = planned(&host, &["plan", "off", "--all"]);
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("load");
    let job = Job::New { plan: &plan, journals: root.path() };
    let error = job.carry_out(&host, Some(&file), &AtomicBool::new(false), &|_| ()).unwrap_err().into();
    assert_eq!(kind_of(&error), FailureKind::Usage, "{error:#}");
    assert!(!file.exists() && mock.changes() == 0);
}

#[test]
fn an_altered_plan_is_refused() {
    let (host, mock) = here([MockDisk::new(MockKind::Sas)]);
    let mut plan = planned(&host, &["plan", "off", "--all"]);
    plan.changes[0].name = "sdz".to_owned();
    let root = tempfile::tempdir().unwrap();
    let job = Job::New { plan: &plan, journals: root.path() };
    let error = job.carry_out(&host, None, &AtomicBool::new(false), &|_| ()).unwrap_err().into();
    assert_eq!(kind_of(&error), FailureKind::Refused, "{error:#}");
    assert_eq!(mock.changes(), 0);
}

#[test]
fn a_trap_is_shown_and_healed_and_only_where_there_is_one() {
    let trapped =
        MockDisk::new(MockKind::Sas).trapped(Trap::Queue).with(|disk| "sdq".clone_into(&mut disk.name));
    let (host, mock) = here([trapped, MockDisk::new(MockKind::Sas), MockDisk::new(MockKind::Raid)]);
    let document = host.reader().unwrap().all();
    let page = text(&shown(document, false), Style::PLAIN);
    let row =
        page.lines().find(|line| line.trim_start().starts_with("sdq")).unwrap_or_else(|| panic!("{page}"));
    assert!(row.contains("protected") && row.contains("write through"), "{page}");
    assert!(page.lines().any(|line| line.starts_with("  danger")), "{page}");
    assert!(!mock.flush_arrives("sdq"));

    let PolicyCommand::Heal(arguments) = parsed(&["heal", "--all"]) else { panic!() };
    let plan = heal::make(&host, &arguments).unwrap();
    assert_eq!((plan.changes.len(), plan.refused.len()), (1, 0), "{plan:#?}");
    let root = tempfile::tempdir().unwrap();
    let outcome = applied(&host, &plan, root.path(), &AtomicBool::new(false));
    assert_eq!(outcome.report.ended, ApplyEnd::Complete, "{outcome:?}");
    assert!(mock.flush_arrives("sdq"));
    assert!(heal::make(&host, &arguments).unwrap().changes.is_empty());
}

#[test]
fn the_detail_view_and_the_bytes_say_what_was_asked() {
    let (mut host, mock) = here([MockDisk::new(MockKind::Nvme).with(|disk| disk.unsafe_shutdowns = 7)]);
    let recording = Arc::new(RecordingGateway::new(mock));
    host.gateway = recording.clone();
    let document = host.reader().unwrap().all();
    let of_one = PolicyShow { exchanges: Some(recording.exchanges()), ..shown(document, true) };
    let page = text(&of_one, Style { width: 200, ..Style::PLAIN });
    assert!(page.contains("read by nvme-feature") && page.contains("flushes are sent"), "{page}");
    assert!(page.contains("unsafe_shutdowns = 7"), "{page}");
    assert!(page.contains("nvme-identify-controller: 4096 bytes"), "{page}");
    assert!(page.contains("NVMe admin 02"), "Get Log Page: {page}");
}

#[test]
fn the_table_explains_its_columns_and_every_question_mark() {
    let (host, _) = here([MockDisk::new(MockKind::Virtio), MockDisk::new(MockKind::Sata)]);
    let document = host.reader().unwrap().all();
    let page = text(&shown(document.clone(), false), Style { width: 200, is_terminal: true, ..Style::PLAIN });
    for column in ["state", "cache", "changeable", "default", "saved", "kernel", "identity"] {
        assert!(page.lines().any(|line| line.starts_with(&format!("  {column} "))), "{column}: {page}");
    }
    for view in &document.devices {
        let kind = if view.transport == "virtio" { "virtio" } else { "ATA" };
        for (column, value) in [("default", view.device.default), ("saved", view.device.saved)] {
            let explained = page.contains(&format!("{column} of {}: {kind} d", view.name));
            assert_eq!(explained, value.is_none(), "{column} of {}: {page}", view.name);
        }
    }
    assert!(!page.contains("who says that the cache survives"), "a column that is left out is not explained");
}

#[test]
fn every_metric_has_a_family_and_no_label_breaks_a_line() {
    let odd = MockDisk::new(MockKind::Sas).with(|disk| "a\"b\\".clone_into(&mut disk.model));
    let (host, _) = here([odd, MockDisk::new(MockKind::Nvme)]);
    let mut watcher = Watcher::new();
    watcher.look(host.reader().unwrap().all());
    let metrics = watcher.metrics();
    let mut families: Vec<&str> = Vec::new();
    for line in metrics.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let name = family.split(' ').next().unwrap();
            assert!(!families.contains(&name), "{name} stands twice");
            families.push(name);
        } else if !line.starts_with('#') {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            assert!(families.last().is_some_and(|family| sample.starts_with(family)), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(metrics.contains(r#"model="a\"b\\""#), "{metrics}");
    assert!(metrics.contains(r#"state="on"} 1"#), "{metrics}");
}

#[test]
fn a_word_is_recorded_and_opens_the_way_to_protected() {
    let (mut host, _) = here([MockDisk::new(MockKind::Sas)]);
    let name = host.reader().unwrap().all().devices[0].name.clone();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("claims.toml");
    let refused = planned(&host, &["plan", "protected", &name]);
    assert!(
        refused.changes.is_empty() && refused.refused[0].remedy.contains("plumb policy claim"),
        "{refused:?}"
    );
    let typed = |until: &str| {
        let file = file.to_str().unwrap();
        parsed(&["claim", &name, "--by", "R", "--until", until, "--reason", "UPS", "--claims", file])
    };
    let PolicyCommand::Claim(ended) = typed("2020-01-01") else { panic!() };
    assert_eq!(kind_of(&claim::give(&mut host, &ended).err().unwrap()), FailureKind::Usage);
    let PolicyCommand::Claim(arguments) = typed("2099-12-31") else { panic!() };
    let given = claim::give(&mut host, &arguments).unwrap();
    let document = validates(
        "policy-claim",
        &PolicyClaim { claim: Some(given.claim.clone()), ..PolicyClaim::new(&file, &given.claim.identity) },
    );
    assert_eq!((&document["claim"]["who"], &document["withdrawn"]), (&"R".into(), &0.into()));
    let identity = given.claim.identity.clone();
    let document =
        validates("policy-claim", &PolicyClaim { withdrawn: 1, ..PolicyClaim::new(&file, &identity) });
    assert_eq!((&document["claim"], &document["withdrawn"]), (&serde_json::Value::Null, &1.into()));
    assert_eq!((given.doubt, given.claim.who.as_str()), (None, "R"));
    let plan = planned(&host, &["plan", "power-protected", &name]);
    assert_eq!(plan.changes.len(), 1, "{plan:#?}");
    assert!(plan_page(&plan, Style::PLAIN, false).contains("because: R says so"));
}

#[test]
fn what_is_kept_is_brought_back_and_can_be_let_go() {
    let (host, mock) = here([MockDisk::new(MockKind::Sas).off()]);
    let view = host.reader().unwrap().all().devices[0].clone();
    let (name, identity) = (view.name.as_str(), view.identity.clone().unwrap());
    let root = tempfile::tempdir().unwrap();
    let typed = root.path().to_str().unwrap();
    let PolicyCommand::Persist(arguments) = parsed(&["persist", name, "--root", typed]) else { panic!() };
    let places = InstallPaths { root: root.path().to_owned(), program: "/usr/bin/plumb".to_owned() };
    let mut ledger = Ledger::default();
    let done = persist::keep(&host, &arguments.devices, &places, &mut ledger).unwrap();
    let document = validates("policy-persist", &PolicyPersist::new(ledger.clone(), done));
    assert_eq!(document["kept"][0]["standing"], "requested");
    assert!(std::fs::read_to_string(places.rules()).unwrap().contains(&identity));
    assert_eq!(ledger.kept.len(), 1);

    mock.power_cycle();
    assert_eq!(host.reader().unwrap().one(name).unwrap().state, FoundState::On, "the maker's default");
    let desired_states = places.desired_states();
    let kept = root.path().join("ledger.json");
    let journal = root.path().join("journals");
    let typed = [&desired_states, &kept, &journal].map(|path| path.to_str().unwrap());
    let words = ["enforce", "--from", typed[0], "--ledger", typed[1], "--journal", typed[2]];
    let PolicyCommand::Enforce(enforcing) = parsed(&words) else { panic!() };
    let (done, exit) = enforce::enforce(&host, &enforcing, &AtomicBool::new(false), &|_| ()).unwrap();
    assert_eq!((exit, done.disks, done.reports.len()), (Exit::Done, 1, 1));
    validates("policy-enforce", &done);
    let journal = done.reports[0].journal.file_name().unwrap().to_str().unwrap();
    assert!(journal.starts_with("enforce-"), "{journal} is taken for that of an apply");
    assert_eq!(host.reader().unwrap().one(name).unwrap().state, FoundState::Off);
    let (again, _) = enforce::enforce(&host, &enforcing, &AtomicBool::new(false), &|_| ()).unwrap();
    assert!(again.reports.is_empty(), "nothing is left to do");
    let PolicyCommand::Enforce(of_another) = parsed(&[&words[..], &["--udev", "sdz"]].concat()) else {
        panic!()
    };
    let (other, _) = enforce::enforce(&host, &of_another, &AtomicBool::new(false), &|_| ()).unwrap();
    assert_eq!((other.disks, other.absent.len()), (0, 0), "another disk has appeared");

    persist::keep_no_longer(&host, &arguments.devices, &places, &mut ledger).unwrap();
    assert!(!places.rules().exists() && ledger.kept.is_empty());
    assert_eq!(
        kind_of(
            &persist::keep_no_longer(&host, &arguments.devices, &places, &mut ledger).err().unwrap().into()
        ),
        FailureKind::Usage
    );
}

#[test]
fn a_trap_is_not_made_to_last() {
    let (host, _) = here([MockDisk::new(MockKind::Sas).trapped(Trap::Temporary)]);
    let name = host.reader().unwrap().all().devices[0].name.clone();
    let root = tempfile::tempdir().unwrap();
    let typed = root.path().to_str().unwrap();
    let PolicyCommand::Persist(arguments) = parsed(&["persist", &name, "--root", typed]) else { panic!() };
    let places = InstallPaths { root: root.path().to_owned(), program: "/usr/bin/plumb".to_owned() };
    let error =
        persist::keep(&host, &arguments.devices, &places, &mut Ledger::default()).err().unwrap().into();
    assert_eq!(kind_of(&error), FailureKind::Refused, "{error:#}");
    assert!(!places.rules().exists());
}
