//! Writers, witnesses and cuts of simulated drives in virtual time: honest drives lose nothing at any cut,
//! and each kind of liar is found. `PLUMB_CUTS` is the total number of cycles of honest drives (72; a liar
//! takes 50 at most), `PLUMB_SEED` the first seed.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use plumb_block::{Bytes, Nanos, RealClock, Time, VirtualClock};
use plumb_state::frame::{Decoder, send};

use plumb_report::document::power::{Class, VerifyDocument};
use plumb_sim::Handle;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::model::TypedModel;
use plumb_witness::record::{Record, Session};
use plumb_witness::{
    Batch, Event, Link, Message, Peer, Plan, RunFacts, Until, Witness, serve, verify, write,
};

/// Number of writes after which a flush follows, and percentage of the writes with FUA.
type Durable = (u64, u8);

const SIZE: Bytes = Bytes::mib(2);
/// Number of cycles within which a liar must be found.
const LIAR_CYCLES_MAX: u64 = 50;

fn is_damaged(error: &plumb_witness::Error) -> bool {
    error.to_string().ends_with("nothing can be said of this run")
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// Witness in memory.
struct Memory(Record);

impl Witness for Memory {
    fn send(&mut self, batch: &Batch) -> plumb_witness::Result<()> {
        self.0.batches.push(batch.clone());
        Ok(())
    }

    fn confirmed(&mut self, _: Nanos) -> plumb_witness::Result<u64> {
        Ok(self.0.confirmed())
    }
}

/// Drive that can be cut.
struct Bench {
    handle: Handle,
    time: Time,
    size: Bytes,
}

impl Bench {
    fn new(typed: &str, seed: u64) -> Self {
        let model = typed.parse::<TypedModel>().unwrap().resolve().unwrap();
        let options = DriveOptions { size: Some(SIZE), seed, ..DriveOptions::default() };
        let time = Time::Virtual(Arc::new(VirtualClock::new()));
        let handle = Handle::new(Drive::new(&model, options).unwrap(), time.clone());
        Self { handle, time, size: SIZE }
    }

    fn facts(&self, seed: u64, (flush_every, fua_percent): Durable) -> RunFacts {
        let info = self.handle.device().info();
        let plan = Plan {
            seed,
            logical_block: info.logical_block,
            blocks: info.blocks(),
            write_blocks: (4096 / info.logical_block.0).max(1),
            depth: 1 + (seed % 16) as u32,
            flush_every,
            fua_percent,
            window: 16 + seed % 100,
        };
        RunFacts { plan, target: "drive".to_owned(), identity: None, size: self.size }
    }

    /// Writes until the power cut at `when`, and restores the power.
    fn cut(&self, plan: &Plan, witness: &mut dyn Witness, when: &str) {
        self.handle.with(|drive, now| drive.cut_when(now, when.parse().unwrap()));
        let until = Until { writes: Some(20_000), time: None };
        let device = self.handle.device();
        let ended = write(plan, &*device, &self.time, witness, until, &AtomicBool::new(false)).unwrap();
        assert!(ended.device_failed, "the writer ended before the cut at {when}: {ended:?}");
        self.handle.with(Drive::power_on);
    }

    fn verify(&self, record: &Record) -> VerifyDocument {
        verify(record, &*self.handle.device(), None, &AtomicBool::new(false)).unwrap()
    }
}

fn moment(seed: u64, plan: &Plan) -> String {
    let flush = 2 + seed % 23;
    match (seed % 3, plan.flush_every) {
        (0, 1..) => {
            format!("flush:{flush}:submitted..flush:{flush}:completed")
        }
        (1, 1..) => format!("flush={flush}"),
        _ => format!("write={}", plan.fills() + 1 + seed * 37 % 500),
    }
}

const PATTERNS: [Durable; 3] = [(0, 100), (7, 0), (9, 25)];

fn cycle(typed: &str, seed: u64) -> VerifyDocument {
    let bench = Bench::new(typed, seed);
    let facts = bench.facts(seed, PATTERNS[(seed / 3 % 3) as usize]);
    let mut witness = Memory(Record::new(facts.clone()));
    bench.cut(&facts.plan, &mut witness, &moment(seed, &facts.plan));
    let document = bench.verify(&witness.0);
    assert_eq!((document.blocks_read, document.blocks_unreached), (facts.plan.blocks, 0));
    document
}

#[test]
fn an_honest_drive_loses_nothing_wherever_its_power_is_cut() {
    let models = [
        "consumer-nvme-ssd",
        "consumer-nvme-ssd?behaviour.damage.unreadable=0.2",
        "consumer-sata-ssd",
        "plp-nvme-ssd",
        "nearline-4tb",
        "consumer-nvme-ssd?geometry.logical_block=4096&geometry.physical_block=4096&geometry.atomic_unit=4096",
    ];
    let first = from_environment("PLUMB_SEED", 1);
    let cycles = from_environment("PLUMB_CUTS", 72).div_ceil(models.len() as u64);
    for model in models {
        let mut required = 0;
        for seed in first..first + cycles {
            let document = cycle(model, seed);
            assert!(!document.has_loss(), "{model}, seed {seed}: {document:#?}");
            required += document.required;
        }
        assert!(required > cycles, "{model}: next to nothing was tested");
    }
}

#[test]
fn each_liar_is_found_and_told_by_its_kind() {
    let first = from_environment("PLUMB_SEED", 1);
    let in_4k = "geometry.logical_block=4096&geometry.physical_block=4096&geometry.atomic_unit=4096";
    let liars = [
        ("liar".to_owned(), vec![Class::Lost, Class::Unserialised, Class::Torn]),
        (
            "consumer-nvme-ssd?behaviour.ignores_flush=last-4".to_owned(),
            vec![Class::Lost, Class::Unserialised],
        ),
        ("consumer-nvme-ssd?behaviour.ignores_fua=true".to_owned(), vec![Class::Unserialised]),
        ("consumer-nvme-ssd?behaviour.driver_drops_flush=true".to_owned(), vec![Class::Unserialised]),
        (
            "enterprise-sata-ssd?behaviour.battery_dead=true&behaviour.ignores_flush=always".to_owned(),
            vec![Class::Lost],
        ),
        (format!("consumer-nvme-ssd?{in_4k}&behaviour.damage.torn=1"), vec![Class::Torn]),
        (format!("consumer-nvme-ssd?{in_4k}&behaviour.damage.shorn=1"), vec![Class::Torn]),
        ("consumer-nvme-ssd?behaviour.damage.misdirected=0.2".to_owned(), vec![Class::Misdirected]),
        ("liar?behaviour.damage.unserialized=1".to_owned(), vec![Class::Stale, Class::Unserialised]),
    ];
    for (model, expected) in liars {
        let mut found = BTreeSet::new();
        let mut cycles = 0;
        while cycles < LIAR_CYCLES_MAX && !expected.iter().all(|class| found.contains(class)) {
            found.extend(cycle(&model, first + cycles).classes.iter().map(|count| count.class));
            cycles += 1;
        }
        let is_found = expected.iter().all(|class| found.contains(class));
        assert!(
            is_found,
            "{model}: {found:?} within {cycles} cycles from seed {first}, expected {expected:?}"
        );
    }
}

/// Returns an honest drive that was written and not cut, with the record of its run.
fn written(seed: u64) -> (Bench, Record) {
    let bench = Bench::new("consumer-nvme-ssd", seed);
    let facts = bench.facts(seed, (5, 25));
    let mut witness = Memory(Record::new(facts.clone()));
    let until = Until { writes: Some(facts.plan.fills() + 300), time: None };
    let stop = AtomicBool::new(false);
    write(&facts.plan, &*bench.handle.device(), &bench.time, &mut witness, until, &stop).unwrap();
    (bench, witness.0)
}

#[test]
fn a_run_says_whether_its_writes_or_its_time_were_over() {
    for (writes, time, because) in [
        (Some(10), None, "it had written all that it was told to write"),
        (None, Some(Nanos(0)), "its time was over"),
    ] {
        let bench = Bench::new("consumer-nvme-ssd", 1);
        let facts = bench.facts(1, (5, 25));
        let mut witness = Memory(Record::new(facts.clone()));
        let (until, stop) = (Until { writes, time }, AtomicBool::new(false));
        let ended = write(&facts.plan, &*bench.handle.device(), &bench.time, &mut witness, until, &stop);
        assert_eq!(ended.unwrap().because, because);
    }
}

#[test]
fn whatever_a_witness_missed_is_not_required() {
    let (bench, record) = written(3);
    assert!(record.batches.len() > 50);
    for known in (0..record.batches.len()).step_by(7) {
        let batches = record.batches[..known].to_vec();
        let document = bench.verify(&Record { batches, ..record.clone() });
        assert!(!document.has_loss(), "{known} batches: {document:#?}");
    }
}

#[test]
fn a_witness_that_was_killed_at_any_byte_goes_on_where_it_was_and_nothing_confirmed_is_gone() {
    let (_, record) = written(5);
    let whole = tempfile::tempdir().unwrap();
    let mut session = Session::begin(whole.path(), &record.facts).unwrap();
    let few = &record.batches[..12];
    few.iter().for_each(|batch| session.record(batch).unwrap());
    let path = |directory: &Path, number: u32| {
        directory.join(format!("{:06}-{}.log", number + 1, record.facts.plan.name()))
    };
    let bytes = fs::read(path(whole.path(), 0)).unwrap();
    for cut in (0..=bytes.len()).step_by(11) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(path(directory.path(), 0), &bytes[..cut]).unwrap();
        let mut session = Session::begin(directory.path(), &record.facts).unwrap();
        let confirmed = session.confirmed();
        // Half of the batches sent again are already recorded.
        few[confirmed as usize / 2..].iter().for_each(|batch| session.record(batch).unwrap());
        let found = Record::newest(directory.path(), "drive", None).unwrap();
        assert_eq!(found.batches, few, "cut at byte {cut} of {}", bytes.len());
        assert!(session.record(&Batch { number: 99, ..few[0].clone() }).is_err(), "a gap was taken");
    }
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    fs::write(path(whole.path(), 0), &damaged).unwrap();
    assert!(is_damaged(&Record::newest(whole.path(), "drive", None).unwrap_err()));
    // Two sessions, of which the first has lost a confirmed line.
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    fs::write(path(whole.path(), 0), lines[..5].concat()).unwrap();
    fs::write(path(whole.path(), 1), [lines[0], lines[7]].concat()).unwrap();
    assert!(is_damaged(&Record::newest(whole.path(), "drive", None).unwrap_err()));
}

