//! Rates, warm-ups and latency targets.

use plumb_block::{Bytes, Nanos};
use plumb_workload::{Amount, LatencyTarget, Warmup};

use super::Vocabulary;
use super::quantity::number;

/// Units of bytes per second, largest first. As powers of two they scale without loss.
const UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", Bytes::GIB), ("MiB", Bytes::MIB), ("KiB", Bytes::KIB), ("B", 1)];

impl Vocabulary for Amount {
    const EXPECTED: &'static str = "a rate per second with a unit: iops, or B, KiB, MiB, GiB, TiB, such as 5000iops \
                                    or 100MiB";

    fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        if let Some(operations) = text.strip_suffix("iops") {
            return number(operations).map(Self::Iops);
        }
        let text = text.strip_suffix("/s").unwrap_or(&text);
        let split = text.find(|c: char| c.is_ascii_alphabetic())?;
        let (amount, unit) = text.split_at(split);
        let full = UNITS.into_iter().find(|(name, _)| {
            let name = name.to_ascii_lowercase();
            // `k`, `kb` and `kib` all mean 1024, as in all sizes of plumb.
            name == unit || name.replace('i', "") == unit || (name.len() > 1 && name[..1] == *unit)
        });
        full.and_then(|(_, factor)| Some(Self::BytesPerSecond(number(amount)? * factor as f64)))
    }

    fn show(&self) -> String {
        match self {
            Self::Iops(operations) => format!("{operations}iops"),
            Self::BytesPerSecond(bytes) => {
                let whole = |(_, factor): &(&str, u64)| (bytes / *factor as f64).fract() == 0.0;
                let (unit, factor) = UNITS.into_iter().find(whole).unwrap_or(("B", 1));
                format!("{}{unit}", bytes / factor as f64)
            }
        }
    }
}

impl Vocabulary for Warmup {
    const EXPECTED: &'static str = "auto, or a time with a unit or in seconds, such as 5s";

    fn parse(text: &str) -> Option<Self> {
        if text == "auto" { Some(Self::Auto) } else { Nanos::parse(text).map(Self::For) }
    }

    fn show(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::For(time) => time.show(),
        }
    }
}

impl Vocabulary for LatencyTarget {
    const EXPECTED: &'static str = "a time and the percentile of operations that keep it, such as 10ms@99";

    fn parse(text: &str) -> Option<Self> {
        let (latency, percentile) = text.split_once('@')?;
        Some(Self { latency: Nanos::parse(latency.trim())?, percentile: number(percentile)? })
    }

    fn show(&self) -> String {
        format!("{}@{}", self.latency.show(), self.percentile)
    }
}
