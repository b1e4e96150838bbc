//! A workload with the characteristics of an observation, as a scenario of plumb: sizes, mix, places, syncs,
//! and arrival times.
//!
//! Reads, writes and trims are separate jobs that run at the same time, each at its own rate, so that each
//! has the sizes, the places and the arrivals of its direction. If whole percents cannot represent the mean
//! size, rare sizes are a separate job; if a whole number of writes cannot represent the rate of flushes, two
//! jobs share the writes.
//!
//! # Limitations
//! If only a few requests arrive at random, the workload has them at regular intervals instead: the last of a
//! few random arrivals would determine the length of the run, and with it every rate. Requests follow a
//! schedule: the workload does not represent a program that would send fewer requests on a slower device, or
//! more on a faster one. Places are drawn over the whole accessed range, even if parts of it were accessed
//! more often.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos};
use plumb_report::document::observation::{ObservedDevice, ObservedDirection, SizeCount};
use plumb_workload::{
    Access, Amount, Arrival, BlockSizes, BlockSplit, Burst, ByteRange, Durability, Job, Random, Rate, Runs,
    Scenario, Span, Stop, Workload,
};

/// Largest relative error of the mean size.
const MEAN_ERROR: f64 = 0.02;
/// Share of the requests from which on a size is common.
const COMMON: f64 = 0.05;
/// Largest number of sizes of one job; requests of other sizes are added to the nearest size.
const SIZES_MAX: usize = 16;
/// Largest number of times that rare sizes are split off into a job of their own.
const CLASSES_MAX: usize = 4;
/// Number of writes per flush from which on a whole number is accurate enough.
const WRITES_PER_FLUSH_WHOLE: f64 = 8.0;
/// Share below which an operation counts as absent, and above whose complement it counts as the only one.
const SOME: f64 = 0.05;
/// Largest queue depth of a workload.
const DEPTH_MAX: u64 = 1024;
/// Smallest number of random arrivals whose total time is within 10 % of the expected one, which is three
/// standard deviations: the deviation is the time divided by the root of their number.
const RANDOM_MIN: f64 = 1000.0;
/// Factor that shortens pauses a little, so that bursts keep up with the rate.
const PAUSE_SHARE: f64 = 0.9;
/// Scaled offsets are multiples of this number of bytes: no logical block is larger.
const GRID: u64 = 4096;

/// Default target of a workload: a simulated drive, so that a workload that is run as printed overwrites
/// nothing.
pub const DESTINATION: &str = "sim:nearline-4tb";

/// Target of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Name as typed.
    pub name: String,
    /// Size of the target.
    pub size: Bytes,
    /// True if the target supports trims.
    pub takes_trims: bool,
}

impl Destination {
    /// Returns the range of the target for the bytes from `from` until `until` of a device whose last used
    /// byte is before `end`. If `end` is beyond the target, all ranges of the device are scaled by one
    /// factor. The range has at least `longest` bytes.
    fn range(&self, from: u64, until: u64, end: u64, longest: u64) -> ByteRange {
        let whole = |bytes: u64| bytes - bytes % GRID;
        let scaled = |byte: u64| match end > self.size.0 {
            true => whole((u128::from(byte) * u128::from(self.size.0) / u128::from(end)) as u64),
            false => byte,
        };
        let length = (scaled(until) - scaled(from)).max(longest);
        let offset = scaled(from).min(whole(self.size.0.saturating_sub(length)));
        ByteRange { offset: Bytes(offset), length: Bytes(length) }
    }
}