/// Serves a witness whose connections break in the middle of a message, each after some more bytes.
fn unreliable(directory: &Path, socket: &Path) {
    let listener = UnixListener::bind(socket).unwrap();
    let directory = directory.to_owned();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let stream = stream.unwrap();
            serve(&directory, (&stream).take(2_000 + 700 * number as u64), &stream, &mut |_| ())
                .unwrap_or_default();
        }
    });
}

#[test]
fn a_connection_that_breaks_again_and_again_costs_neither_truth_nor_a_loss() {
    for (model, has_loss) in [("consumer-nvme-ssd", false), ("liar", true)] {
        let mut losses = 0;
        for seed in 1..=4 {
            let directory = tempfile::tempdir().unwrap();
            let (socket, records) = (directory.path().join("socket"), directory.path().join("records"));
            unreliable(&records, &socket);
            let bench = Bench::new(model, seed);
            let facts = bench.facts(seed, (6, 0));
            let (patience, clock, stop) = (Nanos::secs(60), RealClock::start(), AtomicBool::new(false));
            let peer = Peer::Unix(socket);
            let mut link = Link::connect(peer, Some(facts.clone()), patience, &clock, &stop).unwrap();
            bench.cut(&facts.plan, &mut link, &format!("flush={}", 12 + seed * 5));
            let record = Record::newest(&records, "drive", None).unwrap();
            assert!(record.confirmed() > 3 && record.batches.last().unwrap().ended.is_some());
            assert!(fs::read_dir(&records).unwrap().count() > 1, "the connection never broke");
            losses += u64::from(bench.verify(&record).has_loss());
        }
        assert_eq!(losses > 0, has_loss, "{model}: {losses}");
    }
}

