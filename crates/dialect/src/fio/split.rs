//! Lists of shares: `bssplit` and zones.

use plumb_block::Bytes;
use plumb_workload::{BlockSplit, Zone, ZoneLength};

use super::value::{self, KbBase};

/// Parses `4k/60:64k/40`. Lengths without a share divide the remainder evenly.
///
/// # Errors
/// The expected form.
pub(super) fn block_split(text: &str, base: KbBase) -> Result<BlockSplit, String> {
    let mut parts = Vec::new();
    for part in text.split(':') {
        let (block, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = match percent.trim() {
            "" => None,
            percent => Some(share(percent)?),
        };
        parts.push((Bytes(value::bytes(block, base)?), percent));
    }
    let given: u32 = parts.iter().filter_map(|(_, percent)| *percent).map(u32::from).sum();
    let open = parts.iter().filter(|(_, percent)| percent.is_none()).count() as u32;
    if given > 100 || (given < 100 && open == 0) {
        return Err(format!("the shares add up to {given} %: expected 100"));
    }
    let mut rest = fair_shares(100 - given, open).into_iter();
    let filled = parts.into_iter().map(|(block, percent)| (block, percent.or_else(|| rest.next())));
    Ok(BlockSplit(filled.filter_map(|(block, percent)| Some((block, percent.filter(|p| *p > 0)?))).collect()))
}

/// Returns the lengths from `min` to `max` in steps of `min`, with equal shares (`bsrange`).
///
/// # Errors
/// Fails if there are more lengths than percents.
pub(super) fn block_range(min: u64, max: u64) -> Result<BlockSplit, String> {
    if min == 0 || max < min {
        return Err("expected two lengths, the shorter one first".into());
    }
    let count = max / min;
    if count > 100 {
        return Err(format!("it has {count} lengths: at most 100 are supported"));
    }
    let shares = fair_shares(100, count as u32);
    Ok(BlockSplit((1..=count).map(|nth| Bytes(min * nth)).zip(shares).collect()))
}

/// Divides `whole` percent among `count`; the first ones get the remainder.
fn fair_shares(whole: u32, count: u32) -> Vec<u8> {
    (0..count).map(|index| (whole / count + u32::from(index < whole % count)) as u8).collect()
}

fn share(text: &str) -> Result<u8, String> {
    match value::whole(text, KbBase::Compatible) {
        Ok(percent @ 0..=100) => Ok(percent as u8),
        _ => Err(format!("`{text}` is not a whole share from 0 to 100 %")),
    }
}

/// Parses `60/10:30/20:10/70`: 60 % of the operations to the first 10 % of the range, and so on.
///
/// # Errors
/// The expected form.
pub(super) fn zones_in_percent(text: &str) -> Result<Vec<Zone>, String> {
    let mut parts = Vec::new();
    for (io_percent, length) in pairs(text)? {
        let length = match length {
            "" => None,
            length => Some(value::decimal(length.trim_end_matches('%'))?),
        };
        parts.push((io_percent, length));
    }
    let given: f64 = parts.iter().filter_map(|(_, length)| *length).sum();
    let open = parts.iter().filter(|(_, length)| length.is_none()).count();
    if given > 100.0 || (given < 100.0 && open == 0) {
        return Err(format!("the zones add up to {given} % of the range: expected 100"));
    }
    let rest = if open == 0 { 0.0 } else { (100.0 - given) / open as f64 };
    let zones = parts
        .into_iter()
        .map(|(io_percent, length)| Zone { io_percent, length: ZoneLength::Percent(length.unwrap_or(rest)) });
    Ok(zones.filter(|zone| zone.length != ZoneLength::Percent(0.0)).collect())
}

/// Parses `60/20g:30/100g:10/500g`: 60 % of the operations to the first 20 GiB, and so on.
///
/// # Errors
/// The expected form.
pub(super) fn zones_in_bytes(text: &str, base: KbBase) -> Result<Vec<Zone>, String> {
    let zone = |(io_percent, length): (f64, &str)| {
        let length = ZoneLength::Bytes(Bytes(value::bytes(length, base)?));
        Ok(Zone { io_percent, length })
    };
    pairs(text)?.into_iter().map(zone).collect()
}

fn pairs(text: &str) -> Result<Vec<(f64, &str)>, String> {
    let pair = |part| {
        let (io_percent, length) = str::split_once(part, '/').unwrap_or((part, ""));
        Ok((value::decimal(io_percent)?, length.trim()))
    };
    let pairs: Vec<(f64, &str)> = text.split(':').map(pair).collect::<Result<_, String>>()?;
    let sum: f64 = pairs.iter().map(|(io_percent, _)| io_percent).sum();
    if (sum - 100.0).abs() > 1e-6 {
        return Err(format!("the operations add up to {sum} %: expected 100"));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(u64, u8)> {
        let split = block_split(text, KbBase::Compatible).unwrap();
        split.0.iter().map(|(block, percent)| (block.0, *percent)).collect()
    }

    #[test]
    fn lengths_without_a_share_divide_the_rest() {
        assert_eq!(split("4k/60:64k/40"), [(4096, 60), (65_536, 40)]);
        assert_eq!(split("4k/50:1k/:32k/"), [(4096, 50), (1024, 25), (32_768, 25)]);
        assert_eq!(split("4k:8k:16k"), [(4096, 34), (8192, 33), (16_384, 33)]);
        assert_eq!(split("4k/100:8k/0"), [(4096, 100)]);
        for text in ["4k/60", "4k/60:8k/50", "/50:4k/50", "4k/x", ""] {
            assert!(block_split(text, KbBase::Compatible).is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_of_lengths_is_cut_into_steps_of_the_shortest() {
        let range = block_range(1024, 4096).unwrap();
        assert_eq!(range.0, [1, 2, 3, 4].map(|kib| (Bytes::kib(kib), 25)));
        assert!(
            block_range(512, 1 << 20).is_err() && block_range(0, 1).is_err() && block_range(2, 1).is_err()
        );
    }

    #[test]
    fn zones_as_fio_takes_them() {
        let zones = zones_in_percent("60/10:30/20:8/30:2/40").unwrap();
        assert_eq!(zones[1], Zone { io_percent: 30.0, length: ZoneLength::Percent(20.0) });
        assert_eq!(zones_in_percent("60/10:40/").unwrap()[1].length, ZoneLength::Percent(90.0));
        let zones = zones_in_bytes("60/1g:40/2g", KbBase::Compatible).unwrap();
        assert_eq!(zones[1].length, ZoneLength::Bytes(Bytes::gib(2)));
        // fio refuses the first two as well.
        for text in ["60/10:30/20", "60/10:30/20:8/30:3/40", "60/10:40/20", "x"] {
            assert!(zones_in_percent(text).is_err(), "{text}");
        }
    }
}
