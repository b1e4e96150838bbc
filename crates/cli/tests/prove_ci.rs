//! Tests of `plumb prove ci`: files for a build server, and exit codes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use plumb_testkit::program::write_script;
use serde_json::Value;

use crate::common::{exited, plumb, said};
use crate::prove_posix::{place, started};

#[test]
fn a_build_server_is_given_what_it_reads_and_a_baseline_accepts_what_is_known() {
    let Some(place) = place() else { return };
    let here = place.path().join("here");
    std::fs::create_dir(&here).unwrap();
    std::fs::set_permissions(&here, std::fs::Permissions::from_mode(0o777)).unwrap();
    write_script(&here.join("save.sh"), "echo $1 > tmp; sync tmp; mv tmp doc; sync .");
    write_script(&here.join("wrong.sh"), "echo $1 > tmp; sync tmp; mv tmp doc");
    let ci = |options: &[&str], program: &str| {
        let words = [&["ci", "--no-record", "--overwrite"], options, &["--", program, "new doc"]].concat();
        started(place.path(), &here, true, &words)
    };
    let text = |name: &str| std::fs::read_to_string(here.join(name)).unwrap();

    exited(ci(&["--require", "proved", "--junit", "j.xml", "--page", "p.html"], "./save.sh"), 0);
    assert!(
        text("j.xml").contains("failures=\"0\"") && !text("j.xml").contains("time=\"0.000\""),
        "{}",
        text("j.xml")
    );
    assert!(text("p.html").starts_with("<!"), "the page");

    let files = ["--junit", "j.xml", "--gitlab", "g.json", "--write-baseline", "b", "--github"];
    let output = exited(ci(&files, "./wrong.sh"), 1);
    assert!(said(&output).contains("accepts 1 failure in later runs"), "{}", said(&output));
    assert!(text("j.xml").contains("<failure type=\"lost-acknowledged\""), "{}", text("j.xml"));
    let issues: Value = serde_json::from_str(&text("g.json")).unwrap();
    assert_eq!(issues[0]["location"]["path"], "wrong.sh", "{issues:#}");
    assert!(issues[0]["description"].as_str().unwrap().contains("acknowledged data is lost"), "{issues:#}");
    assert_eq!(issues[0]["fingerprint"], text("b").lines().nth(1).unwrap().split(' ').next().unwrap());
    assert!(
        said(&output).contains("::error file=wrong.sh,line=1,title=After a power cut"),
        "{}",
        said(&output)
    );

    // An accepted failure counts as skipped, and not as proved.
    let accepted = ["--baseline", "b", "--junit", "j.xml", "--gitlab", "g.json"];
    let output = exited(ci(&accepted, "./wrong.sh"), 0);
    assert!(said(&output).contains("The baseline accepts this failure."), "{}", said(&output));
    assert!(text("j.xml").contains("<skipped message=\"accepted by the baseline"), "{}", text("j.xml"));
    assert_eq!(text("g.json").trim(), "[]");
    exited(ci(&[&accepted[..], &["--require", "proved"]].concat(), "./wrong.sh"), 3);
    std::fs::write(here.join("other"), "nonsense\n").unwrap();
    let output = exited(ci(&["--baseline", "other"], "./wrong.sh"), 2);
    assert!(said(&output).contains("--write-baseline"), "{}", said(&output));
    assert!(Path::new(&here).join("doc").metadata().is_err(), "it works in a directory of its own");
}

/// A container of a build server has no /dev/fuse, no capabilities and one user. unshare(1) provides such
/// isolation, as far as possible here.
#[test]
fn it_runs_without_any_capability_in_namespaces_of_its_own() {
    let Some(place) = place() else { return };
    let script = format!(
        "cd {0}/temporary && TMPDIR=$PWD {0}/plumb prove ci --no-record --require proved -- 'echo a > a; sync a; sync .'",
        place.path().display()
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-current-user", "--mount", "--pid", "--fork", "--mount-proc", "--net"]);
    let output = command.args(["sh", "-c", &script]).output().unwrap();
    if said(&output).contains("unshare:") {
        return plumb_testkit::skip(&said(&output));
    }
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

#[test]
fn a_program_that_wrote_nothing_is_not_proved() {
    let Some(place) = place() else { return };
    for arguments in
        [&["ci", "--no-record", "--", "true"][..], &["app", "--no-record", "--fs", "posix", "--run", ""]]
    {
        let output = exited(started(place.path(), place.path(), false, arguments), 3);
        assert!(said(&output).contains("nothing was written, so nothing is proved"), "{}", said(&output));
    }
}

#[test]
fn a_proof_without_work_or_states_is_refused_with_what_to_type() {
    for (arguments, words) in [
        (&["--fs", "posix"][..], &["--run CMD", "--recording FILE"][..]),
        (&["--fs", "ext4"], &["--run CMD", "--subject NAME", "--recording FILE"]),
        (&["--subject", "fsck", "--states", "0"], &["--states"]),
    ] {
        let output = exited(plumb().args(["prove", "app"]).args(arguments).output().unwrap(), 2);
        assert!(words.iter().all(|words| said(&output).contains(words)), "{}", said(&output));
    }
}

/// A killed plumb leaves a directory without a result.
#[test]
fn a_proof_that_did_not_end_is_reported_with_the_command_that_resumes_it() {
    let place = crate::common::scratch();
    let manifest = include_str!("old_runs/prove/manifest.json").replace("\"complete\"", "\"running\"");
    for (argv, words) in [("\"app\"", "plumb prove app --resume "), ("\"ci\"", "Run it again: `")] {
        std::fs::write(place.path().join("manifest.json"), manifest.replace("\"app\"", argv)).unwrap();
        let output = exited(plumb().arg("report").arg(place.path()).output().unwrap(), 3);
        assert!(said(&output).contains("this proof did not end"), "{}", said(&output));
        assert!(said(&output).contains(words), "{}", said(&output));
    }
}
