//! Tests of refused loads: the message names the problem, the exit code is the documented one, and nothing is
//! changed or left behind.

use std::process::Command;

use crate::common;
use crate::common::{entries, exited, said};
use crate::load_support::{LoopDevice, Place, start, stderr, system, wait_for};

#[test]
fn what_is_only_text_refuses_a_format() {
    let place = Place::new();
    for typed in [
        "load f --size 1M --show-workload --json",
        "load --explain --json",
        "load --explain --profile sqlite-wal --format csv",
        "fio --show-workload --json --name=x --size=1m",
        "diskspd --show-workload --format html -c1M f",
        "compare f --size 1M --a=--direct --b=--cached --show-workload --json",
    ] {
        let output = place.run(typed);
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{typed}");
        assert!(stderr(&output).contains("cannot be used with"), "{typed}: {}", stderr(&output));
    }
}

#[test]
fn a_file_that_plumb_did_not_make_stays_as_it_is() {
    let place = Place::new();
    let bytes = place.foreign("foreign", 1 << 20);
    for typed in [
        "load foreign --write 100 --count 10",
        "load foreign --write 1 --count 10",
        "load foreign --trim 100 --count 10",
        "load foreign --precondition --count 10",
        "load foreign --size 2M --count 10",
        "load --show-workload=no foreign",
        "diskspd -w1 -d1 -W0 foreign",
        "diskspd -c2M -d1 -W0 foreign",
        "sqlio -kW -s1 foreign",
        "fio --name=x --filename=foreign --size=1m --rw=write",
        "fio --name=x --filename=foreign --size=1m --rw=randtrim",
    ] {
        let output = place.run(typed);
        let code = if typed.contains("=no") { 2 } else { 4 };
        assert_eq!(output.status.code(), Some(code), "{typed}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{typed}: {}", said(&output));
        if code == 4 {
            assert!(
                stderr(&output).contains("foreign") && stderr(&output).contains("--overwrite"),
                "{typed}"
            );
        }
        assert!(std::fs::read(place.path("foreign")).unwrap() == bytes, "{typed}: the file has changed");
        assert_eq!(entries(place.here.path()), ["foreign"], "{typed}");
        assert!(!place.run_directory().exists(), "{typed}: a recording of nothing");
    }
}

#[test]
fn reading_is_always_allowed_and_changes_nothing() {
    let place = Place::new();
    let bytes = place.foreign("foreign", 1 << 20);
    for typed in [
        "load foreign --count 50",
        "diskspd -r -b4k -d1 -W0 foreign",
        "sqlio -kR -s1 -frandom foreign",
        "fio --name=x --filename=foreign --size=1m --rw=randread",
    ] {
        let output = place.run(typed);
        assert_eq!(output.status.code(), Some(0), "{typed}: {}", said(&output));
        assert!(std::fs::read(place.path("foreign")).unwrap() == bytes, "{typed}: the file has changed");
    }
}

#[test]
fn overwrite_is_the_word_that_the_refusal_names() {
    let place = Place::new();
    let bytes = place.foreign("foreign", 1 << 20);
    place.json("load foreign --write 100 --count 50 --overwrite", 0);
    let after = std::fs::read(place.path("foreign")).unwrap();
    assert!(after.len() == bytes.len() && after != bytes);
}

#[test]
fn what_plumb_made_it_may_write_again() {
    let place = Place::new();
    place.json("load f --size 1M --count 10", 0);
    place.json("load f --write 100 --count 10", 0);
    place.json("load f --write 100 --size 2M --count 10", 0);
    assert_eq!(std::fs::metadata(place.path("f")).unwrap().len(), 2 << 20);
    // A user who copies something else over the file makes it their own.
    std::fs::remove_file(place.path("f")).unwrap();
    place.foreign("f", 1 << 20);
    assert_eq!(place.run("load f --write 100 --count 10").status.code(), Some(4));
}

/// Returns true if the place supports marks. Otherwise the test counts as skipped.
fn keeps_marks(place: &Place) -> bool {
    let probe = std::fs::File::create_new(place.path("probe")).unwrap();
    let keeps = plumb_targets::mark_as_made(&probe).unwrap();
    std::fs::remove_file(place.path("probe")).unwrap();
    if !keeps {
        plumb_testkit::skip("the temporary directory keeps no extended attributes");
    }
    keeps
}

