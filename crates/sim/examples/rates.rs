//! What a simulated command costs: `cargo run --release -p plumb-sim --example rates [MODEL | PERCENT | PAYLOAD |
//! SPAN]...`, where a number stands for the share of writes to look at alone, `pattern` and `bytes` for the payload, and
//! `64M`, `4096M` and `whole` for the span.
//!
//! Every command goes the whole way: submitted to a queue, through drive, timing and contents, and polled. The loop is
//! that of a load worker without the worker: 32 in flight, polls without waiting, the clock moved when nothing is
//! ready. Times are processor time of this thread, and of several rounds the least, as others may be on the machine.
//! Nothing is judged.

use std::error::Error;
use std::sync::Arc;

use plumb_block::{
    Bytes, Completion, Lba, LbaRange, Nanos, Op, Pattern, Payload, Pool, PoolShape, Queue, QueueOptions,
    Request, Tag, Time, VirtualClock, Wait,
};
use plumb_sim::Handle;
use plumb_sim::contents::Backing;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::model::{Kind, Model};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use rustix::time::{ClockId, clock_gettime};

type Outcome<T> = Result<T, Box<dyn Error>>;

const DEPTH: u32 = 32;
const LENGTH: Bytes = Bytes::kib(4);
const ROUNDS: u64 = 20;
/// Sixteen thousand pages, which caches hold, a million, which they do not, and the whole drive.
const SPANS: [Bytes; 3] = [Bytes::mib(64), Bytes::gib(4), WHOLE];
const WHOLE: Bytes = Bytes(u64::MAX);
/// As a load gives it, so that nothing waits for ever.
const ANSWER_WITHIN: Nanos = Nanos::secs(30);
const MODELS: [&str; 6] =
    ["null", "memory", "plp-nvme-ssd", "consumer-nvme-ssd", "ata-40gb", "he8-media-cache"];

/// What is asked of a drive.
#[derive(Debug, Clone, Copy)]
struct Case {
    span: Bytes,
    /// Of a hundred commands.
    writes: u64,
    has_bytes: bool,
}

impl Case {
    /// Whether no filter of any kind speaks against it.
    fn is_wanted(&self, filters: &[String]) -> bool {
        let words = [
            self.writes.to_string(),
            (if self.has_bytes { "bytes" } else { "pattern" }).to_owned(),
            label(self.span),
        ];
        words.iter().all(|word| {
            let mut alike = filters.iter().filter(|filter| kind(filter) == kind(word)).peekable();
            alike.peek().is_none() || alike.any(|filter| filter == word)
        })
    }
}

fn label(span: Bytes) -> String {
    if span == WHOLE { "whole".to_owned() } else { format!("{}M", span.0 >> 20) }
}

/// What a word filters: the share of writes, the span, the payload, or nothing, as it is a model.
fn kind(word: &str) -> Option<u8> {
    let is_number = |word: &str| word.parse::<u64>().is_ok();
    match word {
        "bytes" | "pattern" => Some(2),
        "whole" => Some(1),
        _ if is_number(word) => Some(0),
        _ => word.strip_suffix('M').filter(|number| is_number(number)).map(|_| 1),
    }
}

fn is_filter(word: &str) -> bool {
    kind(word).is_some()
}

fn main() -> Outcome<()> {
    let (filters, named): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| is_filter(word));
    let names = if named.is_empty() { MODELS.map(String::from).to_vec() } else { named };
    println!(
        "{:18} {:>7} {:>7} {:>8} {:>10} {:>12}",
        "model", "span", "writes", "payload", "ns/I/O", "I/O/s"
    );
    for name in names {
        let model = Model::named(&name)?;
        for span in SPANS {
            for (writes, has_bytes) in [(0, false), (100, false), (50, false), (0, true), (100, true)] {
                let case = Case { span, writes, has_bytes };
                if !case.is_wanted(&filters) {
                    continue;
                }
                let cost = nanoseconds(&model, case)?;
                let payload = if has_bytes { "4 KiB" } else { "pattern" };
                let (span, rate) = (label(span), 1e9 / cost);
                println!("{name:18} {span:>7} {writes:5} % {payload:>8} {cost:10.1} {rate:12.0}");
            }
        }
    }
    Ok(())
}