/// Builds a workload for `target` that reproduces the observation of `device` over `seconds`; `None` if there
/// were no requests. The notes list the parts that are left out.
pub fn scenario(
    device: &ObservedDevice,
    seconds: f64,
    target: &Destination,
) -> Option<(Scenario, Vec<String>)> {
    let mut notes = Vec::new();
    let mut jobs = Vec::new();
    let end = device.directions().iter().filter_map(|(_, of)| of.until_byte).max().unwrap_or(0);
    if end > target.size.0 {
        notes.push(format!(
            "Offsets are scaled from {} to the {} of {}.",
            Bytes(end),
            target.size,
            target.name
        ));
    }
    for (name, direction) in device.directions() {
        if name == "trim" && !target.takes_trims && direction.ios > 0 {
            notes.push(format!("{} trims are left out: {} takes none.", direction.ios, target.name));
            continue;
        }
        // This is less than the number of requests if events were lost.
        let all = direction.sizes.iter().map(|size| size.ios).sum::<u64>().max(1) as f64;
        let (mut ios, mut flushed) = (0, 0);
        for class in classes(&direction.sizes, 0) {
            let of = Of { name, direction, seconds, share: class.ios as f64 / all, class: &class, end };
            if name == "write" {
                // The flushes are divided among the classes by their share of the requests.
                ios += class.ios;
                let due = (device.flushes.unwrap_or(0) as f64 * ios as f64 / all).round() as u64;
                let flushes = due - std::mem::replace(&mut flushed, due);
                let every = |fua: u64| NonZeroU32::new((direction.ios as f64 / fua as f64).round() as u32);
                let fua_every = device.fua_writes.filter(|fua| *fua > 0).and_then(every);
                let writes = (direction.ios as f64 * of.share).round() as u64;
                let (parts, missing) = flush_parts(writes, flushes);
                if missing > 0 {
                    notes.push(format!("{missing} flushes without a write before them are left out."));
                }
                for (share, flush_every) in parts {
                    let of = Of { share: of.share * share, ..of };
                    let durability = Durability { flush_every, fua_every, ..Durability::NEVER };
                    jobs.push(of.job(target, jobs.len(), durability));
                }
            } else {
                jobs.push(of.job(target, jobs.len(), Durability::default()));
            }
        }
    }
    (!jobs.is_empty()).then(|| (Scenario { spans: vec![Span::new(jobs)] }, notes))
}

/// Part of the requests of a direction.
#[derive(Clone, Copy)]
struct Of<'a> {
    name: &'static str,
    direction: &'a ObservedDirection,
    seconds: f64,
    /// Share of the direction's requests.
    share: f64,
    class: &'a Class,
    /// End of the highest range that was accessed on the device.
    end: u64,
}

impl Of<'_> {
    fn job(&self, target: &Destination, number: usize, durability: Durability) -> Job {
        let direction = self.direction;
        let (from, until) = (direction.from_byte.unwrap_or(0), direction.until_byte.unwrap_or(self.end));
        let split = BlockSplit(self.class.percents.clone());
        let longest = split.max().0;
        let range = target.range(from, until, self.end, longest);
        // The number of operations is fixed, not the time: the number of random arrivals in a time varies.
        let ios = direction.ios as f64 * self.share;
        let rate = ios / self.seconds;
        let (burst, arrival) = self.arrivals(ios, rate);
        let percent = |name: &str| if self.name == name { 100 } else { 0 };
        let workload = Workload {
            blocks: BlockSizes { read: split.clone(), write: split.clone(), trim: split },
            access: access(direction.sequential.unwrap_or(0.0)),
            write_percent: percent("write"),
            trim_percent: percent("trim"),
            depth: direction.depth_max.clamp(1, DEPTH_MAX) as u32,
            stop: Stop::operations((ios.round() as u64).max(1)),
            durability,
            rate: Rate::Scheduled { amount: Amount::Iops(rate), arrival },
            burst,
            ..Workload::over(range, Bytes(longest))
        };
        Job { name: format!("{}-{number}", self.name), ..Job::on(&target.name, workload) }
    }

    /// Returns bursts if there were any; otherwise the observed regularity, or regular arrivals if there are
    /// few requests.
    fn arrivals(&self, ios: f64, rate: f64) -> (Option<Burst>, Arrival) {
        let arrivals = self.direction.arrivals.unwrap_or_default();
        let burst = arrivals.bursts.and_then(|bursts| {
            let operations = (bursts.ios_mean * self.share).round() as u32;
            let pause = bursts.pause_mean.min(f64::from(operations) / rate) * PAUSE_SHARE;
            let pause = Nanos::from_secs_f64(pause);
            (operations >= 2 && pause > Nanos::ZERO).then_some(Burst { operations, pause })
        });
        let is_regular = arrivals.variation < 0.5 || ios < RANDOM_MIN || burst.is_some();
        (burst, if is_regular { Arrival::Fixed } else { Arrival::Poisson })
    }
}

