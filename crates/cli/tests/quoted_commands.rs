//! Tests that every command in a message can be typed as printed, whatever names it has: the shell, an
//! independent parser, must find the name again. They guard against remedies that do something else for a
//! file called `my disk` or `$(id)`.

use std::process::Command;

use crate::common::{plumb, said, scratch};

/// Names that a shell does not read as one word unless they are quoted.
const NAMES: [&str; 4] = ["my disk", "it's", "$HOME `id`", "a\"b;c"];

/// Returns the parts of `text` between backticks. A name may have backticks itself, so each pair of backticks
/// counts.
fn commands(text: &str) -> Vec<String> {
    let ticks: Vec<usize> = text.match_indices('`').map(|(at, _)| at).collect();
    let from = |begin: usize| ticks.iter().filter(move |end| **end > begin).map(move |end| (begin, *end));
    ticks.iter().flat_map(|begin| from(*begin)).map(|(begin, end)| text[begin + 1..end].to_owned()).collect()
}

/// Checks that a command in `text` that begins with `program` has `name` among its words.
fn names_it(text: &str, program: &str, name: &str) {
    let read = |command: &String| {
        let script = format!("plumb() {{ printf '%s\\n' \"$@\"; }}; {command}");
        let words = Command::new("sh").args(["-c", &script]).output().unwrap();
        String::from_utf8_lossy(&words.stdout).lines().any(|word| word == name)
    };
    let commands: Vec<String> =
        commands(text).into_iter().filter(|command| command.starts_with(program)).collect();
    assert!(commands.iter().any(read), "{name}: {commands:?} in {text}");
}

#[test]
fn a_path_that_is_no_disk_is_quoted_in_the_way_to_it() {
    let place = scratch();
    for name in NAMES {
        let path = place.path().join(name);
        std::fs::create_dir(&path).unwrap();
        let output = plumb().args(["policy", "plan", "off"]).arg(&path).output().unwrap();
        let text = said(&output);
        if !text.contains("plumb survey") {
            return plumb_testkit::skip(&format!("no disk is beneath the tests: {text}"));
        }
        names_it(&text, "plumb survey", &path.display().to_string());
    }
}

#[test]
fn a_file_with_several_results_is_quoted_where_one_is_to_be_chosen() {
    let place = scratch();
    let job = |name: &str| {
        format!(
            r#"{{"fio version": "fio-3.36", "jobs": [{{"jobname": "{name}", "error": 0, "job options": {{"rw": "read"}},
            "read": {{"io_bytes": 4096, "total_ios": 1, "runtime": 10, "iops": 100.0, "bw_bytes": 409600}}}}]}}"#
        )
    };
    for name in NAMES {
        let path = place.path().join(format!("{name}.json"));
        std::fs::write(&path, format!("{}\n{}\n", job("a"), job("b"))).unwrap();
        let output = plumb().arg("report").arg(&path).output().unwrap();
        let text = said(&output);
        assert!(text.contains("choose one"), "{text}");
        names_it(&text, "plumb report", &path.display().to_string());
    }
}

#[test]
fn a_block_device_beneath_a_name_is_quoted_for_survey() {
    let place = scratch();
    for name in NAMES {
        let path = place.path().join(name);
        std::os::unix::fs::symlink("/dev/loop0", &path).unwrap();
        let output = plumb().arg("check").arg(&path).output().unwrap();
        let text = said(&output);
        if !text.contains("plumb survey") {
            return plumb_testkit::skip(&format!("there is no block device to name: {text}"));
        }
        names_it(&text, "plumb survey", &path.display().to_string());
    }
}

#[test]
fn words_of_another_program_are_translated_with_their_targets_quoted() {
    for name in NAMES {
        let output = plumb().args(["load", name, "--rw=randwrite"]).output().unwrap();
        let text = said(&output);
        let line = text.lines().find_map(|line| line.trim().strip_prefix("plumb load ")).unwrap();
        let script = format!("printf '%s\\n' {line}");
        let words = Command::new("sh").args(["-c", &script]).output().unwrap();
        let words = String::from_utf8_lossy(&words.stdout).into_owned();
        assert!(words.lines().any(|word| word == name), "{name}: {line}");
    }
}