#[test]
fn a_file_that_plumb_made_and_somebody_filled_is_somebodys() {
    let place = Place::new();
    if !keeps_marks(&place) {
        return;
    }
    place.json("load f --size 1M --count 10", 0);
    place.json("load f --write 100 --count 10", 0);
    // The file is overwritten in place, as `cp` does, with the same length, so the inode and its mark stay.
    let bytes = place.foreign("f", 1 << 20);
    for typed in ["load f --write 100 --count 10", "load f --size 2M --write 100 --count 10"] {
        let output = place.run(typed);
        assert_eq!(output.status.code(), Some(4), "{typed}: {}", said(&output));
        assert!(stderr(&output).contains("somebody has used it since"), "{}", said(&output));
        assert!(std::fs::read(place.path("f")).unwrap() == bytes, "{typed}: the file has changed");
    }
    // Permission to overwrite does not make the rest of the file plumb's.
    place.json("load f --write 100 --count 10 --overwrite", 0);
    assert_eq!(place.run("load f --write 100 --count 10").status.code(), Some(4));
    // Neither does another length.
    place.json("load f --size 2M --write 100 --count 10 --overwrite", 0);
    assert_eq!(place.run("load f --write 100 --count 10").status.code(), Some(4));
}

#[test]
fn what_a_run_left_is_plumbs_whatever_it_wrote_and_what_a_killed_run_left_if_it_is_stamped() {
    let place = Place::new();
    if !keeps_marks(&place) {
        return;
    }
    let fio = "fio --name=x --filename=f --size=1m --rw=write --buffer_compress_percentage=50";
    assert!(place.run(fio).status.code().is_some_and(|code| code < 2));
    place.json("load f --write 100 --count 10", 0);
    let mut killed = start(&mut place.command("load g --size 1M --write 100 --duration 60s"));
    let lines = wait_for("measuring", &mut killed);
    killed.kill().unwrap();
    killed.wait().unwrap();
    drop(lines);
    place.json("load g --write 100 --count 10", 0);
}

#[test]
fn of_several_targets_none_is_touched_when_one_is_refused() {
    let place = Place::new();
    let bytes = place.foreign("foreign", 1 << 20);
    exited(place.run("load new foreign --size 1M --write 100 --count 10"), 4);
    assert_eq!(entries(place.here.path()), ["foreign"], "the other was made");
    assert!(std::fs::read(place.path("foreign")).unwrap() == bytes);
}

#[test]
fn a_disk_with_a_file_system_needs_its_own_name() {
    let place = Place::new();
    let image = place.path("image");
    std::fs::write(&image, vec![0; 16 << 20]).unwrap();
    if let Err(reason) = system("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]) {
        return plumb_testkit::skip(&reason);
    }
    let before = std::fs::read(&image).unwrap();
    let Some(device) = LoopDevice::over(&image, &[]) else { return };
    let typed = format!("load {} --write 100 --count 50", device.path);
    let mut word = String::new();
    for typed in [typed.clone(), format!("{typed} --overwrite"), format!("{typed} --destroy S3RIAL")] {
        let output = place.run(&typed);
        assert_eq!(output.status.code(), Some(4), "{typed}: {}", said(&output));
        assert!(std::fs::read(&image).unwrap() == before, "{typed}: the disk has changed");
        if !typed.contains("--destroy") {
            assert!(stderr(&output).contains("ext4"), "{typed}: {}", said(&output));
            word = stderr(&output).split("--destroy ").nth(1).unwrap().trim().to_owned();
        }
    }
    let allowed = Command::new("sh")
        .args(["-c", &format!("exec \"$plumb\" {typed} --json --out \"$out\" --destroy {word}")])
        .env("plumb", env!("CARGO_BIN_EXE_plumb"))
        .env("out", place.run_directory())
        .output()
        .unwrap();
    assert_eq!(allowed.status.code(), Some(0), "{}", said(&allowed));
    assert!(std::fs::read(&image).unwrap() != before, "nothing was written");
}

#[test]
fn an_empty_disk_needs_overwrite() {
    let place = Place::new();
    let image = place.path("image");
    std::fs::write(&image, vec![0; 4 << 20]).unwrap();
    let Some(device) = LoopDevice::over(&image, &[]) else { return };
    let typed = format!("load {} --write 100 --count 50 --sync-at-end", device.path);
    assert_eq!(place.run(&typed).status.code(), Some(4));
    assert!(std::fs::read(&image).unwrap().iter().all(|byte| *byte == 0));
    place.json(&format!("{typed} --overwrite"), 0);
    assert!(std::fs::read(&image).unwrap().iter().any(|byte| *byte != 0));
}

