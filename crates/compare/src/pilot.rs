//! Check of the pilot blocks: whether blocks like these can answer the question.

use plumb_report::document::comparison::Block;

use crate::block::is_idle;
use crate::judge::{Question, idle_words};

/// Returns the reason why blocks like the pilot blocks `blocks` cannot answer `question`; `None` if they can.
pub fn pilot_problem(question: &Question, blocks: &[Block]) -> Option<String> {
    missing(question, blocks).or_else(|| idle(question, blocks))
}

/// Returns a message if a level did not have a requested figure, and so would have it in no block.
pub(crate) fn missing(question: &Question, blocks: &[Block]) -> Option<String> {
    let limits = question.limits.iter().map(|limit| limit.figure.as_str());
    let requested = || std::iter::once(question.figure.as_str()).chain(limits.clone());
    let mut of_some = blocks.iter().filter(|block| block.counts.operations > 0);
    of_some.find_map(|block| {
        let figure = requested().find(|figure| !block.figures.contains_key(*figure))?;
        let known: Vec<&str> = block.figures.keys().map(String::as_str).collect();
        let level = &question.levels[block.level];
        Some(format!(
            "level {level} has no {figure} to compare by: the pilot blocks had {}",
            known.join(", ")
        ))
    })
}

/// Returns a message if a level completed too little for blocks of this length.
pub(crate) fn idle(question: &Question, blocks: &[Block]) -> Option<String> {
    let of_level = |level: usize| blocks.iter().filter(move |block| block.level == level);
    let idle = (0..question.levels.len()).find(|level| is_idle(of_level(*level)));
    idle.map(|level| idle_words(&question.levels[level]))
}

#[cfg(test)]
mod tests {
    use plumb_report::document::comparison::Counts;

    use super::*;
    use crate::design::Terms;

    #[test]
    fn pilot_blocks_that_cannot_answer_the_question_say_why() {
        let question = |figure: &str, limits: &[&str]| Question {
            factor: "workload".to_owned(),
            levels: vec!["a".to_owned(), "b".to_owned()],
            figure: figure.to_owned(),
            terms: Terms::default(),
            limits: limits.iter().map(|limit| limit.parse().unwrap()).collect(),
        };
        let block = |level: usize, operations: u64| Block {
            level,
            figures: [("iops".to_owned(), 7.0)].into(),
            counts: Counts { operations, ..Counts::default() },
            ..Block::default()
        };
        let whole = [block(0, 9), block(1, 9)];
        assert_eq!(pilot_problem(&question("iops", &[]), &whole), None);
        let expected = "level a has no sync-p99 to compare by: the pilot blocks had iops";
        assert_eq!(pilot_problem(&question("sync-p99", &[]), &whole).as_deref(), Some(expected));
        assert_eq!(
            pilot_problem(&question("iops", &["sync-p99 ratio > 1.1"]), &whole).as_deref(),
            Some(expected)
        );
        let idle = pilot_problem(&question("iops", &[]), &[block(0, 9), block(1, 0)]).unwrap();
        assert!(idle.starts_with("b completed no operation"), "{idle}");
    }
}
