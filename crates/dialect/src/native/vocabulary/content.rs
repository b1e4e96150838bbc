//! Content of writes.

use plumb_block::Bytes;
use plumb_workload::Content;

use super::Vocabulary;

impl Vocabulary for Content {
    const EXPECTED: &'static str = "pattern, zeroes, repeated, counting, reducible:COMPRESS%/DEDUP%, buffer:SIZE, or \
                                    file:SIZE,PATH, such as reducible:50/20 or file:1M,/etc/services";

    fn parse(text: &str) -> Option<Self> {
        let Some((kind, parameter)) = text.split_once(':') else {
            return match text {
                "pattern" => Some(Self::Pattern),
                "zeroes" => Some(Self::Zeroes),
                "repeated" => Some(Self::Repeated),
                "counting" => Some(Self::Counting),
                _ => None,
            };
        };
        match kind {
            "reducible" => {
                let (compress, dedup) = parameter.split_once('/')?;
                let percent = |text: &str| u8::parse(text.strip_suffix('%').unwrap_or(text));
                let (compress_percent, dedup_percent) = (percent(compress)?, percent(dedup)?);
                Some(Self::Reducible { compress_percent, dedup_percent })
            }
            "buffer" => Bytes::parse(parameter).map(Self::Buffer),
            "file" => {
                let (size, path) = parameter.split_once(',')?;
                Some(Self::File { size: Bytes::parse(size)?, path: path.to_owned() })
            }
            _ => None,
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Pattern => "pattern".to_owned(),
            Self::Zeroes => "zeroes".to_owned(),
            Self::Repeated => "repeated".to_owned(),
            Self::Counting => "counting".to_owned(),
            Self::Reducible { compress_percent, dedup_percent } => {
                format!("reducible:{compress_percent}/{dedup_percent}")
            }
            Self::Buffer(size) => format!("buffer:{}", size.show()),
            Self::File { size, path } => format!("file:{},{path}", size.show()),
        }
    }
}
