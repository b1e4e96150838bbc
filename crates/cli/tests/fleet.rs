//! Tests of `plumb fleet` over launchers without a network: hosts that answer, hosts that fail in every way
//! that a launcher can, and names with a special meaning to a shell; and over real SSH servers where
//! available.

use std::process::{Command, Output, Stdio};

use crate::common::{document, entries, exited, has_run, plumb, said, scratch, valid_document};
use crate::fleet_left::Watch;
use plumb_testkit::skip;
use plumb_testkit::sshd::Sshds;
use serde_json::{Value, json};

pub(crate) const SCHEMA: &str = "fleet";
const PLUMB: &str = env!("CARGO_BIN_EXE_plumb");

/// Returns `plumb fleet COMMAND` with a launcher that runs `script` in a shell, where `$0` is the host and
/// `$1` the remote command.
pub(crate) fn fleet(command: &str, hosts: &str, script: &str) -> Command {
    let mut fleet = plumb();
    let launcher = format!("sh -c '{script}' {{host}}");
    fleet.args([
        "fleet",
        command,
        "--hosts",
        hosts,
        "--launcher",
        &launcher,
        "--remote-plumb",
        PLUMB,
        "--json",
    ]);
    fleet
}

/// Script that runs the remote command.
pub(crate) const SHELL: &str = "exec sh -c \"$1\"";

/// Returns the document of a command that ran to its end. A short load may have warnings.
fn answered(mut fleet: Command) -> Value {
    let output = fleet.output().unwrap();
    assert!(has_run(&output), "{}", said(&output));
    valid_document(SCHEMA, &output)
}

pub(crate) fn answered_any(fleet: &mut Command) -> Value {
    let output = fleet.output().unwrap();
    document(&output)
}

pub(crate) fn host<'a>(document: &'a Value, name: &str) -> &'a Value {
    let hosts = document["hosts"].as_array().unwrap();
    hosts.iter().find(|host| host["name"] == name).unwrap_or_else(|| panic!("{name} in {document:#}"))
}