#[test]
fn what_is_missing_is_asked_for_in_the_language_that_was_typed() {
    let place = Place::new();
    std::fs::write(place.path("empty"), "").unwrap();
    for (command, rest, asked) in [
        ("load", "--write 100 --count 1", "--size 1G"),
        ("diskspd", "-w100 -d1 -W0", "-c1G"),
        ("sqlio", "-kW -s1", "parameter file"),
        ("fio", "--name=x --rw=read --time_based --runtime=1 --filename", "size=1g"),
    ] {
        for target in ["nowhere", "empty"] {
            let output = place.run(&format!("{command} {rest} {target}"));
            assert_eq!(output.status.code(), Some(2), "{command} {target}: {}", said(&output));
            assert!(stderr(&output).contains(asked), "{command} {target}: {}", said(&output));
            assert!(asked.contains("--size") || !stderr(&output).contains("--size"), "{}", said(&output));
        }
    }
    for (typed, found) in [("/dev/block/none-such", "device"), ("/dev/none/such", "device")] {
        let output = place.run(&format!("load {typed} --count 1"));
        assert!(stderr(&output).contains(found), "{typed}: {}", said(&output));
    }
    let output = place.command("load --count 1").arg("").output().unwrap();
    assert!(stderr(&output).contains("TARGET"), "{}", said(&output));
}

#[test]
fn a_description_without_an_end_is_refused() {
    let place = Place::new();
    std::os::unix::fs::symlink("/dev/zero", place.path("endless.toml")).unwrap();
    for typed in ["load endless.toml", "diskspd -X/dev/zero f", "sqlio -F/dev/zero", "fio /dev/zero"] {
        let output = place.run(typed);
        assert_eq!(output.status.code(), Some(2), "{typed}: {}", said(&output));
        assert!(stderr(&output).contains("larger than"), "{typed}: {}", said(&output));
    }
}

#[test]
fn each_language_says_how_to_use_it() {
    let place = Place::new();
    for typed in
        ["diskspd -?", "diskspd --help", "sqlio -?", "sqlio --help", "fio --help", "fio -h", "fio --version"]
    {
        let output = place.run(typed);
        assert_eq!(output.status.code(), Some(0), "{typed}: {}", said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("plumb"), "{typed}: {}", said(&output));
        assert_eq!(stderr(&output), "", "{typed}");
    }
}

#[test]
fn nonsense_is_a_usage_error_that_names_the_word() {
    let place = Place::new();
    place.json("load f --size 1M --count 1", 0);
    std::fs::write(place.path("bad.toml"), "targets = ['f']\nblocksize = '4k'\n").unwrap();
    std::fs::write(place.path("param.txt"), "f two 0x0 8\n").unwrap();
    std::fs::write(place.path("bad.fio"), "[x]\nsize=1m\nrw=sideways\n").unwrap();
    let before = entries(place.here.path());
    for (typed, named) in [
        ("load", "target"),
        ("load nowhere --count 1", "nowhere"),
        ("load nowhere --write 100 --count 1", "--size"),
        ("load no/such/f --size 1M --count 1", "no/such/f"),
        ("load . --count 1", "directory"),
        ("load f --write 150", "150"),
        ("load f --write 60 --trim 60", "trim"),
        ("load f --block-size 3x", "3x"),
        ("load f --block-size 0", "--block-size"),
        ("load f --block-size 100 --direct", "100"),
        ("load f --block-size 2M", "f"),
        ("load f --rate 5", "--rate"),
        ("load f --rate 0iops", "--rate"),
        ("load f --depth 0", "--depth"),
        ("load f --depth 99999", "--depth"),
        ("load f --threads 0", "--threads"),
        ("load f --duration 0s", "--duration"),
        ("load f --duration soon", "soon"),
        ("load f --count 0", "--count"),
        ("load f --random --sequential", "--sequential"),
        ("load f --direct --cached", "--cached"),
        ("load f --sync-every 4", "--sync-every"),
        ("load f --write 100 --sync-kind fsync", "--sync-kind"),
        ("load f --write 100 --sync-every 4 --sync-kind hope", "hope"),
        ("load f --warmup never", "never"),
        ("load f --seed -1", "-1"),
        ("load f --offset 2M --count 1", "2 MiB"),
        ("load f --affinity each:4095 --count 1", "4095"),
        ("load f --frobnicate", "--frobnicate"),
        ("load bad.toml", "bad.toml:2: blocksize"),
        ("load nowhere.toml", "a file of words, not a target"),
        ("load --profile sqlite-wal no/such", "mkdir -p no/such"),
        ("load --profile dbf-update sim:ata-40gb?wce=off", "plumb drive serve ata-40gb --attach"),
        ("load --profile sqlite-wal f", "f: is not a directory"),
        ("load f --content file:1M,nowhere --write 100 --count 1", "nowhere"),
        ("diskspd", "targets"),
        ("diskspd -b 8k f", "-b"),
        ("diskspd -Q f", "-Q"),
        ("diskspd -r -s f", "-s"),
        ("diskspd -Xnowhere.xml", "nowhere.xml"),
        ("diskspd -d1 nowhere", "nowhere"),
        ("diskspd f --destroy", "--destroy"),
        ("sqlio -kX f", "-kX"),
        ("sqlio -Fparam.txt", "param.txt:1"),
        ("sqlio -dC f", "-dC"),
        ("fio nowhere.fio", "nowhere.fio"),
        ("fio bad.fio", "bad.fio:3"),
        ("fio --name=x --size=1m --bogus=1", "bogus"),
        ("fio --name=x --rw=read", "size"),
    ] {
        let output = place.run(typed);
        assert_eq!(output.status.code(), Some(2), "{typed}: {}", said(&output));
        assert!(stderr(&output).to_lowercase().contains(&named.to_lowercase()), "{typed}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{typed}: {}", said(&output));
        assert_eq!(entries(place.here.path()), before, "{typed} left something behind");
    }
}

