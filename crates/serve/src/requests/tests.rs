//! Tests of the core over a device with scripted answers: the answer to a flush after or beside a failed one,
//! and requests that are never answered.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plumb_block::{Device, DeviceInfo, Extent, ExtentState, Latch, Lba, Power, QueueFull, VirtualClock};

use super::*;

const BLOCK: LbaRange = LbaRange { lba: Lba(0), nlb: 1 };
const FUA: Op = Op::Write { fua: true };
const WRITE: Op = Op::Write { fua: false };

/// A device with answers given by the test.
#[derive(Clone, Default)]
struct ScriptedDevice(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    losses: u64,
    /// Number of requests that a queue holds; 0: any number.
    room: usize,
    is_broken: bool,
    held: Vec<(Op, Request)>,
    answers: Vec<Completion>,
}

impl ScriptedDevice {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers the oldest request of this kind.
    fn answer(&self, op: Op, outcome: Outcome) {
        let mut state = self.state();
        let index = state.held.iter().position(|(held, _)| *held == op).expect("the device has one");
        let (_, request) = state.held.remove(index);
        state.answers.push(request.completed(outcome, Nanos(0)));
    }

    fn held(&self) -> usize {
        self.state().held.len()
    }
}

impl Device for ScriptedDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::plain("scripted", Bytes::mib(1), Bytes(512))
    }

    fn open_queue(&self, _options: QueueOptions) -> Result<Box<dyn Queue>> {
        Ok(Box::new(self.clone()))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        Ok(vec![Extent { range, state: ExtentState::Unknown }])
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Ok(())
    }

    fn latched(&self) -> Option<Latch> {
        None
    }

    fn power(&self) -> Power {
        Power { is_on: true, losses: self.state().losses }
    }
}