fn access(sequential: f64) -> Access {
    let random_percent = ((1.0 - sequential) * 100.0).round().clamp(1.0, 99.0) as u8;
    match sequential {
        share if share < SOME => Access::RANDOM,
        share if share > 1.0 - SOME => Access::SEQUENTIAL,
        _ => {
            let Access::Random(random) = Access::RANDOM else { return Access::RANDOM };
            Access::Random(Random { runs: Runs::Geometric { random_percent }, ..random })
        }
    }
}

/// Sizes of one job, in whole percents.
#[derive(Debug, Clone, PartialEq)]
struct Class {
    ios: u64,
    percents: Vec<(Bytes, u8)>,
}

/// Splits sizes so that whole percents represent the mean of each part.
fn classes(sizes: &[SizeCount], depth: usize) -> Vec<Class> {
    let ios: u64 = sizes.iter().map(|size| size.ios).sum();
    if ios == 0 {
        return Vec::new();
    }
    let mean = sizes.iter().map(|size| size.bytes as f64 * size.ios as f64).sum::<f64>() / ios as f64;
    let percents = percents(sizes, ios);
    let held =
        percents.iter().map(|(bytes, percent)| bytes.0 as f64 * f64::from(*percent) / 100.0).sum::<f64>();
    let (common, rare): (Vec<SizeCount>, Vec<SizeCount>) =
        sizes.iter().partition(|size| size.ios as f64 >= COMMON * ios as f64);
    let is_near = (held / mean - 1.0).abs() <= MEAN_ERROR;
    if is_near || common.is_empty() || rare.is_empty() || depth >= CLASSES_MAX {
        return vec![Class { ios, percents }];
    }
    let mut all = classes(&common, depth + 1);
    all.extend(classes(&rare, depth + 1));
    all
}

/// Returns the most common sizes with whole percents that add up to 100, by the method of largest remainders;
/// other sizes are added to the nearest one.
fn percents(sizes: &[SizeCount], ios: u64) -> Vec<(Bytes, u8)> {
    let mut kept: Vec<SizeCount> = sizes.to_vec();
    kept.sort_by_key(|size| std::cmp::Reverse(size.ios));
    let others = kept.split_off(kept.len().min(SIZES_MAX));
    for other in others {
        if let Some(nearest) = kept.iter_mut().min_by_key(|size| size.bytes.abs_diff(other.bytes)) {
            nearest.ios += other.ios;
        }
    }
    let mut shares: Vec<(u64, u64, u64)> =
        kept.iter().map(|size| (size.bytes, size.ios * 100 / ios, size.ios * 100 % ios)).collect();
    let left = 100_u64.saturating_sub(shares.iter().map(|(_, percent, _)| percent).sum());
    shares.sort_by_key(|(.., rest)| std::cmp::Reverse(*rest));
    shares.iter_mut().take(left as usize).for_each(|(_, percent, _)| *percent += 1);
    let percents = shares.into_iter().filter(|(_, percent, _)| *percent > 0);
    let mut percents: Vec<(Bytes, u8)> =
        percents.map(|(bytes, percent, _)| (Bytes(bytes), percent as u8)).collect();
    percents.sort_unstable();
    percents
}

/// Splits `writes` into parts with a flush after a whole number of writes each, together `flushes` flushes;
/// also returns the number of flushes left out.
fn flush_parts(writes: u64, flushes: u64) -> (Vec<(f64, Option<NonZeroU32>)>, u64) {
    if flushes == 0 {
        return (vec![(1.0, None)], 0);
    }
    let each = writes as f64 / flushes as f64;
    let fewer = each.floor().max(1.0);
    let missing = if each < 1.0 { flushes - writes } else { 0 };
    let whole = |writes: f64| NonZeroU32::new(writes as u32);
    // Share of the writes with the smaller of two whole numbers of writes per flush.
    let share = (1.0 / each - 1.0 / (fewer + 1.0)) * fewer * (fewer + 1.0);
    let parts = match share {
        _ if !(1.0..WRITES_PER_FLUSH_WHOLE).contains(&each) => vec![(1.0, whole(each.round().max(1.0)))],
        share if share > 1.0 - SOME / 2.0 => vec![(1.0, whole(fewer))],
        share if share < SOME / 2.0 => vec![(1.0, whole(fewer + 1.0))],
        share => vec![(share, whole(fewer)), (1.0 - share, whole(fewer + 1.0))],
    };
    (parts, missing)
}

