//! Offsets of operations: sequential with a stride, or random with a distribution.

use plumb_block::Bytes;
use plumb_workload::{Access, BlockSizes, Distribution, Random, Runs, Sequential, Walk, Zone};

use super::rw::Rw;
use crate::Error;
use crate::fio::options::Options;
use crate::fio::split;
use crate::fio::value;

/// fio's default theta.
const ZIPF: f64 = 1.1;
/// fio's default power.
const PARETO: f64 = 0.2;

/// Returns the access.
pub(super) fn from_options(options: &Options<'_>, rw: &Rw, blocks: &BlockSizes) -> Result<Access, Error> {
    if options.choice("rw_sequencer", &["sequential", "identical"])? == Some("identical") {
        return options.refuse(
            "rw_sequencer",
            "several operations at the same place are not supported",
            "leave it out: they continue from the drawn place",
        );
    }
    if let Some(name) = options.choice("random_generator", &["tausworthe", "lfsr", "tausworthe64"])? {
        options.note(format!("random_generator={name} has no effect: all draws come from xoshiro256++"));
    }
    let align = align(options, rw)?;
    if !rw.random {
        return sequential(options, rw, blocks);
    }
    let runs = runs(options, rw)?;
    if runs == Some(Runs::Fixed(0)) {
        options.note("percentage_random=0: nothing is drawn, operations are sequential");
        unused_without_draws(options)?;
        return Ok(Access::SEQUENTIAL);
    }
    let runs = runs.unwrap_or(Runs::Single);
    let distribution = distribution(options, runs)?;
    Ok(Access::Random(Random { align, distribution, runs }))
}

fn align(options: &Options<'_>, rw: &Rw) -> Result<Option<Bytes>, Error> {
    let Some(align) = options.bytes_three("ba")? else { return Ok(None) };
    if !rw.random {
        options.note("blockalign has no effect: only random offsets are aligned");
        return Ok(None);
    }
    let used: Vec<u64> = rw.used(align.read, align.write, align.trim).into_iter().flatten().collect();
    match used[..] {
        [] => Ok(None),
        [0, ..] => Err(options.error("ba", "is 0: expected at least 1")),
        [first, ref rest @ ..] if rest.iter().all(|other| *other == first) => Ok(Some(Bytes(first))),
        _ => Err(options.error("ba", "reads and writes cannot be aligned differently")),
    }
}

fn sequential(options: &Options<'_>, rw: &Rw, blocks: &BlockSizes) -> Result<Access, Error> {
    percentage(options)?;
    options.note_unused(&["percentage_random"], "the access is sequential");
    unused_without_draws(options)?;
    if rw.is_mixed() {
        options.note(
            "reads and writes of one job take turns on one walk through the range, where fio has a walk \
                      for each",
        );
    }
    let Some(modifier) = &rw.modifier else { return Ok(Access::SEQUENTIAL) };
    if modifier.starts_with('-') {
        return options.refuse(
            "rw",
            format!("has the stride {modifier}: walks backwards are not supported"),
            "walk forwards, or at random",
        );
    }
    let skip = value::bytes(modifier, options.base("rw"));
    let skip = skip.map_err(|problem| options.error("rw", format!("has the stride {problem}")))?;
    let used = rw.used(&blocks.read, &blocks.write, &blocks.trim);
    let mut lengths = used.iter().map(|split| split.only());
    let first = lengths.next().flatten();
    match first.filter(|first| lengths.all(|length| length == Some(*first))) {
        Some(block) => {
            let stride =
                block.0.checked_add(skip).ok_or_else(|| options.error("rw", "has too long a stride"))?;
            Ok(Access::Sequential(Sequential { stride: Some(Bytes(stride)), walk: Walk::Each }))
        }
        None => {
            Err(options.error("rw", "skips a distance, which needs one block size").remedy("give one bs"))
        }
    }
}

/// Notes options about random offsets that have no effect, after checking their values.
fn unused_without_draws(options: &Options<'_>) -> Result<(), Error> {
    named_distribution(options)?;
    let names = ["random_distribution", "norandommap", "softrandommap"];
    options.note_unused(&names, "the access is sequential");
    Ok(())
}

/// Returns the percentage of random operations of each direction.
fn percentage(options: &Options<'_>) -> Result<value::Three<u64>, Error> {
    let percent = options.parsed("percentage_random", |text| {
        value::three(text, |part| match options.counted("percentage_random", part)? {
            percent @ 0..=100 => Ok(percent),
            percent => Err(format!("is {percent}: expected 0 to 100")),
        })
    })?;
    Ok(percent.unwrap_or(value::Three::all(100)))
}