#[test]
fn hosts_load_together_and_their_sum_is_the_total() {
    let place = scratch();
    let run = place.path().join("run");
    let mut load = fleet("load", "a[1-4]", SHELL);
    load.args("sim:all-flash-cluster --random --block-size 32k --depth 64 --duration 200ms".split(' '));
    load.args(["--warmup", "0", "--scale", "1,2,4", "--out"]).arg(&run);
    let document = answered(load);
    let sum = |pointer: &str| -> u64 {
        let hosts = document["hosts"].as_array().unwrap();
        hosts.iter().map(|host| host.pointer(pointer).unwrap().as_u64().unwrap()).sum()
    };
    assert_eq!(document["partial"], json!(false));
    assert_eq!(document["total"]["read"]["ios"].as_u64().unwrap(), sum("/total/read/ios"));
    assert_eq!(
        document["total"]["read"]["latency"]["count"].as_u64().unwrap(),
        sum("/total/read/latency/count")
    );
    let seen = host(&document, "a3");
    assert_eq!((&seen["ok"], &seen["exit"]), (&json!(true), &json!(0)));
    assert!(seen["clock_error"].as_f64().unwrap() >= 0.0 && seen["start_late"].as_f64().unwrap() >= 0.0);
    let steps = document["scale"].as_array().unwrap();
    assert_eq!(steps.iter().map(|step| step["measured"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 4]);
    assert!((steps[2]["efficiency"].as_f64().unwrap() - 1.0).abs() < 0.05, "{steps:?}");
    // The single run directory can be shown again, with the results of each host.
    let shown = plumb().arg("report").arg(&run).output().unwrap();
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(has_run(&shown) && text.contains("a3") && text.contains("B/s"), "{}", said(&shown));
    let exported = |format: &str| {
        let shown = plumb().args(["report", "--format", format]).arg(&run).output().unwrap();
        assert!(has_run(&shown), "{}", said(&shown));
        String::from_utf8(shown.stdout).unwrap()
    };
    let metric = |name: &str| format!("{name} {}\n", document["total"]["read"]["latency"]["count"]);
    let metrics = exported("prometheus");
    let count = metric("plumb_fleet_duration_seconds_count{operation=\"read\"}");
    assert!(metrics.contains(&count), "{count} in {metrics}");
    for host in ["a1", "a4"] {
        let bucket =
            format!("plumb_load_duration_seconds_bucket{{host=\"{host}\",operation=\"read\",le=\"+Inf\"}} ");
        assert!(metrics.contains(&bucket), "{bucket} in {metrics}");
    }
    assert!(metrics.contains(&metric("plumb_fleet_latency_seconds_count{operation=\"read\"}")), "{metrics}");
    assert!(
        metrics.contains("plumb_load_operations_per_second{host=\"a3\",side=\"application\"} "),
        "{metrics}"
    );
    let rows = exported("csv");
    let of = |row: &str| rows.contains(&format!("\n{row}"));
    assert!(of(&format!("load,,,read_operations,{},", document["total"]["read"]["ios"])), "{rows}");
    assert!(of(&format!("host,a3,,read_operations,{},", seen["total"]["read"]["ios"])), "{rows}");
    // Words of a launcher may include a password, so only its program is recorded.
    for file in ["manifest.json", "result.json", "report.html"] {
        let kept = std::fs::read_to_string(run.join(file)).unwrap();
        assert!(kept.contains("sh ...") && !kept.contains("exec sh"), "{file}");
    }
    let log = std::fs::read_to_string(run.join("hist.hlog")).unwrap();
    assert!((0..4).all(|target| log.contains(&format!("Tag=target-{target}/read,"))), "{log}");
    assert!(std::fs::read_to_string(run.join("report.html")).unwrap().contains("a3"));
}

/// Field report A: eight virtual machines on eight hosts, 64 requests in flight, cache on against off, and 18
/// GB/s of reads of 32 KiB.
#[test]
fn eight_hosts_reproduce_the_report_on_an_all_flash_cluster() {
    let measured = |wce: &str, block: &str, writes: &str| {
        let mut load = fleet("load", "vm[1-8]", SHELL);
        load.arg(format!("sim:all-flash-cluster?wce={wce}"));
        load.args(["--random", "--depth", "64", "--block-size", block, "--write", writes, "--seed", "1"]);
        load.args(["--duration", "100ms", "--warmup", "50ms", "--no-record"]);
        let document = answered(load);
        let rate = |of: &Value| of["total"]["application"]["bytes_per_second"].as_f64().unwrap();
        let each: Vec<f64> = document["hosts"].as_array().unwrap().iter().map(rate).collect();
        assert_eq!((each.len(), &document["partial"]), (8, &json!(false)));
        let total = rate(&document);
        assert!((each.iter().sum::<f64>() / total - 1.0).abs() < 0.01, "{total} of {each:?}");
        (total, each)
    };
    for writes in ["100", "0"] {
        let (on, off) = (measured("on", "8k", writes).0, measured("off", "8k", writes).0);
        assert!(off >= 0.95 * on, "{writes} % writes: {off} B/s without the cache, {on} with it");
    }
    let (total, each) = measured("off", "32k", "0");
    assert!((total / 18e9 - 1.0).abs() < 0.05, "{total} B/s in all");
    assert!(each.iter().all(|one| (one / 2.25e9 - 1.0).abs() < 0.05), "{each:?}");
}

#[test]
fn whatever_happens_to_hosts_is_told_and_the_others_go_on() {
    let place = scratch();
    let script = "case $0 in
        gone) echo no route to host >&2; exit 255;;
        loud) echo Welcome to this machine; exec sh -c \"$1\";;
        hung) exec sleep 3600;;
        endless) exec yes;;
        stderr) head -c 20000000 /dev/zero >&2; exec sh -c \"$1\";;
        stopped) exec 3<&0; $PLUMB agent --stdio <&3 & while [ ! -e stopped.dat ]; do sleep 0.05; done; kill -STOP $!; wait $!;;
        full) exec unshare --mount --propagation slave sh -c \"mkdir -p small && mount -t tmpfs -o size=1m none small && cd small && $1\";;
        killed) exec 3<&0; $PLUMB agent --stdio <&3 & while [ ! -e killed.dat ]; do sleep 0.05; done; kill -9 $!; wait $!;;
        *) exec sh -c \"$1\";;
        esac";
    let mut load = fleet("load", "well,gone,loud,hung,endless,stderr,killed,stopped,foreign,full", script);
    load.args("--connect-timeout 18s --heartbeat 5s {host}.dat --size 16M --random --write 100".split(' '));
    // The load must be long enough for the launchers to see its file.
    load.args(["--duration", "5s", "--warmup", "0", "--remove-after", "--no-record"]);
    // A file that plumb did not create is refused there.
    std::fs::write(place.path().join("foreign.dat"), [1; 65536]).unwrap();
    load.env("PLUMB", PLUMB).current_dir(place.path());
    let output = load.output().unwrap();
    let document = valid_document(SCHEMA, &output);
    assert_eq!(document["partial"], json!(true));
    let because = |name: &str| host(&document, name)["because"].as_str().unwrap_or_default().to_owned();
    assert!(
        because("gone").ends_with("the launcher exited with 255: no route to host"),
        "{}",
        because("gone")
    );
    assert!(because("loud").contains("`Welcome to this machine"), "{}", because("loud"));
    assert!(because("hung").starts_with("it did not answer within 1"), "{}", because("hung"));
    assert!(because("endless").contains("it does not speak plumb's protocol: `"), "{}", because("endless"));
    assert!(because("killed").contains("the connection ended"), "{}", because("killed"));
    assert!(because("stopped").starts_with("it was silent for"), "{}", because("stopped"));
    if Command::new("unshare")
        .args(["--mount", "--propagation", "slave", "true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        assert!(because("full").contains("small"), "{}", because("full"));
        assert!(because("full").contains("No space left"), "{}", because("full"));
    }
    assert!(because("foreign").contains("--overwrite"), "{}", because("foreign"));
    for name in ["well", "stderr"] {
        assert_eq!(host(&document, name)["ok"], json!(true), "{name}: {}", said(&output));
        assert!(host(&document, name)["total"]["write"]["ios"].as_u64().unwrap() > 0);
    }
    // Figures of hosts that were lost are kept separate.
    for (of, ok) in [("total", true), ("unfinished", false)] {
        let hosts = document["hosts"].as_array().unwrap().iter().filter(|host| host["ok"] == ok);
        let sum: u64 = hosts.filter_map(|host| host["total"]["write"]["ios"].as_u64()).sum();
        assert_eq!(document[of]["write"]["ios"].as_u64().unwrap_or(0), sum, "{of} of {document:#}");
    }
    assert_ne!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no route to host"), "{}", said(&output));
}

