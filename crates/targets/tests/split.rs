//! Requests beyond the largest transfer of a simulated drive are split, as the kernel does it for a disk.

use std::sync::Arc;

use plumb_block::{
    Bytes, Clock, Completion, Errno, Lba, LbaRange, Outcome, Pattern, Payload, Pool, PoolShape, QueueOptions,
    RealClock, Request, Tag, Wait,
};
use plumb_linux::FileOptions;
use plumb_targets::{
    Intent, Name, OpenedTarget, Permission, TargetRequest, Time, open_all, seed_of, time_of,
};

/// More than twice the largest transfer, and not a multiple of it.
const LENGTH: Bytes = Bytes(300 << 10);

/// Returns the drive, and the time of its simulated world.
fn drive(typed: &str) -> (OpenedTarget, Time) {
    let name = Name::parse(typed).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let time = time_of([&name], &clock);
    let wanted = TargetRequest { name, intent: Intent::WRITE, options: FileOptions::read_direct() };
    (open_all(&[wanted], &Permission::default(), &time).unwrap().remove(0), time)
}

/// Submits all requests at once. Returns the completions in the order of their tags.
fn ask(opened: &OpenedTarget, requests: impl FnOnce(&Pool) -> Vec<Request>) -> Vec<Completion> {
    let pool = Pool::new(PoolShape { buffer: LENGTH, count: 4, alignment: Bytes(4096) }).unwrap();
    let mut queue = opened.device.open_queue(QueueOptions { depth: 4, pool: pool.clone() }).unwrap();
    let requests = requests(&pool);
    let count = requests.len();
    requests.into_iter().for_each(|request| queue.submit(request).unwrap());
    let mut answers = Vec::new();
    while answers.len() < count {
        assert!(queue.poll(Wait { completions: 4, ..Wait::ONE }, &mut answers).unwrap() > 0);
    }
    answers.sort_by_key(|answer| answer.tag);
    answers
}

#[test]
fn long_requests_are_done_whole_and_pattern_and_bytes_keep_their_meaning() {
    let (opened, _time) = drive("sim:ata-40gb");
    assert!(opened.device.info().transfer_max < LENGTH);
    let nlb = LENGTH.0 / 512;
    let (first, second) = (LbaRange::new(Lba(8), nlb), LbaRange::new(Lba(5000), nlb));
    let pattern = |range: LbaRange| Pattern { seed: 3, lba: range.lba, generation: 1 };
    let filled = |range: LbaRange| {
        let mut bytes = vec![0; LENGTH.0 as usize];
        pattern(range).fill(512, &mut bytes);
        bytes
    };
    let answers = ask(&opened, |pool| {
        let mut buffer = pool.take(LENGTH).unwrap();
        buffer.copy_from_slice(&filled(second));
        vec![
            Request::write(Tag(1), first, Payload::Pattern(pattern(first))),
            Request::write(Tag(2), second, Payload::Bytes(buffer.freeze())),
            Request::read(Tag(3), LbaRange::new(Lba(90_000), 8)),
            Request::read(Tag(4), LbaRange::new(Lba(opened.device.info().blocks() - 1), nlb)),
        ]
    });
    let outcomes: Vec<Outcome> = answers.iter().map(|answer| answer.outcome).collect();
    let invalid = Outcome::Failed(Errno::EINVAL);
    assert_eq!(outcomes, [Outcome::Done, Outcome::Done, Outcome::Done, invalid]);
    assert!(answers[0].completed_at > answers[0].submitted_at);
    let answers = ask(&opened, |pool| {
        let read = |tag, range| Request::read_into(Tag(tag), range, pool.take(LENGTH).unwrap());
        vec![read(1, first), read(2, second)]
    });
    for (answer, range) in answers.iter().zip([first, second]) {
        let Payload::Into(bytes) = &answer.payload else { panic!("no bytes came back") };
        assert!(answer.outcome.is_done() && **bytes == *filled(range), "{range:?}");
    }
}

#[test]
fn a_piece_that_fails_fails_the_request_and_there_is_one_answer() {
    let (opened, _time) = drive("sim:ata-40gb?fault=write:eio:nth=2");
    let range = LbaRange::new(Lba(0), LENGTH.0 / 512);
    let pattern = Pattern { seed: 3, lba: Lba(0), generation: 1 };
    let answers = ask(&opened, |_| vec![Request::write(Tag(7), range, Payload::Pattern(pattern))]);
    assert_eq!((answers[0].tag, answers[0].outcome), (Tag(7), Outcome::Failed(Errno::EIO)));
}

#[test]
fn the_seed_of_a_run_is_that_of_its_simulated_drives() {
    let seed = |names: &[&str]| {
        let names: Vec<Name> = names.iter().map(|name| Name::parse(name).unwrap()).collect();
        seed_of(&names)
    };
    assert!(seed(&["sim:null?seed=7"]).is_some());
    assert_eq!(seed(&["sim:null?seed=7"]), seed(&["sim:liar?wce=off&seed=7"]));
    assert_ne!(seed(&["sim:null?seed=7"]), seed(&["sim:null"]));
    assert_eq!(seed(&["sim:null", "/tmp/x"]), None);
    assert_eq!(seed(&[]), None);
}
