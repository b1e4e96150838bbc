//! Lengths of operations: `bs`, `bssplit`, `bsrange`.

use plumb_block::Bytes;
use plumb_workload::{BlockSizes, BlockSplit};

use crate::Error;
use crate::fio::options::Options;
use crate::fio::split;
use crate::fio::value::{self, Three};

/// fio's default block size.
const DEFAULT: Bytes = Bytes::kib(4);

/// Returns the block sizes.
pub(super) fn from_options(options: &Options<'_>) -> Result<BlockSizes, Error> {
    let bs = options.bytes_three("bs")?.unwrap_or_default();
    let ranges = options.parsed("bsrange", |text| value::three(text, |part| range(part, options)))?;
    let splits = options.parsed("bssplit", |text| {
        value::three(text, |part| split::block_split(part, options.base("bssplit")))
    })?;
    let (ranges, splits) = (ranges.unwrap_or_default(), splits.unwrap_or_default());
    let one = |split: Option<BlockSplit>, range: Option<BlockSplit>, bs: Option<u64>| {
        split.or(range).unwrap_or_else(|| BlockSplit::one(bs.map_or(DEFAULT, Bytes)))
    };
    let Three { read, write, trim } = bs;
    if options.truth("bs_unaligned", false)? {
        return options.refuse(
            "bs_unaligned",
            "lengths that are not multiples of a sector are not drawn",
            "list them: bssplit=700/50:1300/50",
        );
    }
    Ok(BlockSizes {
        read: one(splits.read, ranges.read, read),
        write: one(splits.write, ranges.write, write),
        trim: one(splits.trim, ranges.trim, trim),
    })
}

fn range(text: &str, options: &Options<'_>) -> Result<BlockSplit, String> {
    let (min, max) =
        text.split_once('-').ok_or_else(|| format!("`{text}` is not a range: expected 1k-4k"))?;
    let base = options.base("bsrange");
    let (min, max) = (value::bytes(min, base)?, value::bytes(max, base)?);
    let split = split::block_range(min, max)?;
    if split.0.windows(2).any(|pair| pair[0].1 != pair[1].1) {
        options.note(format!(
            "bsrange {text} has {} lengths; plumb rounds their shares to whole percents, so they are not exactly equal",
            split.0.len()
        ));
    }
    Ok(split)
}