#[test]
fn names_stay_names_and_commands_answer_with_their_documents() {
    let place = scratch();
    let hosts = place.path().join("hosts.txt");
    std::fs::write(&hosts, "# three\nit's a \"host\"\n$(touch made)\n;touch made\n").unwrap();
    let mut survey = fleet("survey", &hosts.to_string_lossy(), SHELL);
    survey.args(["--no-record", "--", "."]).current_dir(place.path());
    let output = survey.output().unwrap();
    let document = document(&output);
    let named = host(&document, "$(touch made)");
    assert_eq!(named["document"]["schema"], "plumb/survey/1", "{}", said(&output));
    assert_eq!(named["document"]["paths"][0]["target"], ".");
    assert_eq!(document["hosts"].as_array().unwrap().len(), 3);
    assert_eq!(entries(place.path()), ["hosts.txt"]);
    // Only a readable file is taken as a file of names; a directory may have the name of a host.
    std::fs::create_dir(place.path().join("made")).unwrap();
    let made = Command::new("mkfifo").arg(place.path().join("fifo")).status().unwrap();
    assert!(made.success());
    let mut survey = fleet("survey", "made", SHELL);
    let output = survey.args(["--no-record", "--", "."]).current_dir(place.path()).output().unwrap();
    assert_eq!(host(&self::document(&output), "made")["ok"], json!(true), "{}", said(&output));
    for (hosts, expected) in [
        ("./none", "--hosts ./none: No such file"),
        ("none.txt", "--hosts none.txt: No such file"),
        ("fifo", "--hosts fifo: it is not a regular file"),
        ("/dev/stdin", "--hosts /dev/stdin: it is not a regular file"),
        ("./made", "--hosts ./made: it is not a regular file"),
    ] {
        let mut survey = fleet("survey", hosts, "touch started");
        survey.stdin(Stdio::null()).current_dir(place.path());
        let output = survey.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{hosts}: {}", said(&output));
        assert!(said(&output).contains(expected), "{hosts}: {}", said(&output));
    }
    assert!(!place.path().join("started").exists());
    for (hosts, expected) in [("-oProxyCommand=x", "begins with a dash"), ("a,a", "named twice")] {
        let output = exited(fleet("survey", hosts, SHELL).output().unwrap(), 2);
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{}", said(&output));
    }
    // Without the host's name, all hosts would be the same.
    let mut nameless = plumb();
    nameless.args(["fleet", "survey", "--hosts", "a,b", "--launcher", "sh -c", "--no-record"]);
    let output = exited(nameless.output().unwrap(), 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("put {host} where"), "{}", said(&output));
    for scale in ["2,1", "1,1"] {
        let output = fleet("load", "a,b", SHELL).args(["sim:memory", "--scale", scale]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("increasing numbers of hosts, such as 1,2,4,8"), "{}", said(&output));
    }
    for word in ["-q", "--no-record", "--out=d", "--forks"] {
        let output = exited(fleet("check", "a", SHELL).args([".", word]).output().unwrap(), 2);
        assert!(
            said(&output).contains(&format!("{word} is an option of `plumb fleet`")),
            "{}",
            said(&output)
        );
    }
    exited(fleet("load", "a", SHELL).args(["x", "--write", "200"]).output().unwrap(), 2);
}

