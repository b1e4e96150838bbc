//! Tests of queues that move between threads, although an io_uring belongs to one thread: guards against
//! hanging, against freeing memory that the kernel uses, and against a descriptor that never becomes
//! readable.

use std::sync::Arc;

use crate::support::{answer, test_file};
use plumb_block::{
    Bytes, Device as _, EngineChoice, Lba, LbaRange, Outcome, Payload, Pool, PoolShape, Queue, QueueOptions,
    RealClock, Request, Tag, Wait,
};
use plumb_linux::{FileDevice, FileOptions, TestFile};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

struct Place {
    device: FileDevice,
    pool: Pool,
    _file: TestFile,
    _directory: tempfile::TempDir,
}

/// Returns a device on io_uring, unless that does not work here.
fn place() -> Option<Place> {
    place_with(FileOptions::write_direct())
}

fn place_with(options: FileOptions) -> Option<Place> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = test_file(directory.path());
    let device = match file.open(options.engine(EngineChoice::IoUring), Arc::new(RealClock::start())) {
        Ok(device) => device,
        Err(error) => {
            plumb_testkit::skip(&format!("{error}"));
            return None;
        }
    };
    Some(Place { device, pool: pool(), _file: file, _directory: directory })
}

fn pool() -> Pool {
    let shape = PoolShape { buffer: Bytes::kib(64), count: 8, alignment: Bytes::kib(4) };
    Pool::new(shape).expect("memory for a pool")
}

fn queue(place: &Place) -> Box<dyn Queue> {
    let options = QueueOptions { depth: 4, pool: place.pool.clone() };
    place.device.open_queue(options).expect("a queue")
}

fn range() -> LbaRange {
    LbaRange::new(Lba(0), 128)
}

fn read_one(queue: &mut dyn Queue) -> Outcome {
    answer(queue, Request::read(Tag(1), range())).outcome
}

#[test]
fn an_idle_queue_moves_to_another_thread_and_back() {
    let Some(place) = place() else { return };
    let mut queue = queue(&place);
    for _ in 0..3 {
        queue = std::thread::spawn(move || {
            assert_eq!(read_one(&mut *queue), Outcome::Done);
            queue
        })
        .join()
        .expect("the other thread");
        assert_eq!(read_one(&mut *queue), Outcome::Done);
    }
}

#[test]
fn a_request_submitted_on_one_thread_is_handed_over_by_another() {
    let Some(place) = place() else { return };
    let mut queue = queue(&place);
    assert_eq!(read_one(&mut *queue), Outcome::Done);
    queue.submit(Request::read(Tag(2), range())).expect("room in the queue");
    let completions = std::thread::spawn(move || {
        let mut completions = Vec::new();
        queue.poll(Wait::ONE, &mut completions).expect("a working queue");
        completions
    })
    .join()
    .expect("the other thread");
    assert_eq!((completions[0].tag, completions[0].outcome), (Tag(2), Outcome::Done));
}

#[test]
fn a_busy_queue_dropped_by_another_thread_neither_hangs_nor_frees_memory() {
    let Some(place) = place() else { return };
    let mut queue = queue(&place);
    let buffer = place.pool.take(Bytes::kib(64)).expect("a buffer");
    let before = place.pool.available();
    queue.submit(Request::read_into(Tag(1), range(), buffer)).expect("room in the queue");
    let mut completions = Vec::new();
    let done = queue.poll(Wait::NONE, &mut completions).expect("a working queue");
    std::thread::spawn(move || drop(queue)).join().expect("the other thread");
    if done == 0 {
        assert_eq!(place.pool.available(), before, "memory that the kernel may touch was given back");
    }
}

