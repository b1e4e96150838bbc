//! The word that was probably meant.

/// The candidate with the fewest letters to insert, remove or replace, if they are at most a third of the word's.
pub(super) fn nearest<'a>(word: &str, candidates: &'a [String]) -> Option<&'a str> {
    let farthest = word.chars().count() / 3;
    let near = candidates.iter().map(|candidate| (distance(word, candidate), candidate.as_str()));
    near.filter(|(distance, _)| *distance <= farthest.clamp(1, 4)).min().map(|(_, candidate)| candidate)
}

/// Levenshtein's, row by row.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.chars().count()).collect();
    for letter in left.chars() {
        let mut diagonal = row[0];
        row[0] += 1;
        for (column, other) in right.chars().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.chars().count()]
}
