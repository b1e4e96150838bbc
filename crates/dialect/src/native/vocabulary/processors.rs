//! Placement of threads: `each:0,2`, `shared:0-3`, `any`.

use plumb_workload::Affinity;

use super::Vocabulary;

impl Vocabulary for Affinity {
    const EXPECTED: &'static str =
        "any, each:PROCESSORS or shared:PROCESSORS, with numbers and ranges, such as shared:0-3,8";

    fn parse(text: &str) -> Option<Self> {
        if text == "any" {
            return Some(Self::Any);
        }
        let (kind, processors) = text.split_once(':')?;
        let processors = crate::processors::of_list(processors, &[','])?;
        match kind {
            "each" => Some(Self::Each(processors)),
            "shared" => Some(Self::Shared(processors)),
            _ => None,
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Any => "any".to_owned(),
            Self::Each(processors) => format!("each:{}", show_processors(processors)),
            Self::Shared(processors) => format!("shared:{}", show_processors(processors)),
        }
    }
}

/// Formats processors in order, with increasing runs as ranges.
fn show_processors(processors: &[u32]) -> String {
    let runs = processors.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let show = |run: &[u32]| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    };
    runs.map(show).collect::<Vec<_>>().join(",")
}