#[test]
fn memory_that_is_not_registered_works_too() {
    let Some(place) = place() else { return };
    let mut queue = queue(&place);
    let mut bytes = pool().take(Bytes::kib(64)).expect("a buffer");
    bytes.fill(7);
    let write = Request::write(Tag(1), range(), Payload::Bytes(bytes.freeze()));
    queue.submit(write).expect("room in the queue");
    let mut completions = Vec::new();
    queue.poll(Wait::ONE, &mut completions).expect("a working queue");
    let back = pool().take(Bytes::kib(64)).expect("a buffer");
    queue.submit(Request::read_into(Tag(2), range(), back)).expect("room in the queue");
    queue.poll(Wait::ONE, &mut completions).expect("a working queue");
    assert!(completions.iter().all(|completion| completion.outcome.is_done()), "{completions:?}");
    let Payload::Into(read) = &completions[1].payload else { panic!("{completions:?}") };
    assert!(read.iter().all(|byte| *byte == 7));
}

#[test]
fn the_wake_descriptor_becomes_readable() {
    let Some(place) = place() else { return };
    let mut queue = queue(&place);
    queue.submit(Request::read(Tag(1), range())).expect("room in the queue");
    let mut completions = Vec::new();
    let mut done = queue.poll(Wait::NONE, &mut completions).expect("a working queue");
    while done == 0 {
        let descriptor = queue.wake_fd().expect("a ring has a descriptor");
        let mut waiting = [PollFd::new(&descriptor, PollFlags::IN)];
        // A guard against hanging for ever, not a measure of speed.
        let limit = Timespec { tv_sec: 600, tv_nsec: 0 };
        assert_eq!(poll(&mut waiting, Some(&limit)).expect("poll works"), 1, "it never became readable");
        done = queue.poll(Wait::NONE, &mut completions).expect("a working queue");
    }
    assert!(completions[0].outcome.is_done());
}

/// Guards against a wait for two queues that neither wakes, so that it finds the completions only after its
/// timeout.
#[test]
fn who_waits_for_several_queues_is_woken_each_time() {
    let Some(place) = place() else { return };
    let mut queues = [queue(&place), queue(&place)];
    // A guard against hanging for ever, not a measure of speed.
    let limit = Timespec { tv_sec: 600, tv_nsec: 0 };
    for round in 0..50 {
        let mut in_flight = 0;
        for (queue, tag) in queues.iter_mut().zip(1..) {
            queue.submit(Request::read(Tag(tag), range())).expect("room in the queue");
            in_flight += 1;
        }
        let mut completions = Vec::new();
        loop {
            for queue in &mut queues {
                in_flight -= queue.poll(Wait::NONE, &mut completions).expect("a working queue");
            }
            if in_flight == 0 {
                break;
            }
            let mut waiting: Vec<PollFd<'_>> = queues
                .iter()
                .map(|queue| PollFd::from_borrowed_fd(queue.wake_fd().expect("a descriptor"), PollFlags::IN))
                .collect();
            let woken = poll(&mut waiting, Some(&limit)).expect("poll works");
            assert!(woken > 0, "nothing woke it in round {round}");
        }
    }
}

/// Tests requests of a thread that has ended: the kernel abandons those that it has not begun, including
/// flushes.
#[test]
fn a_shared_queue_is_polled_by_any_thread_and_outlives_those_that_submitted() {
    let Some(place) = place_with(FileOptions::write_direct().shared()) else { return };
    let mut queue = queue(&place);
    let mut completions = Vec::new();
    for turn in 0..200 {
        let mut bytes = place.pool.take(Bytes::kib(64)).expect("a buffer");
        bytes.fill(turn as u8);
        let requests =
            [Request::write(Tag(1), range(), Payload::Bytes(bytes.freeze())), Request::flush(Tag(2))];
        (queue, completions) = std::thread::spawn(move || {
            for request in requests {
                queue.submit(request).expect("room in the queue");
            }
            queue.poll(Wait::NONE, &mut completions).expect("a working queue");
            (queue, completions)
        })
        .join()
        .expect("the other thread");
        let wait = Wait { completions: 2 - completions.len() as u32, ..Wait::ONE };
        queue.poll(wait, &mut completions).expect("a working queue");
        let done = completions.drain(..).filter(|completion| completion.outcome.is_done()).count();
        assert_eq!(done, 2, "turn {turn}");
    }
}
