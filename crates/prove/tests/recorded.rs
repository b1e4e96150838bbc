//! Test that commands through a recorder are in the recording, and that a recording survives being saved and
//! loaded.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use plumb_block::conformance::{self, CannotStage, ModelOptions, ModelRig, Rig};
use plumb_block::{
    Bytes, Clock, Completion, Device, Lba, LbaRange, Nanos, Op, Outcome, Pattern, Payload, Queue,
    QueueOptions, Request, Result, Tag, Wait,
};
use plumb_crash::{Atomicity, Promise, below};
use plumb_prove::explore::{Coverage, Explorer, Limits};
use plumb_prove::recording::{Content, Event, Recorder, Recording};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::explorer;

/// The kit's model behind a recorder.
struct RecordedRig(ModelRig);

impl RecordedRig {
    fn recorded(&self, device: Arc<dyn Device>) -> Arc<dyn Device> {
        Recorder::of_blank(&device.info(), self.0.clock()).device(device)
    }
}

impl Rig for RecordedRig {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn renew(&mut self) -> Result<Arc<dyn Device>> {
        let device = self.0.renew()?;
        Ok(self.recorded(device))
    }

    fn queue_options(&self) -> QueueOptions {
        self.0.queue_options()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.0.clock()
    }

    fn let_time_pass(&mut self) {
        self.0.let_time_pass();
    }

    fn cut_power(&mut self) -> std::result::Result<Arc<dyn Device>, CannotStage> {
        let device = self.0.cut_power()?;
        Ok(self.recorded(device))
    }

    fn fail_next_flush(&mut self) -> std::result::Result<(), CannotStage> {
        self.0.fail_next_flush()
    }

    fn hold_next_request(&mut self) -> std::result::Result<(), CannotStage> {
        self.0.hold_next_request()
    }

    fn release_held(&mut self) {
        self.0.release_held();
    }
}

#[test]
fn a_recorded_device_conforms() {
    conformance::run(&mut RecordedRig(ModelRig::new(ModelOptions::small(3)).unwrap()), 3).assert_conforms();
}

const BLOCKS: u64 = 6;

/// Cached model device of six blocks, used through a recorder.
struct Subject {
    rig: ModelRig,
    recorder: Recorder,
    queue: Box<dyn Queue>,
    in_flight: u64,
}

impl Subject {
    fn new(seed: u64) -> Self {
        let options = ModelOptions { blocks: BLOCKS, ..ModelOptions::small(seed) };
        let mut rig = ModelRig::new(options).unwrap();
        let device = rig.renew().unwrap();
        let recorder = Recorder::of_blank(&device.info(), rig.clock());
        let queue = recorder.device(device).open_queue(rig.queue_options()).unwrap();
        Self { rig, recorder, queue, in_flight: 0 }
    }

    fn submit(&mut self, request: Request) {
        self.queue.submit(request).unwrap();
        self.in_flight += 1;
        self.poll();
    }

    fn poll(&mut self) {
        let mut completions = Vec::new();
        self.in_flight -= self.queue.poll(Wait::NONE, &mut completions).unwrap() as u64;
    }

    /// Cuts the power, and reads every block past the recorder. Unreadable blocks are empty.
    fn cut(mut self) -> BTreeMap<u64, Vec<u8>> {
        let device = self.rig.cut_power().unwrap();
        let options = self.rig.queue_options();
        let pool = options.pool.clone();
        let mut queue = device.open_queue(options).unwrap();
        let mut read = |lba| {
            let into = pool.take(Bytes(512)).unwrap();
            queue.submit(Request::read_into(Tag(lba), LbaRange::new(Lba(lba), 1), into)).unwrap();
            let mut completions = Vec::new();
            while queue.poll(Wait::NONE, &mut completions).unwrap() == 0 {
                self.rig.let_time_pass();
            }
            match completions.pop() {
                Some(Completion { outcome: Outcome::Done, payload: Payload::Into(bytes), .. }) => {
                    (lba, bytes.to_vec())
                }
                _ => (lba, Vec::new()),
            }
        };
        (0..BLOCKS).map(&mut read).collect()
    }
}

