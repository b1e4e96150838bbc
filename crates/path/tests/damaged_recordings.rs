//! Tests of recordings with missing parts: guards against a survey that gives up or panics when a file is
//! missing.

use std::sync::OnceLock;

use crate::fixtures_of;
use plumb_linux::probe::Refusal;
use plumb_linux::tree::Absence;
use plumb_path::{RecordedSurvey, SurveyError, Target, load, survey};
use proptest::prelude::*;

fn fixtures() -> &'static [(String, RecordedSurvey)] {
    static FIXTURES: OnceLock<Vec<(String, RecordedSurvey)>> = OnceLock::new();
    FIXTURES.get_or_init(|| {
        let load = |directory: std::path::PathBuf| {
            let name = directory.display().to_string();
            load(&directory).ok().map(|fixture| (name, fixture))
        };
        fixtures_of::all().into_iter().filter_map(load).collect()
    })
}

/// Surveys the remaining recording. A missing target is a clear error; everything else gives paths.
fn survives(fixture: &RecordedSurvey, target: &Target) -> Result<(), TestCaseError> {
    match survey(&fixture.tree, &fixture.probe, target) {
        Ok(found) => {
            for path in found.paths {
                prop_assert!(path.layers.len() >= 2, "{path:?}");
                prop_assert!(!path.durable_at.sentence.is_empty());
                path.block_devices();
            }
        }
        Err(SurveyError::NotFound { .. } | SurveyError::Unreachable { .. }) => {}
        Err(error) => prop_assert!(false, "{error}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn files_that_are_gone_never_abort(which in any::<prop::sample::Index>(), gone in prop::collection::vec(any::<prop::sample::Index>(), 1..40), all in any::<bool>()) {
        let (_, fixture) = which.get(fixtures());
        let mut fixture = fixture.clone();
        let paths = fixture.tree.paths();
        for index in gone {
            let path: &String = index.get(&paths);
            fixture.tree.remove(path);
        }
        let target = if all { Target::All } else { fixture.target.clone() };
        survives(&fixture, &target)?;
    }

    #[test]
    fn directories_that_are_gone_never_abort(which in any::<prop::sample::Index>(), file in any::<prop::sample::Index>(), depth in 1..8_usize) {
        let (_, fixture) = which.get(fixtures());
        let mut fixture = fixture.clone();
        let paths = fixture.tree.paths();
        let parts: Vec<&str> = file.get(paths.as_slice()).split('/').take(depth + 1).collect();
        fixture.tree.remove(&parts.join("/"));
        survives(&fixture, &fixture.target)?;
    }

    #[test]
    fn refusals_and_junk_never_abort(
        which in any::<prop::sample::Index>(),
        spoilt in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..24), 0..4_u8), 1..20),
    ) {
        let (_, fixture) = which.get(fixtures());
        let mut fixture = fixture.clone();
        let paths = fixture.tree.paths();
        let questions = fixture.probe.questions();
        for (index, junk, how) in spoilt {
            let path: &String = index.get(&paths);
            match how {
                0 => fixture.tree.put_absence(path, Absence::Denied),
                1 => fixture.tree.put_bytes(path, &junk),
                2 => fixture.tree.put_link(path, &String::from_utf8_lossy(&junk)),
                _ if questions.is_empty() => {}
                _ => {
                    let (name, request) = index.get(&questions);
                    let reply = if junk.len() % 2 == 0 { Ok(junk) } else { Err(Refusal::Denied) };
                    fixture.probe.put(name, *request, reply);
                }
            }
        }
        survives(&fixture, &fixture.target)?;
    }
}

/// Removes each file of each fixture, one at a time.
#[test]
fn no_single_file_is_indispensable() {
    for (name, fixture) in fixtures() {
        for path in fixture.tree.paths() {
            let mut damaged = fixture.clone();
            damaged.tree.remove(&path);
            survives(&damaged, &damaged.target)
                .unwrap_or_else(|error| panic!("{name} without {path}: {error}"));
        }
    }
}
