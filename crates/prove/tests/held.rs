//! A state as a device.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use plumb_block::conformance::{self, Rig};
use plumb_block::{
    Bytes, Clock, Device, Lba, LbaRange, Nanos, Op, Payload, Pool, PoolShape, QueueOptions, Request, Result,
    Tag, VirtualClock, Wait,
};
use plumb_prove::recording::{Content, Recording};
use plumb_prove::state_device::StateDevice;

use crate::explorer;

const BLOCK: u64 = 512;

fn pool() -> Pool {
    Pool::new(PoolShape { buffer: Bytes(16 * BLOCK), count: 64, alignment: Bytes(BLOCK) }).unwrap()
}

struct StateRig(Pool, Arc<VirtualClock>);

impl Rig for StateRig {
    fn describe(&self) -> String {
        "a blank state".to_owned()
    }

    fn renew(&mut self) -> Result<Arc<dyn Device>> {
        let recording = Arc::new(Recording::of_blank(Bytes(256 * BLOCK), Bytes(BLOCK)));
        Ok(Arc::new(StateDevice::new(recording, self.clock())))
    }

    fn queue_options(&self) -> QueueOptions {
        QueueOptions { depth: 16, pool: self.0.clone() }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.1) as Arc<dyn Clock>
    }
}

#[test]
fn a_state_conforms_as_a_device() {
    conformance::run(&mut StateRig(pool(), Arc::default()), 1).assert_conforms();
}

fn read(device: &StateDevice, range: LbaRange) -> Vec<u8> {
    let pool = pool();
    let mut queue = device.open_queue(QueueOptions { depth: 1, pool: pool.clone() }).unwrap();
    queue.submit(Request::read_into(Tag(1), range, pool.take(Bytes(BLOCK * range.nlb)).unwrap())).unwrap();
    let mut completions = Vec::new();
    queue.poll(Wait::ONE, &mut completions).unwrap();
    let Payload::Into(bytes) = completions.remove(0).payload else { panic!("no bytes") };
    bytes.to_vec()
}

/// Two blocks written, either of which a cut may take.
#[test]
fn each_state_is_read_as_it_is_and_what_was_read_of_it_is_known() {
    let mut recording = Recording::of_blank(Bytes(8 * BLOCK), Bytes(BLOCK));
    recording.submit(
        Nanos(0),
        Op::Write { fua: false },
        LbaRange::new(Lba(2), 2),
        &[[7; 512], [9; 512]].concat(),
    );
    let recording = Arc::new(recording);
    let device = StateDevice::new(Arc::clone(&recording), Arc::new(VirtualClock::new()));
    device.set_varied(HashSet::from([2, 3]));
    let mut states = Vec::new();
    explorer(&recording).explore(&mut |state| {
        states.push(state.to_owned());
        ControlFlow::Continue(())
    });
    let mut seen = HashSet::new();
    for state in states {
        device.hold(state);
        let bytes = read(&device, LbaRange::new(Lba(1), 2));
        assert!(bytes[..512].iter().all(|byte| *byte == 0));
        let content = Content(u32::from(bytes[512] == 7));
        assert_eq!(device.read(), [(2, content)], "block 1 never differs, and block 3 was not read");
        seen.insert((bytes[512], read(&device, LbaRange::new(Lba(3), 1))[0]));
    }
    assert_eq!(seen, HashSet::from([(0, 0), (7, 0), (0, 9), (7, 9)]));
}
