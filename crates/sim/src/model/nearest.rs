//! How far two words are apart, to find what was probably meant.

/// The candidate nearest to `word`, if one is near: at most a third of its letters away, and four at most.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let farthest = (word.chars().count() / 3).clamp(1, 4);
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= farthest)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The number of letters to insert, remove or replace (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_none() {
        let known = ["channels", "planes", "bs", "page"];
        for (typed, meant) in
            [("chanels", Some("channels")), ("plames", Some("planes")), ("b", Some("bs")), ("xyzzyx", None)]
        {
            assert_eq!(nearest(typed, known.into_iter()), meant, "{typed}");
        }
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
