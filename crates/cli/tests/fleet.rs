//! `plumb fleet` over launchers that need no network: hosts that answer, hosts that fail in every way that a launcher can, a
//! controller that goes silent, names that a shell would take for something else; and over real sshds where there are any.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

use crate::common::{document, entries, has_run, holds, plumb, said, scratch};
use plumb_testkit::skip;
use serde_json::{Value, json};

const SCHEMA: &str = "../report/schemas/fleet.schema.json";
const PLUMB: &str = env!("CARGO_BIN_EXE_plumb");

/// `plumb fleet COMMAND` with a launcher that runs `script` in a shell, where `$0` is the host and `$1` the remote command.
fn fleet(command: &str, hosts: &str, script: &str) -> Command {
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

/// Runs the remote command.
const SHELL: &str = "exec sh -c \"$1\"";

/// The document of a command that ran to its end: how short a load was decides about warnings.
fn answered(mut fleet: Command) -> Value {
    let output = fleet.output().unwrap();
    assert!(has_run(&output), "{}", said(&output));
    let document = document(&output);
    holds(SCHEMA, &document);
    document
}

fn host<'a>(document: &'a Value, name: &str) -> &'a Value {
    let hosts = document["hosts"].as_array().unwrap();
    hosts.iter().find(|host| host["name"] == name).unwrap_or_else(|| panic!("{name} in {document:#}"))
}

#[test]
fn hosts_load_together_and_their_sum_is_the_total() {
    let place = scratch();
    let run = place.path().join("run");
    let mut load = fleet("load", "a[1-4]", SHELL);
    load.args([
        "sim:all-flash-cluster",
        "--random",
        "--block-size",
        "32k",
        "--depth",
        "64",
        "--duration",
        "200ms",
    ]);
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
    // The one run directory is shown again, with what each host did.
    let shown = plumb().arg("report").arg(&run).output().unwrap();
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(has_run(&shown) && text.contains("a3") && text.contains("B/s"), "{}", said(&shown));
    let log = std::fs::read_to_string(run.join("hist.hlog")).unwrap();
    assert!((0..4).all(|target| log.contains(&format!("Tag=target-{target}/read,"))), "{log}");
    assert!(std::fs::read_to_string(run.join("report.html")).unwrap().contains("a3"));
}

