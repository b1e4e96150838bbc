//! Weights of targets that share a depth.

use super::Vocabulary;

/// Weights of the targets, in their order.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::native) struct Weights(pub(in crate::native) Vec<u32>);

impl Vocabulary for Weights {
    const EXPECTED: &'static str = "a whole number for each target, such as 3,1";
    const IS_LIST: bool = true;

    fn parse(text: &str) -> Option<Self> {
        text.split(',').map(|weight| weight.trim().parse().ok()).collect::<Option<_>>().map(Self)
    }

    fn show(&self) -> String {
        self.0.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
    }
}