#[test]
fn a_load_is_printed_in_the_format_that_was_asked_for_or_not_begun() {
    let load = |format: &str| {
        let mut load = plumb();
        load.args(["fleet", "load", "--hosts", "a,b", "--launcher", "sh -c 'exec sh -c \"$1\"' {host}"]);
        load.args(["--remote-plumb", PLUMB, "--format", format, "--no-record"]);
        load.args(["sim:memory", "--duration", "100ms", "--warmup", "0"]).output().unwrap()
    };
    let printed = load("prometheus");
    assert!(has_run(&printed), "{}", said(&printed));
    assert!(String::from_utf8_lossy(&printed.stdout).contains("\nplumb_fleet_host_ok{host=\"b\"} 1\n"));
    assert!(
        String::from_utf8_lossy(&printed.stdout).contains("plumb_fleet_duration_seconds_bucket{operation=")
    );
    for format in ["fio", "xml"] {
        let refused = exited(load(format), 2);
        assert!(said(&refused).contains("expected text, html, markdown, json, csv"), "{}", said(&refused));
    }
}

#[test]
fn what_each_host_answers_for_itself_is_printed_in_any_format_too() {
    let place = scratch();
    let printed = |command: &str, format: &str, words: &[&str]| {
        let mut fleet = plumb();
        fleet.args(["fleet", command, "--hosts", "a,b", "--launcher", "sh -c 'exec sh -c \"$1\"' {host}"]);
        fleet.args(["--remote-plumb", PLUMB, "--format", format, "--no-record"]);
        fleet.arg("--").args(words).current_dir(place.path()).output().unwrap()
    };
    for (format, expected) in [
        ("csv", "\nhost,b,,ok,1,\n"),
        ("prometheus", "\nplumb_fleet_host_ok{host=\"b\"} 1\n"),
        ("json", "\"schema\": \"plumb/fleet/1\""),
    ] {
        for command in ["survey", "policy-show"] {
            let words: &[&str] = if command == "survey" { &["."] } else { &[] };
            let output = printed(command, format, words);
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(has_run(&output) && text.contains(expected), "{command} {format}: {}", said(&output));
        }
    }
    exited(printed("survey", "fio", &["."]), 2);
}

