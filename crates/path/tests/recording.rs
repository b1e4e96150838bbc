//! Tests of this machine, recorded and surveyed again: guards against recordings that lack an answer, or hold
//! too much.

use std::path::Path;

use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::{LiveTree, Tree};
use plumb_path::{Survey, Target, load, record, survey, survey_path};

fn recorded_again(target: &Target, directory: &Path) -> (Survey, Survey) {
    let first = record(&LiveTree::new(), &LiveProbe::new(), target, directory, false)
        .expect("this machine can be surveyed");
    let fixture = load(directory).expect("what was written can be read");
    assert_eq!(fixture.target, *target);
    let again = survey(&fixture.tree, &fixture.probe, target).expect("the target is in the recording");
    (first, again)
}

#[test]
fn a_recording_gives_the_same_survey() {
    for target in [Target::Named(".".into()), Target::Named("/".into()), Target::All] {
        let directory = tempfile::tempdir().unwrap();
        let (first, again) = recorded_again(&target, directory.path());
        assert_eq!(first, again, "{target:?}");
        let file = std::fs::read(directory.path().join("survey.json")).unwrap();
        assert_eq!(serde_json::from_slice::<Survey>(&file).unwrap(), first);
    }
}

#[test]
fn a_recording_holds_nothing_outside_the_kernels_files() {
    let directory = tempfile::tempdir().unwrap();
    recorded_again(&Target::Named(".".into()), directory.path());
    let tree = load(directory.path()).unwrap().tree;
    for path in tree.paths() {
        let of_the_kernel = path.starts_with("/proc/") || path.starts_with("/sys/");
        // Elsewhere only links on the way to the target.
        assert!(of_the_kernel || tree.link(&path).is_ok(), "{path}");
    }
    let mounts = tree.text("/proc/self/mountinfo").unwrap_or_default();
    assert!(mounts.lines().count() <= 3, "more mounts than the target needs:\n{mounts}");
}

#[test]
fn this_machine_has_a_path_under_the_working_directory() {
    let path = survey_path(&LiveTree::new(), &LiveProbe::new(), ".").expect("the working directory is there");
    assert!(path.layers.len() >= 3);
    assert!(path.file_system().is_some());
    for device in path.block_devices() {
        assert!(Path::new("/sys/class/block").join(&device).exists(), "{device}");
    }
}
