//! Rates, bursts and ends of jobs.

use plumb_block::Nanos;
use plumb_workload::{Amount, Arrival, BlockSizes, BlockSplit, Burst, Rate, Stop};

use super::rw::Rw;
use super::targets::Extent;
use crate::Error;
use crate::fio::options::Options;
use crate::fio::value::{self, Three};

const SECOND: Nanos = Nanos::secs(1);

/// Returns the limits of the clones that share one workload.
pub(super) fn stop(
    options: &Options<'_>,
    extent: &Extent,
    sharing: u32,
    targets: usize,
) -> Result<Stop, Error> {
    let runtime = options.time("runtime", SECOND)?.filter(|runtime| *runtime > Nanos::ZERO);
    let mut time_based = options.truth("time_based", false)?;
    if extent.appends {
        options.note_unused(&["time_based", "loops"], "file_append moves its size once, as in fio");
        time_based = false;
    }
    // fio 3.33 counts number_ios in each loop (exceeds_number_ios in backend.c).
    let loops = options.whole("loops", 1..=u64::MAX)?.unwrap_or(1);
    let operations = options.whole("number_ios", 1..=u64::MAX)?.map(|each| each.saturating_mul(loops));
    if time_based && runtime.is_none() {
        return Err(options.error("time_based", "has no runtime to go by").remedy("give runtime"));
    }
    if operations.is_some() && targets > 1 {
        return options.refuse(
            "number_ios",
            "counts over several files, which each count their own here",
            "give each file a job of its own",
        );
    }
    if time_based {
        options.note_unused(&["io_size", "loops"], "time_based goes on for the whole runtime");
    }
    let all = |each: u64| each.saturating_mul(u64::from(sharing));
    let bytes = extent.io_bytes.filter(|_| !time_based);
    if bytes.is_none() && !time_based {
        match (runtime, operations) {
            (None, None) => {
                let place = options.section.place.clone();
                return Err(
                    Error::new(place, "the job has no end").remedy("give size, or runtime with time_based")
                );
            }
            (Some(_), _) => options.note(
                "without size the job runs for its whole runtime: the size of its target \
                                          is not known",
            ),
            (None, Some(_)) => {}
        }
    }
    Ok(Stop { duration: runtime, operations: operations.map(all), bytes: bytes.map(all) })
}

/// Returns the rate of one clone, and the share of writes that the rates of a mix imply.
pub(super) fn rate(options: &Options<'_>, rw: &Rw, blocks: &BlockSizes) -> Result<(Rate, Option<u8>), Error> {
    let bytes = options.bytes_three("rate")?;
    let iops =
        options.parsed("rate_iops", |text| value::three(text, |part| options.counted("rate_iops", part)))?;
    let process = options.choice("rate_process", &["linear", "poisson"])?;
    let arrival = if process == Some("poisson") { Arrival::Poisson } else { Arrival::Fixed };
    let (name, three) = match (bytes, iops) {
        (Some(_), Some(_)) => {
            return Err(options.error("rate_iops", "rate is given too").remedy("keep one of them"));
        }
        (Some(bytes), None) => ("rate", bytes),
        (None, Some(iops)) => ("rate_iops", iops),
        (None, None) => {
            if process.is_some() {
                options.note("rate_process has no effect: no rate is given");
            }
            return Ok((Rate::Unlimited, None));
        }
    };
    let Some((per_second, writes)) = of_directions(options, name, three, rw)? else {
        return Ok((Rate::Unlimited, None));
    };
    let amount = if name == "rate" { Amount::BytesPerSecond(per_second) } else { Amount::Iops(per_second) };
    let writes = writes.map(|share| match name {
        "rate" => by_operations(share, blocks),
        _ => share,
    });
    Ok((Rate::Scheduled { amount, arrival }, writes.map(|share| (share * 100.0).round() as u8)))
}

/// Returns the combined rate of the directions in use, and the share of writes in a mix.
fn of_directions(
    options: &Options<'_>,
    name: &'static str,
    three: Three<u64>,
    rw: &Rw,
) -> Result<Option<(f64, Option<f64>)>, Error> {
    let three = [three.read, three.write, three.trim].map(|rate| rate.filter(|rate| *rate > 0));
    let [read, write, trim] = three.map(|rate| rate.map(|rate| rate as f64));
    Ok(match (rw.reads, rw.writes) {
        (true, true) => match (read, write) {
            (Some(read), Some(write)) => {
                let (r, w) = (f64::from(100 - rw.write_percent), f64::from(rw.write_percent));
                if r == 0.0 || w == 0.0 {
                    return Ok(Some((if r == 0.0 { write } else { read }, None)));
                }
                Some((read + write, Some(write / (read + write))))
            }
            (None, None) => None,
            _ => {
                return options.refuse(
                    name,
                    "limits one direction of a mix, and there is one schedule for both",
                    "limit both, or make two jobs",
                );
            }
        },
        (true, false) => read.map(|rate| (rate, None)),
        (false, true) => write.map(|rate| (rate, None)),
        (false, false) => trim.map(|rate| (rate, None)),
    })
}

/// Converts the share of writes from bytes to operations.
fn by_operations(share: f64, blocks: &BlockSizes) -> f64 {
    let mean = |split: &BlockSplit| {
        split.0.iter().map(|(block, percent)| block.0 as f64 * f64::from(*percent) / 100.0).sum::<f64>()
    };
    let (writes, reads) = (share / mean(&blocks.write), (1.0 - share) / mean(&blocks.read));
    writes / (writes + reads)
}

/// Returns the rate of all clones together for each target, given that of one clone.
pub(super) fn together(rate: Rate, sharing: u32, targets: usize) -> Rate {
    let factor = f64::from(sharing) / targets.max(1) as f64;
    match rate {
        Rate::Unlimited => Rate::Unlimited,
        Rate::Scheduled { amount: Amount::Iops(iops), arrival } => {
            Rate::Scheduled { amount: Amount::Iops(iops * factor), arrival }
        }
        Rate::Scheduled { amount: Amount::BytesPerSecond(bytes), arrival } => {
            Rate::Scheduled { amount: Amount::BytesPerSecond(bytes * factor), arrival }
        }
    }
}

/// Returns the bursts, from the options for pauses.
pub(super) fn burst(options: &Options<'_>, targets: usize) -> Result<Option<Burst>, Error> {
    let pause = options.time("thinktime", Nanos::micros(1))?.filter(|pause| *pause > Nanos::ZERO);
    let operations = options.whole("thinktime_blocks", 1..=u64::from(u32::MAX))?.unwrap_or(1) as u32;
    let by_issue = options.choice("thinktime_blocks_type", &["complete", "issue"])? == Some("issue");
    if options.get("thinktime_spin").is_some() {
        options.note("thinktime_spin has no effect: pauses are slept, not spun");
    }
    let Some(pause) = pause else {
        if options.get("thinktime_blocks").is_some() {
            options.note("thinktime_blocks has no effect: no thinktime is given");
        }
        return Ok(None);
    };
    if targets > 1 {
        return options.refuse(
            "thinktime",
            "pauses over several files, which each pause on their own here",
            "give each file a job of its own",
        );
    }
    if !by_issue {
        options.note("thinktime counts from the start of the last operation of a burst, not from its end");
    }
    Ok(Some(Burst { operations, pause }))
}