#[test]
fn a_partial_result_is_told_by_one_code_whatever_the_hosts_ended_with() {
    let place = scratch();
    let partial = |mut fleet: Command, exit: u64| {
        let output = fleet.arg("--no-record").current_dir(place.path()).output().unwrap();
        let document = document(&output);
        assert_eq!((&document["partial"], &host(&document, "a")["exit"]), (&json!(true), &json!(exit)));
        assert!(document["level"] == "none" || document["level"] == "info", "{document:#}");
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    };
    // Refused on each host, because plumb did not create the file; and a path that no host has.
    std::fs::write(place.path().join("foreign.dat"), [1; 65536]).unwrap();
    let mut load = fleet("load", "a,b", SHELL);
    load.args("foreign.dat --size 64k --write 100 --duration 100ms --warmup 0".split(' '));
    partial(load, 4);
    let mut survey = fleet("survey", "a", SHELL);
    survey.args(["--no-record", "--", "/nofile"]);
    let output = survey.output().unwrap();
    assert_eq!(
        (output.status.code(), &document(&output)["partial"]),
        (Some(3), &json!(true)),
        "{}",
        said(&output)
    );
}

#[test]
fn a_place_that_is_taken_is_refused_before_anything_is_started() {
    let place = scratch();
    std::fs::write(place.path().join("kept"), "mine").unwrap();
    let mut survey = fleet("survey", "a", "touch started; exec sh -c \"$1\"");
    survey.arg("--out").arg(place.path()).args(["--", "."]).current_dir(place.path());
    exited(survey.output().unwrap(), 2);
    assert_eq!(entries(place.path()), ["kept"]);
}

#[test]
fn what_one_host_cannot_do_is_missing_from_the_result_and_no_failure_of_the_controller() {
    let place = scratch();
    for name in ["well", "small"] {
        std::fs::create_dir(place.path().join(name)).unwrap();
    }
    let script = "[ $0 != small ] || ulimit -f 64; exec sh -c \"$1\"";
    let mut load = fleet("load", "well,small,nowhere", script);
    load.args(["{host}/io.dat", "--size", "4M", "--write", "100", "--duration", "200ms", "--warmup", "0"]);
    let output = load.args(["--no-record"]).current_dir(place.path()).output().unwrap();
    let document = document(&output);
    let exit = |name: &str| host(&document, name)["exit"].as_u64();
    assert_eq!((exit("small"), exit("nowhere")), (Some(5), Some(2)), "{document:#}");
    assert_eq!((&document["partial"], &host(&document, "well")["ok"]), (&json!(true), &json!(true)));
    // The result of so short a load does not matter.
    assert!(matches!(output.status.code(), Some(1 | 3)), "{}", said(&output));
}

