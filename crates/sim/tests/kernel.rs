//! Tests of the commands that reach a drive through a simulated kernel: flushes only with a known volatile
//! cache, one at a time, and FUA as a write and a flush if the drive lacks it.

use std::sync::Arc;

use plumb_block::{
    Bytes, Completion, Device, Lba, LbaRange, Pattern, Payload, Pool, PoolShape, Queue, QueueOptions,
    Request, Tag, Time, VirtualClock, Wait, wait_any,
};
use plumb_sim::Handle;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::kernel::{self, Flushes};
use plumb_sim::model::Model;

/// A drive in virtual time behind a kernel.
struct Host {
    handle: Handle,
    device: Arc<dyn Device>,
    time: Time,
}

impl Host {
    fn new(model: &str, wce: bool, flushes: Flushes) -> Self {
        let time = Time::Virtual(Arc::new(VirtualClock::new()));
        let options = DriveOptions { wce: Some(wce), size: Some(Bytes::mib(64)), ..DriveOptions::default() };
        let drive = Drive::new(&Model::named(model).unwrap(), options).unwrap();
        let handle = Handle::new(drive, time.clone());
        let device = kernel::above(handle.device(), &time, flushes);
        Self { handle, device, time }
    }

    fn queue(&self) -> Box<dyn Queue> {
        let shape = PoolShape { buffer: Bytes::kib(4), count: 8, alignment: Bytes::kib(4) };
        self.device.open_queue(QueueOptions { depth: 8, pool: Pool::new(shape).unwrap() }).unwrap()
    }

    /// Returns the flushes and FUA writes that the drive has counted.
    fn counted(&self) -> (u64, u64) {
        let counted = self.handle.counters().read().unwrap();
        let fua = self.handle.with(|drive, _| drive.counters().fua_writes);
        (counted.devices[0].flushes.unwrap(), fua)
    }

    /// Polls the queues until each has answered `each` requests.
    fn answers(&self, queues: &mut [Box<dyn Queue>], each: usize) -> Vec<Vec<Completion>> {
        let mut answers: Vec<Vec<Completion>> = queues.iter().map(|_| Vec::new()).collect();
        loop {
            for (queue, answers) in queues.iter_mut().zip(&mut answers) {
                queue.poll(Wait::NONE, answers).unwrap();
            }
            if answers.iter().all(|answers| answers.len() == each) {
                return answers;
            }
            let all = queues.iter().map(|queue| &**queue);
            assert!(
                wait_any(all, None, &mut &self.time).unwrap(),
                "nothing will happen any more: {answers:?}"
            );
        }
    }
}

fn write(tag: u64, fua: bool) -> Request {
    let pattern = Payload::Pattern(Pattern { seed: 1, lba: Lba(tag * 8), generation: 1 });
    let range = LbaRange::new(Lba(tag * 8), 1);
    if fua { Request::write_fua(Tag(tag), range, pattern) } else { Request::write(Tag(tag), range, pattern) }
}

#[test]
fn a_drive_without_a_volatile_cache_sees_no_flush_and_no_fua() {
    for (wce, flushes, expected) in [
        (false, Flushes::AsLinux, (0, 0)),
        (true, Flushes::AsLinux, (1, 1)),
        (false, Flushes::Raw, (1, 1)),
        (true, Flushes::Raw, (1, 1)),
    ] {
        let host = Host::new("consumer-nvme-ssd", wce, flushes);
        let mut queues = [host.queue()];
        queues[0].submit(write(1, true)).unwrap();
        queues[0].submit(Request::flush(Tag(2))).unwrap();
        let answers = host.answers(&mut queues, 2);
        assert!(answers[0].iter().all(|answer| answer.outcome.is_done()), "{answers:?}");
        assert_eq!(host.counted(), expected, "cache {wce}, {flushes:?}");
    }
}

#[test]
fn flushes_that_arrive_while_one_is_in_flight_share_the_next() {
    let host = Host::new("consumer-nvme-ssd", true, Flushes::AsLinux);
    let mut queues = [host.queue(), host.queue(), host.queue()];
    for queue in &mut queues {
        queue.submit(Request::flush(Tag(1))).unwrap();
        queue.submit(Request::flush(Tag(2))).unwrap();
    }
    let answers = host.answers(&mut queues, 2);
    // The first flush goes alone; the five others wait for it and share one.
    assert_eq!(host.counted().0, 2);
    let ended =
        |queue: usize, tag| answers[queue].iter().find(|one| one.tag == Tag(tag)).unwrap().completed_at;
    assert!(ended(0, 1) < ended(0, 2));
    for queue in [1, 2] {
        assert_eq!((ended(queue, 1), ended(queue, 2)), (ended(0, 2), ended(0, 2)));
    }
}

#[test]
fn fua_of_a_drive_without_it_is_a_write_and_then_a_flush() {
    let host = Host::new("consumer-sata-ssd", true, Flushes::AsLinux);
    assert!(!host.device.info().fua_native, "this test needs a drive without FUA");
    let mut queues = [host.queue()];
    queues[0].submit(write(3, true)).unwrap();
    let answers = host.answers(&mut queues, 1);
    assert_eq!((answers[0][0].tag, host.counted()), (Tag(3), (1, 0)));
    assert!(answers[0][0].outcome.is_done());
}

#[test]
fn a_queue_that_goes_away_with_the_flush_in_flight_leaves_nobody_waiting() {
    let host = Host::new("consumer-nvme-ssd", true, Flushes::AsLinux);
    let (mut first, mut second) = (host.queue(), host.queue());
    first.submit(Request::flush(Tag(1))).unwrap();
    second.submit(Request::flush(Tag(2))).unwrap();
    drop(first);
    let answers = host.answers(&mut [second], 1);
    assert!(answers[0][0].outcome.is_done());
}