#[test]
fn a_witness_that_never_comes_back_ends_the_run_and_what_it_knew_stands() {
    let directory = tempfile::tempdir().unwrap();
    let records = directory.path().join("records");
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let for_witness = records.clone();
    let witness = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        serve(&for_witness, (&stream).take(6_000), &stream, &mut |_| ()).unwrap_or_default();
    });
    let bench = Bench::new("consumer-nvme-ssd", 2);
    let facts = bench.facts(2, (0, 100));
    let (peer, stop) = (Peer::Unix(socket), AtomicBool::new(false));
    let mut link = Link::connect(peer, Some(facts.clone()), Nanos::ZERO, &bench.time, &stop).unwrap();
    let device = bench.handle.device();
    let error = write(&facts.plan, &*device, &bench.time, &mut link, Until::default(), &stop).unwrap_err();
    witness.join().unwrap();
    assert!(error.to_string().contains("without an answer"), "{error}");
    let document = bench.verify(&Record::newest(&records, "drive", None).unwrap());
    assert!(!document.has_loss() && document.acknowledged > 0, "{document:#?}");
}

#[test]
fn a_record_that_is_not_of_the_newest_run_on_the_drive_makes_no_loss() {
    let began = |seconds: u64| (seconds << 32) | 7;
    let bench = Bench::new("consumer-nvme-ssd", 1);
    let stop = AtomicBool::new(false);
    let mut runs = [1_700_000_000, 1_700_000_900].map(|seconds| {
        let facts = bench.facts(began(seconds), (5, 25));
        let mut witness = Memory(Record::new(facts.clone()));
        let until = Until { writes: Some(facts.plan.fills() + 100), time: None };
        write(&facts.plan, &*bench.handle.device(), &bench.time, &mut witness, until, &stop).unwrap();
        witness.0
    });
    let device = bench.handle.device();
    let error = verify(&runs[0], &*device, None, &stop).unwrap_err();
    assert!(error.to_string().contains("began after"), "{error}");
    // In the opposite order the drive has returned to an earlier run, which is a loss.
    runs.reverse();
    runs[1].facts.plan.seed = began(1_800_000_000);
    assert!(bench.verify(&runs[1]).has_loss());
    assert!(!bench.verify(&runs[0]).has_loss());
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let (bench, record) = written(7);
    let directory = tempfile::tempdir().unwrap();
    let answer = |asked: &[u8]| {
        let mut said = Vec::new();
        serve(directory.path(), asked, &mut said, &mut |_| ()).unwrap_or_default();
        said
    };
    let framed = |message: Message| {
        let mut frame = Vec::new();
        send(&mut frame, &message).unwrap();
        frame
    };
    for (asked, expected) in [
        (
            b"no message\n".to_vec(),
            "talk to the writer: it does not speak plumb's protocol: `no message` came",
        ),
        (b"\0\0\0\x0b{\"dance\":1}".to_vec(), "talk to the writer: it sent a message that this version"),
        (framed(Message::Batch(record.batches[0].clone())), "no run was begun"),
        (framed(Message::Confirmed(1)), "no run was begun"),
        (framed(Message::Fetch { target: "drive".to_owned(), identity: None }), "has no run on drive"),
    ] {
        let said = answer(&asked);
        let said = Decoder::default().receive::<Message>(&mut &said[..]).unwrap();
        assert!(matches!(&said, Message::Refused(why) if why.contains(expected)), "{asked:?}: {said:?}");
    }
    // A writer that disconnects within a message connects again, and is not refused.
    let mut said = Vec::new();
    let torn = serve(directory.path(), &b"\0\0\0\x0b{"[..], &mut said, &mut |_| ()).unwrap_err();
    assert!(torn.to_string().ends_with("within a message, of which 5 bytes had arrived"), "{torn}");
    assert!(said.is_empty(), "{said:?}");
    // Another run with the same name.
    Session::begin(directory.path(), &record.facts).unwrap();
    let other = RunFacts { target: "other".to_owned(), ..record.facts.clone() };
    let error = Session::begin(directory.path(), &other).unwrap_err();
    assert!(error.to_string().contains("there is another run"), "{error}");
    // Another drive, and impossible events.
    let device = bench.handle.device();
    let stop = AtomicBool::new(false);
    let identity = verify(&record, &*device, Some("S123"), &stop).unwrap_err();
    assert!(identity.to_string().contains("S123"), "{identity}");
    let at = plumb_block::Nanos::ZERO;
    for event in [
        Event::Written { write: 7, next: 7, at },
        Event::Written { write: 1 << 40, next: u64::MAX, at },
        Event::Flushed { covers: 3, next: 3, at },
    ] {
        let batch = Batch { number: 1, lease: u64::MAX, events: vec![event], ended: None };
        let hostile = Record { batches: vec![batch], ..record.clone() };
        let error = verify(&hostile, &*device, None, &stop).unwrap_err();
        assert!(is_damaged(&error), "{event:?}: {error}");
    }
}