#[test]
fn a_file_of_words_is_never_taken_for_a_target() {
    let place = Place::new();
    let words = "targets = ['f']\nsize = '1M'\n";
    std::fs::write(place.path("words.toml"), words).unwrap();
    for (typed, target) in [("load words.toml", "f"), ("load words.toml g", "g")] {
        let document = place.json(&format!("{typed} --write 100 --count 10 --overwrite"), 0);
        assert_eq!(document["targets"][0]["name"], target, "{typed}");
        assert_eq!(document["targets"].as_array().unwrap().len(), 1, "{typed}");
    }
    exited(place.run("load words.toml more.toml --write 100 --overwrite"), 2);
    assert_eq!(std::fs::read_to_string(place.path("words.toml")).unwrap(), words);
    let mut left = entries(place.here.path());
    left.sort();
    assert_eq!(left, ["f", "g", "words.toml"]);
}

#[test]
fn a_directory_with_something_else_is_refused_before_anything_is_measured() {
    let (place, other) = (Place::new(), common::scratch());
    std::fs::write(other.path().join("thesis"), "years of work").unwrap();
    for out in [other.path().to_owned(), other.path().join("thesis")] {
        let mut command = common::plumb();
        command.args(["load", "f", "--size", "1M", "--count", "10", "--out"]).arg(&out);
        let output = exited(command.current_dir(place.here.path()).output().unwrap(), 2);
        assert!(stderr(&output).contains(out.to_str().unwrap()), "{}", said(&output));
    }
    assert_eq!(entries(place.here.path()), Vec::<String>::new(), "it was run");
    assert_eq!(std::fs::read_to_string(other.path().join("thesis")).unwrap(), "years of work");
}

/// tmpfs sets no FMODE_CAN_ATOMIC_WRITE (mm/shmem.c), and through the page cache no file system takes untorn
/// writes (fs/read_write.c, `generic_atomic_write_valid`).
#[test]
fn untorn_writes_are_refused_where_the_kernel_takes_none() {
    let shm = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = shm.path().join("file");
    let typed = format!("load {} --size 1M --write 100 --count 9 --atomic", file.display());
    let output = Place::new().run(&typed);
    assert_ne!(output.status.code(), Some(0), "{}", said(&output));
    assert!(stderr(&output).contains("the kernel takes no untorn writes there"), "{}", said(&output));
    exited(Place::new().run("load file --size 1M --write 100 --count 9 --atomic --cached"), 2);
    let output = exited(Place::new().run("fio --name=x --filename=f --size=1m --rw=write --atomic=1"), 2);
    assert!(stderr(&output).contains("direct=1"), "{}", said(&output));
}