#[cfg(test)]
mod tests {
    use plumb_report::document::observation::{Arrivals, Bursts};

    use super::*;

    fn to(name: &str) -> Destination {
        Destination { name: name.to_owned(), size: Bytes(1 << 40), takes_trims: true }
    }

    #[test]
    fn offsets_are_scaled_to_a_smaller_target_and_trims_go_where_it_takes_none() {
        let read = direction(&[(65536, 1000)]);
        let write =
            ObservedDirection { from_byte: Some(0), until_byte: Some(4 << 30), ..direction(&[(4096, 1000)]) };
        let trim = direction(&[(1 << 20, 3)]);
        let device = ObservedDevice { read, write, trim, ..ObservedDevice::default() };
        let small = Destination { name: "sim:x".to_owned(), size: Bytes(1 << 30), takes_trims: false };
        let (scenario, notes) = scenario(&device, 10.0, &small).unwrap();
        scenario.validate().unwrap();
        let ranges: Vec<(u64, u64)> = scenario.spans[0]
            .jobs
            .iter()
            .map(|job| (job.workload.range.offset.0, job.workload.range.length.0))
            .collect();
        // Both a quarter of what they were.
        assert_eq!(ranges, [(1 << 18, (1 << 28) - (1 << 18)), (0, 1 << 30)]);
        assert!(notes[0].contains("scaled from 4 GiB to the 1 GiB"), "{notes:?}");
        assert!(notes[1].starts_with("3 trims are left out"), "{notes:?}");
    }

    #[test]
    fn a_range_at_the_end_of_a_small_target_holds_the_longest_request() {
        let write = ObservedDirection {
            from_byte: Some((1 << 40) - (1 << 20)),
            until_byte: Some(1 << 40),
            ..direction(&[(1 << 20, 10)])
        };
        let device = ObservedDevice { write, ..ObservedDevice::default() };
        let small = Destination { name: "sim:x".to_owned(), size: Bytes(8 << 20), takes_trims: false };
        let (scenario, _) = scenario(&device, 10.0, &small).unwrap();
        let workload = &scenario.spans[0].jobs[0].workload;
        workload.within(small.size).unwrap();
        assert_eq!(workload.range, ByteRange { offset: Bytes(7 << 20), length: Bytes(1 << 20) });
    }

    fn direction(sizes: &[(u64, u64)]) -> ObservedDirection {
        let sizes: Vec<SizeCount> =
            sizes.iter().map(|(bytes, ios)| SizeCount { bytes: *bytes, ios: *ios }).collect();
        ObservedDirection {
            ios: sizes.iter().map(|size| size.ios).sum(),
            bytes: sizes.iter().map(|size| size.bytes * size.ios).sum(),
            sizes,
            sequential: Some(0.0),
            from_byte: Some(1 << 20),
            until_byte: Some(1 << 30),
            depth_max: 4,
            ..ObservedDirection::default()
        }
    }

    /// Returns the totals of the jobs: operations, bytes and flushes.
    fn done(scenario: &Scenario) -> (f64, f64, f64) {
        let jobs = scenario.jobs().map(|job| &job.workload);
        jobs.fold((0.0, 0.0, 0.0), |(ios, bytes, flushes), of| {
            let Rate::Scheduled { amount: Amount::Iops(rate), .. } = of.rate else { panic!("a rate is set") };
            let count = of.stop.operations.unwrap() as f64;
            assert!((count - rate * 10.0).abs() <= 1.0, "{count} operations at {rate} a second");
            let each = of.durability.flush_every.map_or(0.0, |every| count / f64::from(every.get()));
            (ios + count, bytes + count * of.block_mean() as f64, flushes + each)
        })
    }