#[test]
fn whatever_answers_in_place_of_a_witness_is_named() {
    let (clock, stop) = (RealClock::start(), AtomicBool::new(false));
    for (command, expected) in [
        (
            "echo Welcome",
            "it does not speak plumb's protocol: `Welcome` came, expected the length of a message",
        ),
        ("printf '\\000\\000\\000\\003{1}'", "it sent a message that this version does not know"),
        ("printf '\\000\\000\\000\\003{'", "the connection ended within a message, of which 5 bytes"),
        ("true", "the connection ended"),
    ] {
        let facts = Bench::new("consumer-nvme-ssd", 2).facts(2, (0, 100));
        let peer = Peer::Command(format!("dd bs=64k count=1 of=/dev/null status=none; {command}"));
        let connected = Link::connect(peer, Some(facts), Nanos::ZERO, &clock, &stop);
        let error = connected.err().unwrap().to_string();
        let expected = format!("no witness answers at the other end: {expected}");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn a_stop_ends_the_wait_for_a_witness_that_is_silent() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let _silent = UnixListener::bind(&socket).unwrap();
    let facts = Bench::new("consumer-nvme-ssd", 2).facts(2, (0, 100));
    let (clock, stop) = (RealClock::start(), AtomicBool::new(true));
    let connected = Link::connect(Peer::Unix(socket), Some(facts), Nanos::ZERO, &clock, &stop);
    let error = connected.err().unwrap().to_string();
    assert!(error.ends_with("operation interrupted"), "{error}");
}

#[test]
fn each_way_to_be_wrong_has_its_class() {
    // Two durable writes overlap block 0 of this plan. Its contents are replaced by the test.
    let (_, record) = written(11);
    let plan = &record.facts.plan;
    let last = (plan.fills()..plan.fills() + 290)
        .rev()
        .find(|write| {
            (0..*write).filter(|other| plan.write(*other).0.overlaps(plan.write(*write).0)).count() > 3
        })
        .unwrap();
    let lba = plan.write(last).0.lba;
    let older = (0..last).filter(|write| plan.write(*write).0.overlaps(plumb_block::LbaRange::new(lba, 1)));
    let older: Vec<u64> = older.collect();
    let block = |seed: u64, lba: plumb_block::Lba, generation: u64| {
        let mut bytes = vec![0; 512];
        plumb_block::Pattern { seed, lba, generation }.fill(512, &mut bytes);
        bytes
    };
    let mut torn = block(plan.seed, lba, last);
    torn[256..].copy_from_slice(&block(plan.seed, lba, 0)[256..]);
    let mut flipped = block(plan.seed, lba, last);
    flipped[300] ^= 4;
    for (bytes, expected) in [
        (block(plan.seed, lba, older[0]), Class::Torn),
        (block(plan.seed, plumb_block::Lba(lba.0 + 100), last), Class::Misdirected),
        (torn, Class::Torn),
        (flipped, Class::Corrupt),
        (vec![7; 512], Class::Corrupt),
    ] {
        let mut ledger = plumb_witness::ledger::Ledger::from_record(&record).unwrap();
        plumb_load::ReadBack::check(&mut ledger, plumb_block::LbaRange::new(lba, 1), &bytes);
        let document = ledger.into_document();
        let classes: Vec<Class> = document.classes.iter().map(|count| count.class).collect();
        assert_eq!(classes, [expected], "{document:#?}");
    }
}
