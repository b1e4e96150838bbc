//! The word that was probably meant.

/// The candidate nearest to `word`, if one is near: at most a third of its letters away, and three at most.
pub(super) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let farthest = (word.chars().count() / 3).clamp(1, 3);
    candidates
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= farthest)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The number of letters to insert, remove, replace or swap with their neighbour (Damerau, optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for (row, letter) in left.iter().enumerate() {
        let above = &rows[row];
        let mut here = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != other);
            let mut best = replaced.min(above[column + 1] + 1).min(here[column] + 1);
            if row > 0 && column > 0 && *letter == right[column - 1] && left[row - 1] == *other {
                best = best.min(rows[row - 1][column - 1] + 1);
            }
            here.push(best);
        }
        rows.push(here);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_none() {
        let known = ["model", "rotational", "size"];
        for (typed, meant) in [
            ("modle", Some("model")),
            ("rotation", Some("rotational")),
            ("sise", Some("size")),
            ("colour", None),
        ] {
            assert_eq!(nearest(typed, &known), meant, "{typed}");
        }
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("ab", "ba"), 1);
    }
}
