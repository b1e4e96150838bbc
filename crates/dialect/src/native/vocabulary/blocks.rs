//! Lengths of operations: `4k`, or `4k/60,64k/40` for 60 % and 40 %.

use plumb_block::Bytes;
use plumb_workload::BlockSplit;

use super::Vocabulary;

impl Vocabulary for BlockSplit {
    const EXPECTED: &'static str =
        "a size, or sizes with percents that add up to 100, such as 4k or 4k/60,64k/40";

    fn parse(text: &str) -> Option<Self> {
        if !text.contains('/') {
            return Bytes::parse(text).map(Self::one);
        }
        let part = |part: &str| {
            let (size, percent) = part.split_once('/')?;
            Some((Bytes::parse(size)?, u8::parse(percent.trim())?))
        };
        let parts: Vec<(Bytes, u8)> = text.split(',').map(part).collect::<Option<_>>()?;
        let sum: u64 = parts.iter().map(|(_, percent)| u64::from(*percent)).sum();
        (sum == 100).then_some(Self(parts))
    }

    fn show(&self) -> String {
        if let [(block, 100)] = self.0[..] {
            return block.show();
        }
        let parts = self.0.iter().map(|(block, percent)| format!("{}/{percent}", block.show()));
        parts.collect::<Vec<_>>().join(",")
    }
}
