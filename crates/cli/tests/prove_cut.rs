//! Tests of `plumb prove cut`: a program that runs for a proof loses its power on request.

use serde_json::Value;

use crate::common::{document, exited, plumb, said, scratch, valid_document};
use crate::prove_app::prove;
use crate::prove_posix::{as_nobody, place};
use plumb_testkit::loop_device::can_attach;

/// Returns a program that creates two files, of which the first is durable, and requests the cut, which kills
/// it.
fn program(name: &str, plumb: &str) -> String {
    format!(
        "echo one > a; sync a; sync .; echo 1 > $PLUMB_ACK; echo two > b; {plumb} prove cut {name}; sleep 1000; \
         echo three > c; sync"
    )
}

/// Returns a name that no other test has.
fn name(what: &str) -> String {
    format!("{what}-{}", std::process::id())
}

fn is_at_the_cut(document: &Value, after: &str) {
    let why = document["not_proved_because"].as_array().unwrap();
    let reason = format!("the power was cut only where it was requested, after acknowledgement 1{after}");
    assert!(why.iter().any(|why| why.as_str().unwrap().starts_with(&reason)), "{document:#}");
    assert_eq!(document["coverage"]["windows"], 1, "{document:#}");
    assert_eq!((&document["proved"], &document["complete"]), (&false.into(), &true.into()));
}

#[test]
fn the_power_is_cut_where_the_program_asks_for_it_and_nowhere_else() {
    let Some(place) = place() else { return };
    let own = place.path().join("plumb").display().to_string();
    for (check, code) in [("test -e a", 0), ("test -e a && test -e b", 1)] {
        let name = name("posix");
        let run = program(&name, &own);
        let arguments = ["app", "--json", "--no-record", "--fs", "posix", "--name", &name, "--check", check];
        let output = as_nobody(place.path(), &[&arguments[..], &["--run", &run]].concat());
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        let document = valid_document("prove", &output);
        assert_eq!(document["states"]["failing"].as_u64() > Some(0), code == 1, "{document:#}");
        if code == 0 {
            is_at_the_cut(&document, " and system call ");
        }
    }
}

#[test]
fn a_drive_loses_its_power_on_request() {
    if !can_attach() {
        return;
    }
    let (place, name) = (scratch(), name("drive"));
    let run = program(&name, &plumb().get_program().to_string_lossy());
    let arguments =
        ["app", "--json", "--size", "64M", "--name", &name, "--check", "test -e a", "--run", &run];
    let output = exited(prove(&place, &arguments), 0);
    is_at_the_cut(&document(&output), "");
    assert_eq!(document(&output)["recordings"], Value::Array(Vec::new()), "another run is not cut there");
}

#[test]
fn without_a_running_program_there_is_no_power_to_cut() {
    let output = exited(plumb().args(["prove", "cut", &name("none")]).output().unwrap(), 2);
    assert!(said(&output).contains("plumb prove app --name"), "{}", said(&output));
}