impl Queue for ScriptedDevice {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        let mut state = self.state();
        if state.room > 0 && state.held.len() >= state.room {
            return Err(QueueFull(request));
        }
        state.held.push((request.op, request));
        Ok(())
    }

    fn poll(&mut self, _wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let mut state = self.state();
        if state.is_broken {
            let error = plumb_block::Error::new(plumb_block::ErrorKind::Os(Errno::EIO), "poll", "scripted");
            return Err(error);
        }
        completions.append(&mut state.answers);
        Ok(completions.len())
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A front end that numbers its requests.
struct FrontEnd(Requests<u32>);

impl FrontEnd {
    fn submit(&mut self, asked: u32, op: Op) {
        let (range, payload) = match op {
            Op::Flush => (LbaRange::EMPTY, Payload::None),
            _ => (BLOCK, Payload::None),
        };
        self.0.submit(asked, op, range, payload);
    }

    fn ended(&mut self) -> Vec<(u32, std::result::Result<(), Failure>)> {
        self.0.poll(Wait::NONE);
        std::iter::from_fn(|| self.0.next_ended()).map(|ended| (ended.asked, ended.result)).collect()
    }
}

/// Returns the device, served with a stopped clock.
fn served(device: &ScriptedDevice, timeout: Nanos) -> Arc<ServedDevice> {
    Arc::new(ServedDevice::new(Arc::new(device.clone()), Arc::new(VirtualClock::new()), timeout))
}

fn front_end(served: &Arc<ServedDevice>, depth: u32) -> FrontEnd {
    let shape = PoolShape { buffer: Bytes(4096), count: depth, alignment: Bytes(4096) };
    let memory = Memory::new(shape).unwrap();
    let known = KnownLosses::for_device(&*served.device);
    FrontEnd(Requests::open(Arc::clone(served), known, depth, memory.pool()).unwrap())
}

fn scene(depth: u32) -> (ScriptedDevice, FrontEnd) {
    let device = ScriptedDevice::default();
    let front_end = front_end(&served(&device, Nanos(u64::MAX)), depth);
    (device, front_end)
}

const EIO: std::result::Result<(), Failure> = Err(Failure::Errno(Errno::EIO));
const UNANSWERED: std::result::Result<(), Failure> = Err(Failure::Unanswered);

#[test]
fn a_flush_beside_one_that_failed_fails() {
    for (failing, outcome, told) in [
        (Op::Flush, Outcome::Failed(Errno::EIO), EIO),
        (Op::Flush, Outcome::Unknown, UNANSWERED),
        (FUA, Outcome::Failed(Errno::ENOSPC), Err(Failure::Errno(Errno::ENOSPC))),
    ] {
        let device = ScriptedDevice::default();
        let served = served(&device, Nanos(u64::MAX));
        let (mut one, mut other) = (front_end(&served, 4), front_end(&served, 4));
        one.submit(1, failing);
        other.submit(2, Op::Flush);
        assert_eq!(device.held(), 2, "both are at the device");
        device.answer(failing, outcome);
        assert_eq!(one.ended(), [(1, told)]);
        device.answer(Op::Flush, Outcome::Done);
        assert_eq!(other.ended(), [(2, EIO)], "beside {failing:?} that ended as {outcome:?}");
    }
}

#[test]
fn after_a_failed_flush_nothing_that_promises_durability_reaches_the_device_until_its_power_was_off() {
    let (device, mut front_end) = scene(4);
    front_end.submit(1, Op::Flush);
    device.answer(Op::Flush, Outcome::Failed(Errno::EIO));
    assert_eq!(front_end.ended(), [(1, EIO)]);
    for (asked, op) in [(2, Op::Flush), (3, FUA)] {
        front_end.submit(asked, op);
        assert_eq!((front_end.ended(), device.held()), (vec![(asked, EIO)], 0));
    }
    front_end.submit(4, WRITE);
    device.answer(WRITE, Outcome::Done);
    assert_eq!(front_end.ended(), [(4, Ok(()))], "a write promises nothing");
    device.state().losses += 1;
    front_end.0.known.update(device.power());
    front_end.submit(5, Op::Flush);
    device.answer(Op::Flush, Outcome::Done);
    assert_eq!(front_end.ended(), [(5, Ok(()))]);
}

#[test]
fn nothing_succeeds_for_those_who_were_there_before_a_loss_of_power() {
    let device = ScriptedDevice::default();
    let served = served(&device, Nanos(u64::MAX));
    let mut before = front_end(&served, 4);
    for (asked, op) in [(1, Op::Flush), (2, WRITE)] {
        before.submit(asked, op);
    }
    device.state().losses += 1;
    device.answer(WRITE, Outcome::Done);
    device.answer(Op::Flush, Outcome::Done);
    assert_eq!(before.ended(), [(2, UNANSWERED), (1, UNANSWERED)], "in flight across the loss");
    for (asked, op) in [(3, Op::Flush), (4, FUA), (5, WRITE), (6, Op::Read)] {
        before.submit(asked, op);
        assert_eq!((before.ended(), device.held()), (vec![(asked, UNANSWERED)], 0), "{op:?} after it");
    }
    let mut after = front_end(&served, 4);
    after.submit(7, Op::Flush);
    device.answer(Op::Flush, Outcome::Done);
    assert_eq!(after.ended(), [(7, Ok(()))], "whoever comes after the loss has lost nothing");
    before.0.known.update(device.power());
    before.submit(8, Op::Flush);
    device.answer(Op::Flush, Outcome::Done);
    assert_eq!(before.ended(), [(8, Ok(()))], "the users of before are gone");
}

#[test]
fn what_waits_for_room_at_a_loss_of_power_never_reaches_the_device() {
    let (device, mut front_end) = scene(3);
    device.state().room = 1;
    for asked in 1..=2 {
        front_end.submit(asked, WRITE);
    }
    device.state().losses += 1;
    device.answer(WRITE, Outcome::PowerLost);
    assert_eq!(front_end.ended(), [(1, UNANSWERED), (2, UNANSWERED)]);
    assert_eq!((device.held(), front_end.0.in_flight()), (0, 0));
}

#[test]
fn neither_a_loss_of_power_nor_a_refusal_latches() {
    let (device, mut front_end) = scene(4);
    front_end.submit(1, Op::Flush);
    device.answer(Op::Flush, Outcome::PowerLost);
    let zeroes = Op::WriteZeroes { fua: true, no_hole: false, fast_only: true };
    front_end.submit(2, zeroes);
    device.answer(zeroes, Outcome::Failed(Errno::EOPNOTSUPP));
    assert_eq!(front_end.ended(), [(1, UNANSWERED), (2, Err(Failure::Errno(Errno::EOPNOTSUPP)))]);
    front_end.submit(3, Op::Flush);
    device.answer(Op::Flush, Outcome::Done);
    assert_eq!(front_end.ended(), [(3, Ok(()))]);
}

#[test]
fn what_is_never_answered_is_given_up_and_its_slot_stays_the_devices() {
    let device = ScriptedDevice::default();
    let mut front_end = front_end(&served(&device, Nanos::ZERO), 2);
    front_end.submit(1, WRITE);
    front_end.submit(2, Op::Flush);
    assert_eq!(front_end.ended(), [(1, UNANSWERED), (2, UNANSWERED)]);
    assert_eq!((front_end.0.in_flight(), front_end.0.awaited()), (2, 0));
    assert!(front_end.0.has_room(), "off line: what comes can fail");
    front_end.submit(3, WRITE);
    assert_eq!(front_end.ended(), [(3, UNANSWERED)]);
    device.answer(WRITE, Outcome::Done);
    assert_eq!(front_end.ended(), [], "nobody waits for it any more");
    assert_eq!(front_end.0.in_flight(), 1);
    front_end.submit(4, Op::Flush);
    assert_eq!(front_end.ended(), [(4, EIO)], "the flush that was given up has latched");
}

#[test]
fn what_the_queue_has_no_room_for_waits_and_what_the_device_never_had_frees_its_slot() {
    let (device, mut front_end) = scene(3);
    device.state().room = 1;
    for asked in 1..=2 {
        front_end.submit(asked, WRITE);
    }
    assert!(device.held() == 1 && !front_end.0.has_room());
    device.answer(WRITE, Outcome::Done);
    assert_eq!(front_end.ended(), [(1, Ok(()))]);
    assert!(device.held() == 1 && front_end.0.has_room() && front_end.0.needs_poll());
    front_end.submit(3, WRITE);
    front_end.0.served.shorten_request_timeout(Nanos::ZERO);
    front_end.0.next_patrol = Nanos::ZERO;
    assert_eq!(
        front_end.ended(),
        [(3, UNANSWERED), (2, UNANSWERED)],
        "in the order of slots: the third request has the first one's"
    );
    assert_eq!(front_end.0.in_flight(), 1);
}

#[test]
fn a_broken_queue_ends_all_and_latches_if_a_flush_was_in_flight() {
    let (device, mut front_end) = scene(4);
    front_end.submit(1, Op::Flush);
    front_end.submit(2, Op::Read);
    device.state().is_broken = true;
    assert_eq!(front_end.ended(), [(1, UNANSWERED), (2, UNANSWERED)]);
    assert!(front_end.0.served.has_failed_flush() && front_end.0.in_flight() == 0);
    front_end.submit(3, Op::Read);
    assert_eq!(front_end.ended(), [(3, UNANSWERED)]);
}

#[test]
fn only_what_is_acted_upon_is_told_apart() {
    let (device, mut front_end) = scene(4);
    let zeroes = Op::WriteZeroes { fua: false, no_hole: false, fast_only: false };
    for (op, errno, told) in [
        (WRITE, Errno::ENOSPC, Errno::ENOSPC),
        (WRITE, Errno::EOPNOTSUPP, Errno::EIO),
        (zeroes, Errno::EOPNOTSUPP, Errno::EOPNOTSUPP),
        (Op::Read, Errno::ENOSPC, Errno::EIO),
    ] {
        front_end.submit(1, op);
        device.answer(op, Outcome::Failed(errno));
        assert_eq!(front_end.ended(), [(1, Err(Failure::Errno(told)))], "{op:?} that fails with {errno:?}");
    }
}

#[test]
fn an_answer_to_nothing_is_ignored() {
    let (device, mut front_end) = scene(2);
    front_end.submit(1, Op::Read);
    for tag in [Tag(1), Tag(77)] {
        device.state().answers.push(Request::flush(tag).completed(Outcome::Done, Nanos(0)));
    }
    assert_eq!(front_end.ended(), []);
    assert_eq!(front_end.0.in_flight(), 1);
}