#[test]
fn whatever_happens_to_hosts_is_told_and_the_others_go_on() {
    let place = scratch();
    let script = "case $0 in
        gone) echo no route to host >&2; exit 255;;
        loud) echo Welcome to this machine; exec sh -c \"$1\";;
        hung) exec sleep 60;;
        endless) exec yes;;
        stderr) head -c 20000000 /dev/zero >&2; exec sh -c \"$1\";;
        stopped) exec 3<&0; $PLUMB agent --stdio <&3 & while [ ! -e stopped.dat ]; do sleep 0.05; done; kill -STOP $!; wait $!;;
        full) exec unshare --mount sh -c \"mkdir -p small && mount -t tmpfs -o size=1m none small && cd small && $1\";;
        killed) exec 3<&0; $PLUMB agent --stdio <&3 & while [ ! -e killed.dat ]; do sleep 0.05; done; kill -9 $!; wait $!;;
        *) exec sh -c \"$1\";;
        esac";
    let mut load = fleet("load", "well,gone,loud,hung,endless,stderr,killed,stopped,foreign,full", script);
    load.args([
        "--connect-timeout",
        "10s",
        "--heartbeat",
        "2s",
        "{host}.dat",
        "--size",
        "16M",
        "--random",
        "--write",
        "100",
    ]);
    load.args(["--duration", "500ms", "--warmup", "0", "--remove-after", "--no-record"]);
    // Not made by plumb: refused there.
    std::fs::write(place.path().join("foreign.dat"), [1; 65536]).unwrap();
    load.env("PLUMB", PLUMB).current_dir(place.path());
    let output = load.output().unwrap();
    let document = document(&output);
    holds(SCHEMA, &document);
    assert_eq!(document["partial"], json!(true));
    let because = |name: &str| host(&document, name)["because"].as_str().unwrap_or_default().to_owned();
    assert!(
        because("gone").ends_with("the launcher exited with 255: no route to host"),
        "{}",
        because("gone")
    );
    assert!(because("loud").contains("`Welcome to this machine"), "{}", because("loud"));
    assert!(because("hung").starts_with("it did not answer within 1"), "{}", because("hung"));
    assert!(because("endless").contains("does not speak as an agent does"), "{}", because("endless"));
    assert!(because("killed").contains("the connection ended"), "{}", because("killed"));
    assert!(because("stopped").starts_with("it was silent for"), "{}", because("stopped"));
    if Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success()) {
        assert!(because("full").contains("small"), "{}", because("full"));
        assert!(because("full").contains("No space left"), "{}", because("full"));
    }
    assert!(because("foreign").contains("--overwrite"), "{}", because("foreign"));
    for name in ["well", "stderr"] {
        assert_eq!(host(&document, name)["ok"], json!(true), "{name}: {}", said(&output));
        assert!(host(&document, name)["total"]["write"]["ios"].as_u64().unwrap() > 0);
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
    for (hosts, expected) in [("-oProxyCommand=x", "begins with a dash"), ("a,a", "named twice")] {
        let output = fleet("survey", hosts, SHELL).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{}", said(&output));
    }
    let output = fleet("load", "a", SHELL).args(["x", "--write", "200"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn a_program_is_pushed_and_taken_away_again() {
    let place = scratch();
    let mut survey = plumb();
    survey.args([
        "fleet",
        "survey",
        "--hosts",
        "a",
        "--launcher",
        "sh -c",
        "--push",
        "--json",
        "--no-record",
        "--",
        ".",
    ]);
    let document = answered_any(survey.env("TMPDIR", place.path()));
    assert_eq!(host(&document, "a")["ok"], json!(true), "{document:#}");
    assert_eq!(entries(place.path()), [""; 0]);
}

fn answered_any(fleet: &mut Command) -> Value {
    let output = fleet.output().unwrap();
    document(&output)
}

/// An agent, and its first message.
fn agent(heartbeat_ms: u64) -> Child {
    let mut agent = plumb()
        .args(["agent", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let identity = json!({"version": env!("CARGO_PKG_VERSION"), "binary": ""});
    send(&mut agent, &json!({"Hello": {"identity": identity, "heartbeat": heartbeat_ms * 1_000_000}}));
    let mut length = [0; 4];
    agent.stdout.as_mut().unwrap().read_exact(&mut length).unwrap();
    let mut body = vec![0; u32::from_be_bytes(length) as usize];
    agent.stdout.as_mut().unwrap().read_exact(&mut body).unwrap();
    let hello: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(hello["Hello"]["identity"]["version"], env!("CARGO_PKG_VERSION"));
    agent
}

fn send(agent: &mut Child, message: &Value) {
    let body = message.to_string();
    let stdin = agent.stdin.as_mut().unwrap();
    stdin.write_all(&(body.len() as u32).to_be_bytes()).unwrap();
    stdin.write_all(body.as_bytes()).unwrap();
}

#[test]
fn an_agent_that_loses_its_controller_ends_and_leaves_nothing() {
    let place = scratch();
    // Its controller is silent, closes the connection, talks nonsense, or says good-bye.
    let ends: [(&str, Option<i32>, &str); 4] = [
        ("silent", Some(3), "the controller was silent for"),
        ("closed", Some(3), "the connection to the controller ended"),
        ("nonsense", Some(3), "does not speak as an agent does"),
        ("bye", Some(0), ""),
    ];
    for (how, code, expected) in ends {
        let target = place.path().join(how);
        let mut agent = agent(100);
        let words = format!(
            "targets = [{:?}]\nsize = \"16M\"\nwrite = 100\nduration = \"1h\"\n",
            target.to_str().unwrap()
        );
        let task = json!({"Load": {"words": words, "overwrite": false, "destroy": [], "remove_after": true}});
        send(&mut agent, &json!({"Run": {"task": task}}));
        match how {
            "closed" => drop(agent.stdin.take()),
            "nonsense" => agent.stdin.as_mut().unwrap().write_all(b"GET / HTTP/1.1\r\n").unwrap(),
            "bye" => send(&mut agent, &json!("Bye")),
            _ => {}
        }
        let stdin = agent.stdin.take();
        let output = agent.wait_with_output().unwrap();
        drop(stdin);
        assert_eq!(output.status.code(), code, "{how}: {}", said(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{how}: {}", said(&output));
    }
    assert_eq!(entries(place.path()), [""; 0]);
}

/// Learns of the files that come and go in a directory.
struct Watch<'a> {
    directory: &'a Path,
    events: OwnedFd,
}

impl<'a> Watch<'a> {
    fn of(directory: &'a Path) -> Self {
        let events = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        let wanted = inotify::WatchFlags::CREATE | inotify::WatchFlags::DELETE;
        inotify::add_watch(&events, directory, wanted).unwrap();
        Self { directory, events }
    }

    /// Waits until these files are there, and no others. A minute is too long for anything here.
    fn until(&self, files: &[&str]) {
        let are_there = || {
            let mut there = entries(self.directory);
            there.sort();
            there == files
        };
        while !are_there() {
            let mut ready = [PollFd::new(&self.events, PollFlags::IN)];
            let within = Timespec { tv_sec: 60, tv_nsec: 0 };
            assert_eq!(
                poll(&mut ready, Some(&within)).unwrap(),
                1,
                "{:?} became {files:?}",
                entries(self.directory)
            );
            rustix::io::read(&self.events, &mut [0; 4096]).unwrap();
        }
    }
}

#[test]
fn hosts_whose_controller_is_killed_end_and_leave_nothing() {
    let place = scratch();
    let watch = Watch::of(place.path());
    let mut load = fleet("load", "a,b", SHELL);
    load.args([
        "{host}.dat",
        "--size",
        "1M",
        "--write",
        "100",
        "--duration",
        "1h",
        "--remove-after",
        "--no-record",
    ]);
    let mut load =
        load.current_dir(place.path()).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    watch.until(&["a.dat", "b.dat"]);
    load.kill().unwrap();
    load.wait().unwrap();
    watch.until(&[]);
}

/// Time namespaces in which CLOCK_MONOTONIC is ahead, so that the true offset is known, behind relays that delay both directions alike or
/// not. `PLUMB_OFFSETS` says how many.
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
    // Ahead by so many seconds; milliseconds there, and back.
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

/// Real sshds on addresses of the loopback interface, each with the same key; the client knows them by it.
struct Sshds {
    children: Vec<Child>,
    config: String,
}

impl Sshds {
    /// `None` where there is no sshd, or it does not start.
    fn start(place: &Path, count: usize) -> Option<Self> {
        let path = |name: &str| place.join(name).to_string_lossy().into_owned();
        let made = |name: &str| {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &path(name)])
                .output();
            made.is_ok_and(|output| output.status.success())
        };
        if !made("host") || !made("user") || !made("other") {
            return None;
        }
        let port = std::net::TcpListener::bind("127.0.1.1:0").ok()?.local_addr().ok()?.port();
        std::fs::create_dir_all("/run/sshd").ok();
        let mut known = String::new();
        let mut children = Vec::new();
        for number in 1..=count {
            let address = format!("127.0.1.{number}");
            let config = format!(
                "ListenAddress {address}\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nPasswordAuthentication \
                 no\nKbdInteractiveAuthentication no\nUsePAM no\nPidFile none\nMaxStartups 100\n",
                path("host"),
                path("user.pub")
            );
            std::fs::write(place.join(format!("sshd{number}")), config).ok()?;
            let file = path(&format!("sshd{number}"));
            let child =
                Command::new("/usr/sbin/sshd").args(["-D", "-e", "-f", &file]).stderr(Stdio::null()).spawn();
            children.push(child.ok()?);
            // The last is known by another key.
            let key =
                std::fs::read_to_string(place.join(if number == count { "other.pub" } else { "host.pub" }))
                    .ok()?;
            known += &format!("[{address}]:{port} {key}");
        }
        std::fs::write(place.join("known"), known).ok()?;
        let config = format!(
            "Host *\n Port {port}\n IdentityFile {}\n IdentitiesOnly yes\n UserKnownHostsFile {}\n StrictHostKeyChecking \
             yes\n BatchMode yes\n ConnectionAttempts 20\n",
            path("user"),
            path("known")
        );
        std::fs::write(place.join("client"), config).ok()?;
        Some(Self { children, config: path("client") })
    }
}

impl Drop for Sshds {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

#[test]
fn hosts_are_reached_by_ssh_and_an_unknown_key_is_refused() {
    let place = scratch();
    let Some(sshds) = Sshds::start(place.path(), 4) else { return skip("no sshd here") };
    let launcher = format!("ssh -F {} {{host}}", sshds.config);
    let mut load = plumb();
    load.args([
        "fleet",
        "load",
        "--hosts",
        "127.0.1.[1-4]",
        "--launcher",
        &launcher,
        "--remote-plumb",
        PLUMB,
    ]);
    load.args(["sim:null", "--random", "--duration", "100ms", "--warmup", "0", "--no-record", "--json"]);
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
    // The ssh client of one host is killed while its load runs.
    let script = format!(
        "exec 3<&0; [ $0 = 127.0.1.1 ] || exec ssh -F {0} $0 \"$1\"; ssh -F {0} $0 \"$1\" <&3 & while [ ! -e $0.dat ]; do sleep 0.05; \
         done; kill -9 $!; wait $!",
        sshds.config
    );
    let mut load = fleet("load", "127.0.1.[1-2]", &script);
    let here = scratch();
    let watch = Watch::of(here.path());
    load.arg(here.path().join("{host}.dat")).args(["--size", "1M", "--write", "100", "--duration", "1s"]);
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
    compare.args([
        "--factor",
        "policy=on,off",
        "sim:he8-media-cache",
        "--random",
        "--write",
        "100",
        "--sync-every",
        "1",
    ]);
    compare.args(["--duration", "300ms", "--no-record"]);
    let output = compare.output().unwrap();
    let document = document(&output);
    holds("../report/schemas/compare.schema.json", &document);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!((&document["outcome"], &document["blocks"]), (&json!("different"), &json!(8)), "{document:#}");
    assert!(document["ratio"]["median"].as_f64().unwrap() > 1.5, "{document:#}");
    // A level that is set on the machine is refused where it cannot be, before anything is done.
    for (factor, code, expected) in [
        ("policy=on,off", 3, "no disk of this machine is known"),
        ("fs=ext4,xfs", 2, "on each host for itself"),
    ] {
        let output = fleet("compare", "a", SHELL)
            .args(["--factor", factor, "/proc/x", "--no-record"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{}", said(&output));
    }
}
