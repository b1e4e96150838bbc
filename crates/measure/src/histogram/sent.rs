//! Transfer format of a histogram: HDR V2, compressed, in base64, together with the exact figures.
//!
//! The sender may be broken or hostile. The HDR decoder allocates as much memory as a header claims, so the
//! header is checked first: it must have the digits and bounds of plumb's histograms, and no more bytes than
//! their bins can take.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize};

use super::Histogram;
use crate::series::COUNT_MAX;

/// Bytes before the compressed part: cookie and length.
const OUTER_HEADER: usize = 8;
/// Bytes before the counts: cookie, length of the counts, offset, digits, lowest, highest, ratio.
const HEADER: usize = 40;
/// Upper bound of all bins with three digits, at nine bytes each.
const COUNTS_MAX: usize = 256 << 10;

/// A histogram in the transfer format.
#[derive(Serialize, Deserialize)]
struct Sent {
    /// Empty for an empty histogram; a load has many of them.
    distribution: String,
    sum: u128,
    sum_of_squares: u128,
    min: u64,
    max: u64,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        if !self.distribution.is_empty() {
            V2DeflateSerializer::new().serialize(&self.distribution, &mut bytes).map_err(S::Error::custom)?;
        }
        let Self { sum, sum_of_squares, min, max, .. } = *self;
        Sent { distribution: STANDARD.encode(bytes), sum, sum_of_squares, min, max }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sent = Sent::deserialize(deserializer)?;
        if sent.distribution.is_empty() {
            return Ok(Self::new());
        }
        sent.received().map_err(D::Error::custom)
    }
}

impl Sent {
    fn received(self) -> Result<Histogram, String> {
        let compressed =
            STANDARD.decode(&self.distribution).map_err(|error| format!("a histogram: {error}"))?;
        let bytes = inflated(&compressed)?;
        let sent: Hdr<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| format!("a histogram: {error}"))?;
        if !self.agrees_with(&sent) {
            return Err("a histogram whose figures contradict each other".to_owned());
        }
        let Self { sum, sum_of_squares, min, max, .. } = self;
        // The size fits the data, because a controller of a thousand hosts holds several of these for each.
        // The histogram grows if more is added.
        let bounded = Hdr::new_with_bounds(1, sent.max().max(2), Histogram::DIGITS);
        let mut distribution = bounded.map_err(|error| format!("a histogram: {error}"))?;
        distribution.auto(true);
        distribution.add(&sent).map_err(|error| format!("a histogram: {error}"))?;
        Ok(Histogram { distribution, sum, sum_of_squares, min, max })
    }

    /// Returns true if the bins and the exact figures are consistent.
    fn agrees_with(&self, bins: &Hdr<u64>) -> bool {
        let in_bin = |exact: u64, bin: u64| bins.equivalent(exact.min(Histogram::HIGHEST.0), bin);
        let count = u128::from(bins.len());
        let sums = u128::from(self.min) * count..=u128::from(self.max) * count;
        (1..COUNT_MAX).contains(&bins.len())
            && self.min <= self.max
            && in_bin(self.min, bins.min())
            && in_bin(self.max, bins.max())
            && sums.contains(&self.sum)
    }
}

