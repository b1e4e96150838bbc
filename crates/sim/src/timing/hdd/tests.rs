//! Tests of the disk against known properties of disks.

use plumb_block::{Bytes, Nanos};

use super::parameters::tests::desktop;
use super::{Hdd, HddParameters};
use crate::command::Sectors;
use crate::timing::mechanics::{Job, JobId, JobKind, Mechanics, Urgency};

fn disk(parameters: &HddParameters) -> Hdd {
    Hdd::new(parameters, Bytes(0))
}

fn job(id: u64, kind: JobKind, first: u64, count: u64) -> Job {
    Job { id: JobId(id), kind, sectors: Sectors { first, count }, urgency: Urgency::Foreground }
}

/// Lets the disk work until nothing is left to do.
fn finish(disk: &mut Hdd) -> Vec<(JobId, Nanos)> {
    let mut done = Vec::new();
    while let Some(at) = disk.next_event() {
        disk.advance(at, &mut done);
    }
    done
}

/// Returns the time that a single job takes, begun at `now`.
fn alone(disk: &mut Hdd, now: Nanos, job: Job) -> Nanos {
    disk.submit(now, job);
    let done = finish(disk);
    assert_eq!(done.len(), 1);
    done[0].1.since(now)
}

#[test]
fn a_write_where_the_last_one_was_comes_a_revolution_later() {
    let mut disk = disk(&desktop());
    let mut now = Nanos(0);
    let mut times = Vec::new();
    for id in 0..20 {
        let took = alone(&mut disk, now, job(id, JobKind::Write, 5000, 8));
        now += took;
        times.push(took.as_secs_f64() * 1e3);
    }
    assert!(times[1..].iter().all(|time| (time - 8.333).abs() < 0.01), "{times:?}");
}

#[test]
fn a_write_of_part_of_a_physical_sector_reads_it_first() {
    let large = HddParameters { physical_sector: crate::model::Size(Bytes(4096)), ..desktop() };
    let whole = alone(&mut disk(&large), Nanos(0), job(0, JobKind::Write, 800_000, 8));
    let part = alone(&mut disk(&large), Nanos(0), job(0, JobKind::Write, 800_000, 1));
    let more = part.as_secs_f64() - whole.as_secs_f64();
    assert!((more * 1e3 - 8.333).abs() < 0.2, "{more} s more");
}

#[test]
fn what_read_ahead_has_passed_is_there_at_once_and_what_comes_next_without_a_turn() {
    let mut disk = disk(&desktop());
    let first = alone(&mut disk, Nanos(0), job(0, JobKind::Read, 10_000, 256));
    // Time for some 100 sectors.
    let later = first + Nanos::millis(1);
    assert_eq!(alone(&mut disk, later, job(1, JobKind::Read, 10_256, 64)), Nanos(0));
    let next = alone(&mut disk, later, job(2, JobKind::Read, 10_320, 256));
    assert!(next < Nanos::millis(6), "{next}");
    // Far beyond the data that was read ahead.
    let far = alone(&mut disk, later + next, job(3, JobKind::Read, 60_000_000, 8));
    assert!(far > Nanos::millis(5), "{far}");
}

#[test]
fn a_write_makes_what_was_read_stale() {
    let mut disk = disk(&desktop());
    let now = alone(&mut disk, Nanos(0), job(0, JobKind::Read, 10_000, 64));
    assert_eq!(alone(&mut disk, now, job(1, JobKind::Read, 10_000, 64)), Nanos(0));
    let written = alone(&mut disk, now, job(2, JobKind::Write, 10_010, 8));
    let again = alone(&mut disk, now + written, job(3, JobKind::Read, 10_000, 64));
    assert!(again > Nanos::millis(1), "{again}");
}

#[test]
fn a_sequence_in_the_queue_loses_no_turn() {
    let mut disk = disk(&desktop());
    for id in 0..100 {
        disk.submit(Nanos(0), job(id, JobKind::Write, id * 100, 100));
    }
    let done = finish(&mut disk);
    assert!(done.is_sorted_by_key(|(id, _)| *id), "out of order: {done:?}");
    // 10,000 sectors of 900 a track: 12 turns and as many changes of track.
    let took = done[99].1.as_secs_f64() * 1e3;
    assert!((90.0..140.0).contains(&took), "{took} ms");
}

#[test]
fn nobody_starves_beside_a_stream_of_nearer_ones() {
    let mut disk = disk(&desktop());
    disk.submit(Nanos(0), job(0, JobKind::Read, 70_000_000, 8));
    disk.submit(Nanos(0), job(1, JobKind::Read, 0, 8));
    let mut done = Vec::new();
    let mut id = 2;
    while done.iter().all(|(done, _)| *done != JobId(0)) {
        let at = disk.next_event().unwrap();
        disk.advance(at, &mut done);
        // Writes a few tracks apart, so that read-ahead does not matter.
        disk.submit(at, job(id, JobKind::Write, id * 7919 % 20_000, 8));
        id += 1;
        assert!(at < Nanos::secs(5), "still waiting at {at}");
    }
}

#[test]
fn a_hurried_job_goes_before_the_others_of_the_background() {
    let background = |id, first| Job { urgency: Urgency::Background, ..job(id, JobKind::Write, first, 8) };
    let mut disk = disk(&desktop());
    for id in 0..10 {
        disk.submit(Nanos(0), background(id, id * 1000));
    }
    disk.submit(Nanos(0), background(10, 70_000_000));
    let patient = HddParameters { background_handicap: crate::model::Time(Nanos::millis(900)), ..desktop() };
    let mut other = Hdd::new(&patient, Bytes(0));
    for id in 0..10 {
        other.submit(Nanos(0), background(id, id * 1000));
    }
    other.submit(Nanos(0), background(10, 70_000_000));
    other.hurry(Nanos(0), JobId(10));
    assert_eq!(finish(&mut disk).last().unwrap().0, JobId(10));
    // The first was begun before.
    assert_eq!(finish(&mut other)[1].0, JobId(10));
}

#[test]
fn a_cut_forgets_what_was_going_on() {
    let mut disk = disk(&desktop());
    for id in 0..10 {
        disk.submit(Nanos(0), job(id, JobKind::Write, id * 1000, 8));
    }
    disk.power_cut(Nanos::millis(5));
    assert_eq!(disk.next_event(), None);
    assert!(alone(&mut disk, Nanos::secs(1), job(20, JobKind::Read, 0, 8)) > Nanos(0));
}
