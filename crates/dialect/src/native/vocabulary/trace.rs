//! Speed of a replay, and operations left out of it.

use plumb_workload::{Skip, TraceSpeed};

use super::Vocabulary;

impl Vocabulary for TraceSpeed {
    const EXPECTED: &'static str = "a whole number of percent of the recorded speed, such as 200, or unpaced";

    fn parse(text: &str) -> Option<Self> {
        if text == "unpaced" {
            return Some(Self::Unpaced);
        }
        text.strip_suffix('%').unwrap_or(text).parse().ok().map(Self::Percent)
    }

    fn show(&self) -> String {
        match self {
            Self::Unpaced => "unpaced".to_owned(),
            Self::Percent(percent) => percent.to_string(),
        }
    }
}

impl Vocabulary for Skip {
    const EXPECTED: &'static str = "read, write, trim, sync, or several with commas";
    const IS_LIST: bool = true;

    fn parse(text: &str) -> Option<Self> {
        let mut skip = Self::default();
        for kind in text.split(',') {
            match kind.trim() {
                "read" => skip.reads = true,
                "write" => skip.writes = true,
                "trim" => skip.trims = true,
                "sync" => skip.flushes = true,
                _ => return None,
            }
        }
        Some(skip)
    }

    fn show(&self) -> String {
        let kinds =
            [(self.reads, "read"), (self.writes, "write"), (self.trims, "trim"), (self.flushes, "sync")];
        let left_out: Vec<&str> = kinds.into_iter().filter(|(out, _)| *out).map(|(_, kind)| kind).collect();
        left_out.join(",")
    }
}