/// Time namespaces with an advanced CLOCK_MONOTONIC, so that the true offset is known, behind relays that
/// delay both directions equally or not. `PLUMB_OFFSETS` is their number.
#[test]
fn the_bound_of_the_clock_holds_the_offset_of_a_time_namespace() {
    let can = Command::new("unshare").args(["--time", "--monotonic", "1", "perl", "-v"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return skip("no time namespaces here, or no perl");
    }
    let place = scratch();
    let relay = "while (sysread(STDIN, $b, 65536)) { select(undef, undef, undef, $ARGV[0] / 1000); syswrite(STDOUT, $b) }";
    std::fs::write(place.path().join("relay.pl"), relay).unwrap();
    let script = "way=${0#*-}; perl relay.pl ${way%-*} | unshare --time --monotonic ${0%%-*} sh -c \"$1\" | perl relay.pl ${way#*-}";
    let count: u64 = std::env::var("PLUMB_OFFSETS").map_or(12, |count| count.parse().unwrap());
    // Names encode the offset in seconds and the delays in milliseconds in each direction.
    let name = |number: u64| format!("{}-{}-{}", number * 7919 % 86_400, number % 4 * 5, number / 4 % 3 * 7);
    let names: Vec<String> = (0..count).map(name).collect();
    let mut survey = fleet("survey", &names.join(","), script);
    survey.args(["--no-record", "--", "."]).current_dir(place.path());
    let document = answered_any(&mut survey);
    for name in &names {
        let seen = host(&document, name);
        let number = |field: &str| seen[field].as_f64().unwrap_or_else(|| panic!("{field} of {seen:#}"));
        let truth: f64 = name.split('-').next().unwrap().parse().unwrap();
        let (offset, error) = (number("clock_offset"), number("clock_error"));
        assert!((offset - truth).abs() <= error + 1e-7, "{name}: {offset} within {error}");
    }
}

#[test]
fn hosts_are_reached_by_ssh_and_an_unknown_key_is_refused() {
    let place = scratch();
    let Some(sshds) = Sshds::start(place.path(), 4, true) else { return skip("no sshd here") };
    let launcher = format!("ssh -F {} {{host}}", sshds.config);
    let mut load = plumb();
    load.args(["fleet", "load", "--hosts", "127.0.1.[1-4]"]).args([
        "--launcher",
        &launcher,
        "--remote-plumb",
        PLUMB,
    ]);
    load.args(["sim:memory", "--random", "--duration", "100ms", "--warmup", "0", "--no-record", "--json"]);
    let output: Output = load.output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("Permission denied") {
        return skip("sshd lets this user not in");
    }
    let document = document(&output);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    for number in 1..=3 {
        assert_eq!(host(&document, &format!("127.0.1.{number}"))["ok"], json!(true), "{}", said(&output));
    }
    let refused = host(&document, "127.0.1.4")["because"].as_str().unwrap();
    assert!(refused.contains("Host key verification failed"), "{refused}");
    // The SSH client of one host is killed while its load runs.
    let script = format!(
        "exec 3<&0; [ $0 = 127.0.1.1 ] || exec ssh -F {0} $0 \"$1\"; ssh -F {0} $0 \"$1\" <&3 & while [ ! -e $0.dat ]; do sleep 0.05; \
         done; kill -9 $!; wait $!",
        sshds.config
    );
    let mut load = fleet("load", "127.0.1.[1-2]", &script);
    let here = scratch();
    let watch = Watch::new(here.path());
    load.arg(here.path().join("{host}.dat")).args(["--size", "1M", "--write", "100", "--duration", "5s"]);
    load.args(["--remove-after", "--no-record"]).current_dir(here.path());
    let document = answered_any(&mut load);
    watch.until(&[]);
    let (cut, whole) = (host(&document, "127.0.1.1"), host(&document, "127.0.1.2"));
    assert!(cut["because"].as_str().unwrap().starts_with("the connection ended"), "{cut:#}");
    assert_eq!((&whole["ok"], &document["partial"]), (&json!(true), &json!(true)), "{whole:#}");
}

#[test]
fn levels_are_compared_on_all_hosts_at_once() {
    let mut compare = fleet("compare", "a,b", SHELL);
    compare.args("--factor policy=on,off sim:he8-media-cache --random --write 100 --sync-every 1".split(' '));
    compare.args(["--duration", "300ms", "--no-record"]);
    let output = compare.output().unwrap();
    let document = valid_document("compare", &output);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(
        (&document["outcome"], &document["blocks"]),
        (&json!("different"), &json!(10)),
        "{document:#}"
    );
    assert!(document["ratio"]["median"].as_f64().unwrap() > 1.5, "{document:#}");
    // The times of the drives of all hosts explain it.
    let terms = document["explanation"].as_array().unwrap();
    assert!(terms.iter().any(|term| term["term"] == "flushes-per-sync"), "{document:#}");
    let counts = &document["measured"][0]["counts"];
    let [drives, slots] = ["device_seconds", "slot_seconds"].map(|name| counts[name].as_f64().unwrap());
    assert!(drives > 0.0 && slots > 1.5 * counts["seconds"].as_f64().unwrap(), "{counts:#}");
    assert!(document["notes"].to_string().contains("2 names are one machine"), "{document:#}");
    // A host that is lost makes the result partial; there is a document even if nothing was measured.
    let mut compare = fleet("compare", "a,b", "test $0 = a && exec sh -c \"$1\"; exit 3");
    compare.args("--factor policy=on,off sim:he8-media-cache --duration 100ms --no-record".split(' '));
    let output = compare.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let document = valid_document("compare", &output);
    let why = document["incomplete_because"].as_str().unwrap();
    assert!(document["partial"] == true && why.starts_with("b: no agent answered"), "{document:#}");
    // Pilot blocks without the figure end it, as they end a comparison on one machine.
    let mut compare = fleet("compare", "a,b", SHELL);
    compare.args("--factor policy=on,off sim:he8-media-cache --random --write 100".split(' '));
    let output =
        compare.args(["--figure", "sync-p99", "--duration", "100ms", "--no-record"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("no sync-p99 to compare by: the pilot blocks had"), "{}", said(&output));
    let output =
        fleet("compare", "a", SHELL).args(["--budget", "10s", "--factor", "policy=on,off"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--rounds"), "{}", said(&output));
    // The help lists accepted options, as they apply to many hosts.
    let help = plumb().args(["fleet", "compare", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(
        help.contains("--rounds <N>") && help.contains("plumb fleet compare --hosts hosts.txt"),
        "{help}"
    );
    let words = ["--factor", "buffering=direct,cached", "sim:memory", "--no-record"];
    for option in ["--budget=1m", "--whole-budget", "--together", "--dry-run", "--profile=sqlite-wal"]
        .into_iter()
        .chain(["--workload=--depth 1", "--find=1%", "--cache-log=x", "--fs-size=1G", "--show-workload"])
    {
        let name = option.split('=').next().unwrap();
        assert!(
            !help.contains(&format!("{name} ")) && !help.contains(&format!("{name}\n")),
            "{name}: {help}"
        );
        let mut command = plumb();
        command.args(["fleet", "compare", "--hosts", "a"]).args(words).arg(option);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{option}: {}", said(&output));
        assert!(said(&output).contains(&format!("{name} is for one machine")), "{option}: {}", said(&output));
    }
    // A level that cannot be set is refused before anything is done.
    for (factor, code, expected) in [
        ("policy=on,off", 3, "no disk of this machine is known"),
        ("fs=ext4,xfs", 2, "on each host separately"),
    ] {
        let output = fleet("compare", "a", SHELL)
            .args(["--factor", factor, "/proc/x", "--no-record"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}

#[test]
fn names_of_one_machine_are_said_and_strict_makes_an_unknown_of_a_host_count() {
    let place = scratch();
    let surveyed = |options: &[&str]| {
        let mut survey = fleet("survey", "a,b", SHELL);
        survey.args(options).args(["--no-record", "--", "/proc"]).current_dir(place.path());
        let output = survey.output().unwrap();
        (output.status.code(), document(&output))
    };
    let (exit, document) = surveyed(&[]);
    assert_eq!((exit, &document["level"]), (Some(0), &json!("unknown")), "{document:#}");
    let boots: Vec<&Value> = ["a", "b"].iter().map(|name| &host(&document, name)["boot_id"]).collect();
    assert!(boots[0].is_string() && boots[0] == boots[1], "{document:#}");
    let headline = document["headline"].as_str().unwrap();
    assert!(headline.ends_with("2 names are one machine, with one boot id: a, b."), "{headline}");
    assert_eq!(surveyed(&["--strict"]).0, Some(3));
}

#[test]
fn a_partial_result_with_a_finding_says_both_in_its_first_line() {
    if !std::path::Path::new("/dev/shm").is_dir() {
        return skip("no tmpfs at /dev/shm");
    }
    let script = "[ \"$0\" = gone ] && exit 1; exec sh -c \"$1\"";
    let mut survey = fleet("survey", "a,gone", script);
    // The output for people is tested, not JSON.
    let words: Vec<String> = survey
        .get_args()
        .map(|word| word.to_string_lossy().into_owned())
        .filter(|word| word != "--json")
        .collect();
    survey = plumb();
    let output = survey.args(words).args(["--no-record", "--", "/dev/shm"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(text.contains("\nDANGER, PARTIAL RESULT\n"), "{text}");
    assert_eq!(text.matches("gone: ").count(), 1, "the reason of a host is said once: {text}");
}
