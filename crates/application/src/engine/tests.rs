//! Tests of the engine with a store in memory: limits, stops, failures, determinism.

pub(crate) mod fake;

use std::sync::atomic::Ordering;

use plumb_block::{Errno, Nanos, RealClock};
use plumb_load::{Ending, Event, LoadOutcome};

use self::fake::{FailurePlan, FakeStore};
use super::{Conduct, Setting, perform};
use crate::error::{Cause, Error};
use crate::profile::Work;

/// Runs `count` transactions of a profile, with its files scaled to 1 %.
pub(crate) fn play(typed: &str, count: u64, seed: u64, store: &FakeStore) -> Result<LoadOutcome, Error> {
    let (profile, variant) = crate::find(typed).unwrap();
    let Work::Files(work) = &profile.work else { panic!("{typed} does not work on files") };
    let threads = variant.threads.or(work.threads).unwrap_or(1);
    let program = work.program.make(&Setting { variant: &variant.name, scale: 0.01, threads, seed });
    let clock = RealClock::start();
    let conduct = Conduct {
        profile: "test",
        clock: &clock,
        stop: &store.stop,
        duration: None,
        count: Some(count),
        threads,
        call_bytes_max: 1 << 20,
        seed,
    };
    perform(program.as_ref(), store, &conduct, &mut ())
}

/// Returns the latencies of each kind of call.
fn calls_of(measured: &LoadOutcome) -> &[(String, plumb_measure::Histogram)] {
    &measured.transactions.as_ref().unwrap().calls
}

/// Returns every variant of every profile that works on files.
fn all_of_files() -> impl Iterator<Item = String> {
    let of_files = crate::profiles().iter().filter(|profile| matches!(profile.work, Work::Files(_)));
    of_files.flat_map(|profile| {
        profile.variants.iter().map(|variant| format!("{}:{}", profile.name, variant.name))
    })
}

#[test]
fn every_profile_does_as_many_transactions_as_asked_and_counts_what_it_calls() {
    for typed in all_of_files() {
        let store = FakeStore::default();
        let measured = play(&typed, 230, 1, &store).unwrap();
        assert_eq!(measured.transaction_count(), 230, "{typed}");
        assert_eq!(measured.ending, Ending::Complete, "{typed}");
        let lines = store.lines();
        let count = |verbs: &[&str]| {
            lines.iter().filter(|line| verbs.contains(&line.split(' ').next().unwrap())).count() as u64
        };
        let syncs = count(&["fsync", "fdatasync", "syncfs", "fsync-directory"]);
        assert_eq!(measured.flush.operations(), syncs, "{typed}");
        assert_eq!(measured.write.operations(), count(&["write", "append"]), "{typed}");
        assert_eq!(measured.read.operations(), count(&["read"]), "{typed}");
        let renames = calls_of(&measured).iter().find(|(name, _)| name == "rename");
        assert_eq!(renames.map_or(0, |(_, histogram)| histogram.count()), count(&["rename"]), "{typed}");
        let is_synced = syncs > 0;
        let is_durable = measured.durable.count() > 0;
        // save:rename syncs the file but not the directory, as editors do, so it is not durable.
        assert_eq!(is_durable, is_synced && typed != "save:rename", "{typed}");
    }
}

#[test]
fn the_same_seed_makes_the_same_calls() {
    // In pg-wal:eight-clients, timing decides which client flushes for which, and so which client writes.
    for typed in all_of_files().filter(|typed| typed != "pg-wal:eight-clients") {
        let lines = |seed| {
            let store = FakeStore::default();
            play(&typed, 120, seed, &store).unwrap();
            (store.lines_of_threads(), store.made().len())
        };
        assert_eq!(lines(42), lines(42), "{typed}");
        let has_choices = !["etcd-wal:fdatasync", "pg-wal:steady-8k", "desktop:high-end"]
            .contains(&typed.as_str())
            && !typed.starts_with("save");
        assert_eq!(lines(42) != lines(43), has_choices, "{typed}");
    }
}

#[test]
fn told_to_stop_it_makes_no_further_call() {
    for typed in ["dbf-update", "registry-kv", "unpack:syncfs", "defrag", "pg-wal", "copy"] {
        let whole = FakeStore::default();
        play(typed, 5, 1, &whole).unwrap();
        let prepared = whole.made().len() - whole.lines().len();
        for calls in [1, prepared - 1, prepared, prepared + 2, prepared + 7] {
            let store = FakeStore { stop_after: Some(calls.max(1)), ..FakeStore::default() };
            let measured = play(typed, 1000, 1, &store).unwrap();
            assert_eq!(measured.ending, Ending::Interrupted, "{typed} stopped after {calls} calls");
            assert_eq!(store.made().len(), calls.max(1), "{typed} stopped after {calls} calls");
        }
    }
}

#[test]
fn a_failed_sync_ends_the_run_at_once() {
    for (typed, verb) in [
        ("etcd-wal", "fdatasync"),
        ("pg-wal", "fdatasync"),
        ("dbf-update", "fsync"),
        ("registry-kv", "fsync"),
        ("registry-kv", "fsync-directory"),
        ("unpack:syncfs", "syncfs"),
        ("defrag", "fdatasync"),
        ("ceph-osd-hdd", "fdatasync"),
    ] {
        // The first syncfs belongs to the preparation, where a failure ends the run as well.
        let call = if verb == "syncfs" { 1 } else { 3 };
        let failing = Some(FailurePlan { verb, call, errno: Errno::EIO });
        let store = FakeStore { failing, ..FakeStore::default() };
        let error = play(typed, 1000, 1, &store).unwrap_err();
        assert!(matches!(error, Error::SyncFailed { .. }), "{typed} {verb}: {error:?}");
        let made = store.made();
        assert_eq!(made.last().unwrap().verb, verb, "{typed}: nothing is called after the sync that failed");
        assert_eq!(made.iter().filter(|made| made.verb == verb).count(), call, "{typed} {verb}");
    }
}