/// Decompresses the histogram if its header is acceptable.
fn inflated(compressed: &[u8]) -> Result<Vec<u8>, String> {
    let body = compressed.get(OUTER_HEADER..).ok_or("a histogram that is cut off")?;
    let mut bytes = Vec::new();
    let room = (HEADER + COUNTS_MAX + 1) as u64;
    ZlibDecoder::new(body)
        .take(room)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("a histogram: {error}"))?;
    let number = |from: usize, length: usize| -> Option<u64> {
        Some(bytes.get(from..from + length)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    let header = [number(4, 4), number(12, 4), number(16, 8), number(24, 8)];
    let counts = bytes.len().saturating_sub(HEADER);
    let digits = u64::from(Histogram::DIGITS);
    match header {
        [Some(length), Some(of_digits), Some(1), Some(highest)]
            if length == counts as u64
                && counts <= COUNTS_MAX
                && of_digits == digits
                && (2..=Histogram::HIGHEST.0).contains(&highest) =>
        {
            Ok(bytes)
        }
        _ => Err(format!(
            "a histogram that no plumb sends: expected {digits} digits, 1 ns to {}, and {} KiB of counts at most",
            Histogram::HIGHEST,
            COUNTS_MAX >> 10
        )),
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::V2Serializer;
    use plumb_block::Nanos;

    use super::*;

    #[test]
    fn what_is_sent_arrives_exactly_and_merges() {
        let mut histogram = Histogram::new();
        [3, 70_000, 9_000_000_000, 400_000_000_000].into_iter().for_each(|ns| histogram.record(Nanos(ns)));
        for sent in [histogram, Histogram::new()] {
            let text = serde_json::to_string(&sent).unwrap();
            let arrived: Histogram = serde_json::from_str(&text).unwrap();
            assert_eq!(arrived.summary(), sent.summary());
            assert_eq!((arrived.sum_ns(), arrived.max()), (sent.sum_ns(), sent.max()));
            let mut both = sent.clone();
            both.merge(&arrived);
            assert_eq!(both.count(), 2 * sent.count());
        }
        // One that arrived has room for what it had, and grows.
        let (mut small, mut large) = (Histogram::new(), Histogram::new());
        small.record(Nanos(5));
        large.record(Histogram::HIGHEST);
        let mut arrived: Histogram = serde_json::from_str(&serde_json::to_string(&small).unwrap()).unwrap();
        arrived.merge(&large);
        arrived.record(Nanos(1_000_000));
        assert_eq!((arrived.count(), arrived.at_per_mille(500)), (3, Some(Nanos(1_000_447))));
    }

    /// Returns the message of a histogram with these bins, this sum, and these extremes.
    fn message(distribution: &[u8], sum: u128, (min, max): (u64, u64)) -> String {
        let distribution = STANDARD.encode(distribution);
        serde_json::to_string(&Sent { distribution, sum, sum_of_squares: 0, min, max }).unwrap()
    }

    fn deflated(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::read::ZlibEncoder::new(plain, flate2::Compression::fast());
        let mut bytes = vec![0; OUTER_HEADER];
        encoder.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_no_plumb_sends_is_refused_before_room_is_taken_for_it() {
        let plain = |digits: u8, highest: u64, value: u64| {
            let mut hdr: Hdr<u64> = Hdr::new_with_bounds(1, highest, digits).unwrap();
            hdr.record(value).unwrap();
            let mut bytes = Vec::new();
            V2Serializer::new().serialize(&hdr, &mut bytes).unwrap();
            bytes
        };
        let highest = Histogram::HIGHEST.0;
        let refused = |plain: &[u8], sum: u128, extremes: (u64, u64)| {
            serde_json::from_str::<Histogram>(&message(&deflated(plain), sum, extremes)).is_err()
        };
        let good = plain(3, highest, 1000);
        assert!(!refused(&good, 1000, (1000, 1000)));
        // The first bad header claims 4 GiB of counts; later ones claim digits and bounds that take much room
        // or make all others coarse.
        let mut long = good.clone();
        long[4..8].fill(0xff);
        assert!(refused(&long, 1000, (1000, 1000)), "length");
        assert!(refused(&plain(5, highest, 1000), 1000, (1000, 1000)), "five digits");
        assert!(refused(&plain(1, highest, 1000), 1000, (1000, 1000)), "one digit");
        assert!(refused(&plain(3, u64::MAX / 2, 1000), 1000, (1000, 1000)), "highest");
        assert!(refused(&[good, vec![0; COUNTS_MAX]].concat(), 1000, (1000, 1000)), "counts");
        // Figures that the bins contradict.
        let good = plain(3, highest, 1000);
        for (sum, extremes) in
            [(1000, (1000, u64::MAX)), (1000, (0, 1000)), (u128::MAX, (1000, 1000)), (0, (1000, 1000))]
        {
            assert!(refused(&good, sum, extremes), "{sum} {extremes:?}");
        }
        assert!(refused(&plain(3, highest, 1000)[..20], 1000, (1000, 1000)), "cut off");
    }

    #[test]
    fn the_deviation_of_the_longest_durations_is_a_number() {
        let mut histogram = Histogram::new();
        histogram.record_n(Nanos(u64::MAX), COUNT_MAX);
        histogram.record_n(Nanos(1), COUNT_MAX);
        assert!(histogram.std().is_some_and(f64::is_finite));
    }
}