/// Random writes, FUA writes, discards and flushes, some still in flight at the end.
fn use_at_random(subject: &mut Subject, seed: u64) {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    for number in 0..1 + below(&mut chance, 10) {
        let lba = below(&mut chance, BLOCKS);
        let range = LbaRange::new(Lba(lba), 1 + below(&mut chance, (BLOCKS - lba).min(2)));
        let pattern = Pattern { seed, lba: range.lba, generation: number };
        let tag = Tag(below(&mut chance, 3));
        let request = match below(&mut chance, 6) {
            0 => Request::flush(tag),
            1 => Request::discard(tag, range),
            2 => Request::write_fua(tag, range, Payload::Pattern(pattern)),
            _ => Request::write(tag, range, Payload::Pattern(pattern)),
        };
        subject.submit(request);
        if subject.in_flight > 0 && below(&mut chance, 2) == 0 {
            subject.rig.let_time_pass();
            subject.poll();
        }
    }
}

#[test]
fn what_a_real_cut_leaves_is_among_the_states_of_the_recording() {
    let mut whole = 0;
    for seed in 0..500 {
        let mut subject = Subject::new(seed);
        use_at_random(&mut subject, seed);
        let recording = subject.recorder.recording();
        let left = subject.cut();
        let promise = Promise {
            discard_zeroes: false,
            atomicity: Atomicity { unit: 0, boundary: 0 },
            ..Promise::VOLATILE
        };
        let limits = Limits { pieces: 14, ..Limits::default() };
        let explorer =
            Explorer { from: recording.events.len(), promise, limits, seed, ..explorer(&recording) };
        let mut is_found = false;
        let windows = explorer.explore(&mut |state| {
            let changes: BTreeMap<u64, Content> = state.changes().into_iter().collect();
            let holds = |lba: u64| {
                let content = changes.get(&lba).copied().unwrap_or(state.durable().content(lba));
                recording.contents.bytes(content)
            };
            // An unreadable block shows nothing.
            is_found |= left.iter().all(|(lba, bytes)| bytes.is_empty() || holds(*lba) == bytes);
            if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let is_whole = windows.iter().all(|window| window.coverage == Coverage::Exhaustive);
        assert!(is_found || !is_whole, "seed {seed}: {:?}", recording.events);
        whole += u32::from(is_found);
    }
    assert!(whole > 450, "only {whole} of 500 were explored whole");
}

fn recording() -> Recording {
    let mut subject = Subject::new(5);
    use_at_random(&mut subject, 5);
    subject.recorder.happened(Event::Acknowledged(1));
    subject.recorder.happened(Event::Marked("fsync(3) = 0".to_owned()));
    let recording = subject.recorder.recording();
    assert!(recording.contents.len() > 2 && recording.commands.len() > 2);
    recording
}

#[test]
fn a_recording_comes_back_from_its_file() {
    let recording = recording();
    let mut file = Vec::new();
    recording.save(&mut file).unwrap();
    assert_eq!(Recording::load(&file[..]).unwrap(), recording);
}

#[test]
fn a_file_that_was_cut_short_or_changed_is_refused() {
    let mut file = Vec::new();
    recording().save(&mut file).unwrap();
    for length in 0..file.len() {
        Recording::load(&file[..length]).expect_err("a file that was cut short");
    }
    for place in 0..file.len() {
        let mut changed = file.clone();
        changed[place] ^= 1;
        Recording::load(&changed[..]).expect_err("a changed file");
    }
    let text = b"{\"schema\":\"plumb/recording/2\",\"size\":512,\"logical_block\":512,\"commands\":0,\"events\":0,\"contents\":0}\n";
    let error = Recording::load(&text[..]).unwrap_err();
    assert!(error.to_string().starts_with("line 1 "), "{error}");
}

#[test]
fn a_request_that_does_not_fit_is_not_recorded() {
    let mut subject = Subject::new(1);
    let write = |tag| {
        Request::write(
            Tag(tag),
            LbaRange::new(Lba(0), 1),
            Payload::Pattern(Pattern { seed: 1, lba: Lba(0), generation: tag }),
        )
    };
    let accepted = (0..100).take_while(|tag| subject.queue.submit(write(*tag)).is_ok()).count();
    let recording = subject.recorder.recording();
    assert_eq!((accepted, recording.commands.len(), recording.events.len()), (16, 16, 16));
    assert_eq!(recording.commands[0].op, Op::Write { fua: false });
    assert!(recording.events.iter().all(|(at, _)| *at == Nanos(0)));
}