#[test]
fn a_failed_sync_of_one_client_ends_all_and_none_flushes_again() {
    for typed in ["pg-wal:eight-clients", "varmail"] {
        let verb = if typed == "varmail" { "fsync" } else { "fdatasync" };
        let failing = Some(FailurePlan { verb, call: 5, errno: Errno::EIO });
        let store = FakeStore { failing, ..FakeStore::default() };
        let error = play(typed, 100_000, 1, &store).unwrap_err();
        assert!(matches!(error, Error::SyncFailed { .. }), "{typed}: {error:?}");
        let syncs = store.made().iter().filter(|made| made.verb == verb).count();
        // Clients of one log share a flusher; in varmail each thread syncs its own files.
        assert!(typed == "varmail" || syncs == 5, "{typed}: {syncs} syncs");
    }
}

#[test]
fn a_sync_that_fails_for_want_of_space_is_a_failed_sync_and_a_write_is_not() {
    let fails = |verb| {
        let failing = Some(FailurePlan { verb, call: 2, errno: Errno::ENOSPC });
        let store = FakeStore { failing, ..FakeStore::default() };
        (play("etcd-wal", 100, 1, &store).unwrap_err(), store.made().len())
    };
    let (error, _) = fails("append");
    assert!(matches!(&error, Error::Full { source: Cause::Store(_) }), "{error:?}");
    assert!(error.to_string().contains("the file system is full"), "{error}");
    let (error, _) = fails("fdatasync");
    assert!(matches!(error, Error::SyncFailed { .. }), "{error:?}");
    let failing = Some(FailurePlan { verb: "write", call: 3, errno: Errno::ENOSPC });
    let store = FakeStore { failing, ..FakeStore::default() };
    let error = play("fileserver", 100, 1, &store).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "in the preparation: {error:?}");
    assert_eq!(store.made().last().unwrap().verb, "write");
}

#[test]
fn where_direct_io_is_refused_that_is_said_once() {
    let store = FakeStore { refuses_direct: true, ..FakeStore::default() };
    let measured = play("ceph-osd-hdd", 10, 1, &store).unwrap();
    let notes = measured
        .transactions
        .as_ref()
        .unwrap()
        .notes
        .iter()
        .filter(|note| note.contains("direct I/O"))
        .count();
    assert_eq!(notes, 1, "{:?}", measured.transactions.as_ref().unwrap().notes);
}

#[test]
fn what_is_not_measured_takes_no_time() {
    let store = FakeStore::default();
    let (profile, variant) = crate::find("unpack:syncfs").unwrap();
    let Work::Files(work) = &profile.work else { unreachable!() };
    let program = work.program.make(&Setting { variant: &variant.name, scale: 0.01, threads: 1, seed: 1 });
    let conduct = Conduct {
        profile: "test",
        clock: &store.clock,
        stop: &store.stop,
        duration: None,
        count: Some(250),
        threads: 1,
        call_bytes_max: 1 << 20,
        seed: 1,
    };
    let measured = perform(program.as_ref(), &store, &conduct, &mut ()).unwrap();
    let calls = store.lines();
    let removed = calls.iter().filter(|line| line.starts_with("unlink")).count();
    assert_eq!(removed, 100, "the third tree removes the first");
    assert!(!calls_of(&measured).iter().any(|(name, _)| name == "unlink"));
    let counted = (calls.len() - removed) as u64;
    assert_eq!(measured.length, FakeStore::CALL_TAKES * counted);
    let recorded: u64 = calls_of(&measured).iter().map(|(_, histogram)| histogram.count()).sum();
    assert_eq!(recorded, counted);
    let syncs = measured.flush.operations();
    let in_transactions = FakeStore::CALL_TAKES * (counted - syncs);
    assert_eq!(
        measured.transactions.as_ref().unwrap().latency.sum_ns(),
        u128::from(in_transactions.0),
        "a syncfs is in no transaction"
    );
    // Each of the three trees is durable when its sync has ended, and only then the next begins.
    assert_eq!(measured.durable.sum_ns(), u128::from(measured.length.0));
}

#[test]
fn time_ends_a_run_and_progress_is_told() {
    let store = FakeStore::default();
    let (_, variant) = crate::find("registry-kv").unwrap();
    let (profile, _) = crate::find("registry-kv").unwrap();
    let Work::Files(work) = &profile.work else { unreachable!() };
    let program = work.program.make(&Setting { variant: &variant.name, scale: 0.01, threads: 3, seed: 1 });
    let clock = RealClock::start();
    let duration = Some(Nanos::millis(20));
    let conduct = Conduct {
        profile: "test",
        clock: &clock,
        stop: &store.stop,
        duration,
        count: None,
        threads: 3,
        call_bytes_max: 1 << 20,
        seed: 1,
    };
    let mut last = None;
    let measured = perform(program.as_ref(), &store, &conduct, &mut |event: &Event<'_>| {
        if let Event::Progress { progress, .. } = event {
            last = Some(progress.total.clone());
        }
    })
    .unwrap();
    assert!(measured.length >= Nanos::millis(20), "{}", measured.length);
    assert_eq!(measured.in_flight_max, 3);
    let last = last.unwrap();
    assert_eq!(last.flushes, measured.flush.operations());
    assert_eq!(last.writes, measured.transaction_count(), "one write for each value");
    assert!(!store.stop.load(Ordering::Acquire));
}