/// The processor time of this thread.
fn processor_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn nanoseconds(model: &Model, case: Case) -> Outcome<f64> {
    let clock = Arc::new(VirtualClock::new());
    let backing = if model.kind == Kind::Null { Backing::Nothing } else { Backing::Memory };
    let drive = Drive::new(model, DriveOptions { backing, ..DriveOptions::default() })?;
    let device = Handle::new(drive, Time::Virtual(Arc::clone(&clock))).device();
    let info = device.info();
    let pool = Pool::new(PoolShape { buffer: LENGTH, count: DEPTH * 2, alignment: Bytes(4096) })?;
    let queue = device.open_queue(QueueOptions { depth: DEPTH, pool: pool.clone() })?;
    let blocks = LENGTH.0 / info.logical_block.0;
    let chance = Xoshiro256PlusPlus::seed_from_u64(1);
    let pages = case.span.min(info.size).0 / LENGTH.0;
    let (now, completions) = (Nanos::ZERO, Vec::new());
    let mut host = Host { clock, queue, pool, chance, case, blocks, pages, count: 0, now, completions };
    let count = if case.has_bytes || model.kind == Kind::Hdd { 300_000 } else { 2_000_000 };
    // What the first commands make stays: the rounds after them are what a long run costs.
    host.run(count)?;
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = processor_ns();
        host.run(count / ROUNDS)?;
        least = least.min((processor_ns() - start) / (count / ROUNDS) as f64);
    }
    Ok(least)
}

/// A load worker in brief.
struct Host {
    clock: Arc<VirtualClock>,
    queue: Box<dyn Queue>,
    pool: Pool,
    chance: Xoshiro256PlusPlus,
    case: Case,
    /// To a command.
    blocks: u64,
    /// Over how many places of that length.
    pages: u64,
    count: u64,
    now: Nanos,
    completions: Vec<Completion>,
}

impl Host {
    fn run(&mut self, count: u64) -> Outcome<()> {
        let (mut to_submit, mut in_flight) = (count, 0);
        while to_submit > 0 || in_flight > 0 {
            while in_flight < DEPTH && to_submit > 0 {
                let request = self.request()?;
                self.queue.submit(request).map_err(|_| "the queue is full")?;
                in_flight += 1;
                to_submit -= 1;
            }
            let done = self.queue.poll(Wait::NONE, &mut self.completions)?;
            if !self.completions.iter().all(|completion| completion.outcome.is_done()) {
                return Err("a command failed".into());
            }
            self.completions.clear();
            in_flight -= done as u32;
            if done == 0 {
                self.now = self.clock.advance(Nanos(u64::MAX));
            }
        }
        Ok(())
    }

    fn request(&mut self) -> Outcome<Request> {
        self.count += 1;
        let draw = self.chance.next_u64();
        let page = (u128::from(draw) * u128::from(self.pages)) >> 64;
        let range = LbaRange::new(Lba(page as u64 * self.blocks), self.blocks);
        let tag = Tag(self.count);
        let is_write = draw % 100 < self.case.writes;
        let payload = match (is_write, self.case.has_bytes) {
            (false, false) => Payload::None,
            (false, true) => Payload::Into(self.pool.take(LENGTH).ok_or("no buffer is free")?),
            (true, false) => Payload::Pattern(Pattern { seed: 7, lba: range.lba, generation: self.count }),
            (true, true) => {
                let mut buffer = self.pool.take(LENGTH).ok_or("no buffer is free")?;
                buffer[..8].copy_from_slice(&self.count.to_le_bytes());
                Payload::Bytes(buffer.freeze())
            }
        };
        let op = if is_write { Op::Write { fua: false } } else { Op::Read };
        let deadline = Some(self.now.saturating_add(ANSWER_WITHIN));
        Ok(Request { tag, op, range, payload, deadline })
    }
}