/// Returns the lengths of sequential runs: `None` if every operation is random, fixed runs of 0 if none is.
fn runs(options: &Options<'_>, rw: &Rw) -> Result<Option<Runs>, Error> {
    let percent = percentage(options)?;
    let used = rw.used(percent.read, percent.write, percent.trim);
    let mut used = used.into_iter().map(|percent| percent.unwrap_or(100));
    let percent = used.next().unwrap_or(100);
    if used.any(|other| other != percent) {
        return options.refuse(
            "percentage_random",
            "cannot differ between reads and writes",
            "give one share, or make a job of reads and one of writes",
        );
    }
    let fixed = match &rw.modifier {
        None => None,
        Some(count) => match count.parse::<u32>() {
            Ok(count @ 1..) => Some(count).filter(|count| *count > 1),
            _ => return Err(options.error("rw", format!("`{count}` is not a number of operations from 1"))),
        },
    };
    match (percent, fixed) {
        (100, None) => Ok(None),
        (100, Some(count)) => Ok(Some(Runs::Fixed(count))),
        (_, Some(_)) => Err(options.error("percentage_random", "cannot be combined with a run length in rw")),
        (0, None) => Ok(Some(Runs::Fixed(0))),
        (_, None) => {
            if rw.is_mixed() {
                options.note("percentage_random: a sequential run is all reads or all writes");
            }
            Ok(Some(Runs::Geometric { random_percent: percent as u8 }))
        }
    }
}

fn distribution(options: &Options<'_>, runs: Runs) -> Result<Distribution, Error> {
    let no_map = options.truth("norandommap", false)?;
    if options.truth("softrandommap", false)? {
        options.note("softrandommap has no effect: visiting every block once takes no memory here");
    }
    Ok(match named_distribution(options)? {
        Distribution::EachOnce if no_map => Distribution::Uniform,
        Distribution::EachOnce if runs != Runs::Single => {
            options.note(
                "operations that continue from a drawn place may write a block twice before others are \
                 touched: there is no map of random blocks for them",
            );
            Distribution::Uniform
        }
        distribution => distribution,
    })
}

/// Returns the distribution of `random_distribution`; without it each block is visited once.
fn named_distribution(options: &Options<'_>) -> Result<Distribution, Error> {
    let text = options.text("random_distribution")?.unwrap_or("random");
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let wrong = |problem: String| options.error("random_distribution", format!("is {text}: {problem}"));
    Ok(match name {
        "random" => Distribution::EachOnce,
        "zipf" => Distribution::Zipf { theta: parameter(value, ZIPF).map_err(wrong)? },
        "pareto" => Distribution::Pareto { power: parameter(value, PARETO).map_err(wrong)? },
        "normal" | "gauss" => {
            let value = value.trim_end_matches('%');
            if value.is_empty() {
                return Err(wrong("it needs a deviation".into()).remedy("random_distribution=normal:20"));
            }
            Distribution::Normal { deviation_percent: parameter(value, 0.0).map_err(wrong)? }
        }
        "zoned" => Distribution::Zoned(zones(value, split::zones_in_percent).map_err(wrong)?),
        "zoned_abs" => {
            let in_bytes = |text: &str| split::zones_in_bytes(text, options.base("random_distribution"));
            Distribution::Zoned(zones(value, in_bytes).map_err(wrong)?)
        }
        _ => return Err(wrong("expected random, zipf, pareto, normal, zoned or zoned_abs".into())),
    })
}

fn parameter(text: &str, default: f64) -> Result<f64, String> {
    match text {
        "" => Ok(default),
        text if text.contains(':') => {
            Err("a centre cannot be given: the likely places are spread over the range".into())
        }
        text => value::decimal(text),
    }
}

/// Returns the zones, which must be the same for every direction.
fn zones(text: &str, parse: impl Fn(&str) -> Result<Vec<Zone>, String>) -> Result<Vec<Zone>, String> {
    let zones = value::three(text, parse)?;
    let mut given = [zones.read, zones.write, zones.trim].into_iter().flatten();
    let first = given.next().unwrap_or_default();
    if given.any(|other| other != first) {
        return Err("the zones cannot differ between reads and writes".into());
    }
    Ok(first)
}
