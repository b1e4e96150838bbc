//! Distributions of offsets, and divisions of a range.

use plumb_block::Bytes;
use plumb_workload::{Distribution, Division, Zone, ZoneLength};

use super::Vocabulary;
use super::quantity::{number, size_with_unit};

impl Vocabulary for Distribution {
    const EXPECTED: &'static str = "uniform, each-once, zipf:THETA, pareto:POWER, normal:PERCENT, or \
                                    zoned:IO%/LENGTH,... with lengths in percent or bytes, such as zoned:60/10,30/1GiB";

    fn parse(text: &str) -> Option<Self> {
        let (kind, parameter) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            "uniform" | "each-once" if kind != text => None,
            "uniform" => Some(Self::Uniform),
            "each-once" => Some(Self::EachOnce),
            "zipf" => number(parameter).map(|theta| Self::Zipf { theta }),
            "pareto" => number(parameter).map(|power| Self::Pareto { power }),
            "normal" => number(parameter).map(|deviation_percent| Self::Normal { deviation_percent }),
            "zoned" => parameter.split(',').map(parse_zone).collect::<Option<_>>().map(Self::Zoned),
            _ => None,
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Uniform => "uniform".to_owned(),
            Self::EachOnce => "each-once".to_owned(),
            Self::Zipf { theta } => format!("zipf:{theta}"),
            Self::Pareto { power } => format!("pareto:{power}"),
            Self::Normal { deviation_percent } => format!("normal:{deviation_percent}"),
            Self::Zoned(zones) => {
                format!("zoned:{}", zones.iter().map(show_zone).collect::<Vec<_>>().join(","))
            }
        }
    }
}

fn parse_zone(text: &str) -> Option<Zone> {
    let (io, length) = text.split_once('/')?;
    let length = match number(length) {
        Some(percent) => ZoneLength::Percent(percent),
        None => ZoneLength::Bytes(Bytes::parse(length)?),
    };
    Some(Zone { io_percent: number(io)?, length })
}

fn show_zone(zone: &Zone) -> String {
    match zone.length {
        ZoneLength::Percent(percent) => format!("{}/{percent}", zone.io_percent),
        ZoneLength::Bytes(bytes) => format!("{}/{}", zone.io_percent, size_with_unit(bytes)),
    }
}

impl Vocabulary for Division {
    const EXPECTED: &'static str = "parts, overlap, or offset:SIZE such as offset:1G";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "parts" => Some(Self::Parts),
            "overlap" => Some(Self::Overlap),
            _ => text.strip_prefix("offset:").and_then(Bytes::parse).map(Self::Offset),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Parts => "parts".to_owned(),
            Self::Overlap => "overlap".to_owned(),
            Self::Offset(offset) => format!("offset:{}", offset.show()),
        }
    }
}
