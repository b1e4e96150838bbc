//! Command lines, and the structure of job files.

use super::*;
use crate::fio::{Format, command};

#[test]
fn options_in_all_spellings() {
    for arguments in [
        vec!["--name=x", "--rw=randread", "--bs=8k", "--size=1m", "--direct=1"],
        vec!["--name", "x", "--rw", "randread", "--blocksize", "8k", "--size", "1m", "--direct", "1"],
        vec!["-name=x", "-rw=randread", "-bs=8k", "-size=1m", "-direct=1"],
        vec!["--rw=randread", "--bs=8k", "--size=1m", "--direct=1", "--name=x"],
    ] {
        let invocation = parse_in(&arguments, &[]).unwrap();
        let job = only_job(&invocation);
        assert_eq!((job.name.as_str(), job.workload.block_min().0), ("x", 8192), "{arguments:?}");
        assert_eq!(job.opening.caching, plumb_workload::Caching::Direct);
    }
}

#[test]
fn several_names_are_several_jobs() {
    let arguments =
        ["--size=1m", "--name=a", "--rw=write", "--name=b", "--rw=read", "--time_based", "--runtime=5"];
    let invocation = parse_in(&arguments, &[]).unwrap();
    let jobs = &invocation.meaning.scenario.spans[0].jobs;
    assert_eq!(jobs.iter().map(|job| job.workload.write_percent).collect::<Vec<_>>(), [100, 0]);
    assert_eq!(jobs[0].workload.stop.duration, None, "the time is that of the second alone");
}

#[test]
fn job_files_inherit_from_the_command_line() {
    let files = [("job.fio", "[x]\nsize=1m\nrw=randread\n")];
    let invocation = parse_in(&["--bs=16k", "job.fio"], &files).unwrap();
    assert_eq!(only_job(&invocation).workload.block_min().0, 16_384);
    assert_eq!(invocation.global_options, [("bs".to_owned(), "16k".to_owned())]);
}

#[test]
fn what_concerns_the_output() {
    let files = [("job.fio", "[a]\nsize=1m\n[b]\nsize=2m\n[c]\nsize=3m\n")];
    let arguments = [
        "--section=b",
        "--section",
        "c",
        "--output=out",
        "--output-format=json,normal",
        "--eta=never",
        "--parse-only",
        "job.fio",
    ];
    let invocation = parse_in(&arguments, &files).unwrap();
    let names: Vec<&str> = invocation.reported.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["b", "c"]);
    let none = parse_in(&["--section=zz", "job.fio"], &files).unwrap_err().to_string();
    assert!(none.contains("no section has this name") && none.contains("a, b, c"), "{none}");
    let output = &invocation.output;
    assert_eq!(output.file.as_deref(), Some("out"));
    assert_eq!(output.formats, [Format::Json, Format::Normal]);
    assert!(output.parse_only && output.progress == Some(false));
    assert!(parse_in(&["--max-jobs=4", "job.fio"], &files).unwrap().meaning.notes[0].contains("--max-jobs"));
    for (refused, hint) in [
        ("--append-terse", "json"),
        ("--minimal", "json"),
        ("--output-format=terse", "json"),
        ("--output-format=json,terse", "json"),
        ("--output-format=yaml", "json"),
        ("--terse-version=5", "json"),
        ("--client=host", "each host"),
        ("--otuput=x", "--output"),
        ("--iodpeth=4", "iodepth"),
        ("--readonly", "writes"),
    ] {
        let arguments = [refused, "--name=x", "--rw=write", "--size=1m"];
        let error = parse_in(&arguments, &[]).unwrap_err().to_string();
        assert!(error.contains(hint), "{refused}: {error}");
    }
}

#[test]
fn comments_includes_and_variables() {
    let files = [
        ("job.fio", "; one\n[global]\nsize=4m ; behind\n\n[x]\n  rw = randread # behind\ninclude more.fio\n"),
        ("more.fio", "filename=${DISK}\nbs=$pagesize\nnumjobs=$ncpus\n"),
    ];
    let invocation = parse_in(&["job.fio"], &files).unwrap();
    let job = only_job(&invocation);
    assert_eq!((job.targets[0].name.as_str(), job.threads), ("/dev/vdb", 4));
    assert_eq!(job.workload.block_min().0, 4096);
}

#[test]
fn units_follow_kb_base() {
    let length = |lines: &str| workload(lines).range.length.0;
    assert_eq!(length("size=1m"), 1 << 20);
    assert_eq!(length("size=1mib"), 1_000_000, "as fio has it");
    assert!(notes("size=1mib").contains("kb_base"));
    assert_eq!(length("kb_base=1000|size=1mib"), 1 << 20);
    assert_eq!(length("kb_base=1000|size=1m"), 1_000_000);
}

#[test]
fn job_files_as_a_command_line() {
    let text = "[global]\nsize=1m\n[x]\nrw=randread\nstonewall\ndescription=two words\n";
    let line = command(&file(text).unwrap());
    assert_eq!(line, "plumb fio --size=1m --name=x --rw=randread --stonewall '--description=two words'\n");
}

#[test]
fn files_to_remove_are_named() {
    assert_eq!(section("unlink=1").unwrap().remove_after, ["/f"]);
    assert!(section("unlink=0").unwrap().remove_after.is_empty());
}
