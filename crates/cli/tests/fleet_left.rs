//! Tests that `plumb fleet` leaves nothing on hosts, even if something is killed.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use serde_json::json;

use crate::common::{entries, plumb, said, scratch, valid_document};
use crate::fleet::{SCHEMA, SHELL, answered_any, fleet, host};

#[test]
fn a_program_is_pushed_and_taken_away_again() {
    let place = scratch();
    let mut survey = plumb();
    survey.args(["fleet", "survey", "--hosts", "a", "--launcher", "sh -c"]);
    survey.args(["--push", "--json", "--no-record", "--", "."]);
    let document = answered_any(survey.env("TMPDIR", place.path()));
    assert_eq!(host(&document, "a")["ok"], json!(true), "{document:#}");
    assert_eq!(entries(place.path()), [""; 0]);
}

#[test]
fn a_pushed_program_is_taken_away_where_its_agent_cannot_be_started() {
    let place = scratch();
    let watch = Watch::new(place.path());
    let script = "case $1 in *--stdio*) echo no second connection >&2; exit 7;; esac; exec sh -c \"$1\"";
    let mut survey = plumb();
    survey.args(["fleet", "survey", "--hosts", "a", "--launcher", &format!("sh -c '{script}' {{host}}")]);
    survey.args(["--push", "--connect-timeout", "10s", "--json", "--no-record", "--", "."]);
    let document = answered_any(survey.env("TMPDIR", place.path()));
    // The reason may differ on a busy machine; nothing stays in either case.
    assert_eq!(host(&document, "a")["ok"], json!(false), "{document:#}");
    watch.until(&[]);
}

#[test]
fn half_a_copy_is_taken_away_where_whoever_makes_it_is_killed_or_hears_no_more() {
    let place = scratch();
    let watch = Watch::new(place.path());
    // The link transfers a part and then nothing; the shell of one host is killed.
    let script = "exec 3<&0; (head -c 1000 <&3; exec sleep 60) | sh -c \"$1\" & shell=$!; \
                  until set -- $TMPDIR/plumb.*/plumb && [ -e $1 ]; do sleep 0.05; done; \
                  [ $0 != killed ] || kill -9 $shell; wait $shell";
    for host in ["killed", "silent"] {
        let mut survey = plumb();
        survey.args([
            "fleet",
            "survey",
            "--hosts",
            host,
            "--launcher",
            &format!("sh -c '{script}' {{host}}"),
        ]);
        survey.args(["--push", "--connect-timeout", "2s", "--json", "--no-record", "--", "."]);
        let document = answered_any(survey.env("TMPDIR", place.path()));
        assert_eq!(self::host(&document, host)["ok"], json!(false), "{document:#}");
        watch.until(&[]);
    }
}

/// Watch for files that appear and disappear in a directory.
pub(crate) struct Watch<'a> {
    directory: &'a Path,
    events: OwnedFd,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(directory: &'a Path) -> Self {
        let events = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        let wanted = inotify::WatchFlags::CREATE | inotify::WatchFlags::DELETE | inotify::WatchFlags::MOVE;
        inotify::add_watch(&events, directory, wanted).unwrap();
        Self { directory, events }
    }

    /// Waits until exactly these files are there. Fails after ten minutes, which no case needs.
    pub(crate) fn until(&self, files: &[&str]) {
        let are_there = || {
            let mut there = entries(self.directory);
            there.sort();
            there == files
        };
        while !are_there() {
            let mut ready = [PollFd::new(&self.events, PollFlags::IN)];
            let within = Timespec { tv_sec: 600, tv_nsec: 0 };
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
fn hosts_whose_controller_is_killed_end_and_what_came_so_far_is_kept() {
    let (place, run) = (scratch(), scratch());
    let (watch, kept) = (Watch::new(place.path()), Watch::new(run.path()));
    let mut load = fleet("load", "a,b", SHELL);
    load.args("{host}.dat --size 1M --write 100 --duration 1h --remove-after --out".split(' '));
    load.arg(run.path());
    let mut load =
        load.current_dir(place.path()).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    watch.until(&["a.dat", "b.dat"]);
    kept.until(&["hist.hlog", "manifest.json", "result.json", "timeseries.csv"]);
    load.kill().unwrap();
    load.wait().unwrap();
    watch.until(&[]);
    let shown = plumb().args(["report", "--json"]).arg(run.path()).output().unwrap();
    let document = valid_document(SCHEMA, &shown);
    assert_eq!((shown.status.code(), &document["partial"]), (Some(3), &json!(true)), "{}", said(&shown));
    assert!(document["unfinished"]["write"]["ios"].as_u64().unwrap() > 0, "{document:#}");
    assert_eq!(host(&document, "a")["because"], "its result did not arrive");
}
