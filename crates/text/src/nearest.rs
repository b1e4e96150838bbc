//! The word that was probably meant, for messages about one that is not known.

/// Returns the candidate nearest to `word`, if one is near: at most a third of its letters to insert, remove,
/// replace or swap with their neighbour, and four at most.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let farthest = (word.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= farthest)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_none() {
        let known = ["iodepth", "ioengine", "bs", "runtime", "rotational"];
        for (typed, meant) in [
            ("iodpeth", Some("iodepth")),
            ("runtme", Some("runtime")),
            ("rotation", Some("rotational")),
            ("b", Some("bs")),
            ("xyzzyx", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
    }
}