    #[test]
    fn counts_sizes_and_flushes_are_those_that_were_seen() {
        let mixes: [&[(u64, u64)]; 4] = [
            &[(4096, 1000)],
            &[(4096, 9960), (1 << 20, 40)],
            &[(512, 333), (4096, 333), (8192, 334), (65536, 7)],
            &[(4096, 3), (8192, 1)],
        ];
        for mix in mixes {
            let write = direction(mix);
            for flushes in [0, 1, write.ios.min(7), write.ios / 2, write.ios * 2 / 3, write.ios] {
                let device = ObservedDevice {
                    write: write.clone(),
                    flushes: Some(flushes),
                    ..ObservedDevice::default()
                };
                let (scenario, notes) = scenario(&device, 10.0, &to("sim:x")).unwrap();
                scenario.validate().unwrap();
                let (ios, bytes, flushed) = done(&scenario);
                let near = |one: f64, other: u64| (one - other as f64).abs() <= 0.07 * other as f64 + 1e-6;
                assert!(near(ios, write.ios) && near(bytes, write.bytes), "{mix:?}: {ios} {bytes}");
                assert!(
                    flushes < 2 || near(flushed, flushes),
                    "{mix:?}: {flushed} flushes instead of {flushes}"
                );
                assert!(notes.is_empty());
            }
        }
    }

    #[test]
    fn flushes_that_follow_no_write_are_told() {
        let device = ObservedDevice {
            write: direction(&[(4096, 10)]),
            flushes: Some(25),
            ..ObservedDevice::default()
        };
        let (_, notes) = scenario(&device, 1.0, &to("sim:x")).unwrap();
        assert!(notes[0].starts_with("15 flushes"), "{notes:?}");
        assert!(scenario(&ObservedDevice::default(), 1.0, &to("sim:x")).is_none(), "nothing was seen");
    }

    #[test]
    fn places_and_arrivals_are_those_that_were_seen() {
        let bursts = Bursts { count: 20, ios_mean: 50.0, pause_mean: 0.4 };
        let read = ObservedDirection {
            sequential: Some(0.7),
            arrivals: Some(Arrivals { variation: 5.0, bursts: Some(bursts) }),
            ..direction(&[(4096, 1000)])
        };
        let write = ObservedDirection {
            sequential: Some(0.99),
            arrivals: Some(Arrivals { variation: 1.0, bursts: None }),
            ..direction(&[(8192, 3000)])
        };
        let device = ObservedDevice { read, write, ..ObservedDevice::default() };
        let (scenario, _) = scenario(&device, 10.0, &to("/dev/x")).unwrap();
        scenario.validate().unwrap();
        let [read, write] = &scenario.spans[0].jobs[..] else { panic!("two jobs") };
        let (read, write) = (&read.workload, &write.workload);
        let Access::Random(Random { runs, .. }) = read.access else { panic!("{:?}", read.access) };
        assert_eq!(runs, Runs::Geometric { random_percent: 30 });
        assert_eq!(write.access, Access::SEQUENTIAL);
        assert_eq!((read.write_percent, write.write_percent, read.depth), (0, 100, 4));
        assert_eq!(read.burst, Some(Burst { operations: 50, pause: Nanos::millis(360) }));
        assert_eq!(write.rate, Rate::Scheduled { amount: Amount::Iops(300.0), arrival: Arrival::Poisson });
        assert_eq!(write.range, ByteRange { offset: Bytes(1 << 20), length: Bytes((1 << 30) - (1 << 20)) });
    }

    #[test]
    fn rare_requests_do_not_set_the_length_of_the_run() {
        let write = ObservedDirection {
            arrivals: Some(Arrivals { variation: 1.0, bursts: None }),
            ..direction(&[(4096, 1640), (1 << 20, 2)])
        };
        let device = ObservedDevice { write, flushes: Some(1640), ..ObservedDevice::default() };
        let (scenario, _) = scenario(&device, 14.0, &to("/dev/x")).unwrap();
        let [common, rare] = &scenario.spans[0].jobs[..] else { panic!("{scenario:#?}") };
        let of = |job: &Job| (job.workload.stop.operations.unwrap(), job.workload.rate);
        let (count, Rate::Scheduled { arrival, .. }) = of(common) else { panic!("{common:?}") };
        assert_eq!((count, arrival), (1640, Arrival::Poisson));
        let (count, Rate::Scheduled { amount: Amount::Iops(rate), arrival }) = of(rare) else {
            panic!("{rare:?}")
        };
        assert_eq!((count, arrival), (2, Arrival::Fixed));
        assert!(count as f64 / rate <= 14.1, "{rate}");
    }
}
