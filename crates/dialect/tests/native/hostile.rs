//! Malformed files are refused or yield a valid scenario, and never cause a panic.

use plumb_dialect::native::{read, write};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::native::arbitrary::scenario;

/// Reads `text`. The scenario must be valid; an error must name the line.
fn try_read(text: &str) -> Result<(), TestCaseError> {
    match read(text, "hostile.toml", 7) {
        Ok(scenario) => prop_assert_eq!(scenario.validate(), Ok(()), "\n{}", text),
        Err(error) => {
            let line = error.place.strip_prefix("hostile.toml:").and_then(|line| line.parse::<usize>().ok());
            prop_assert!(line.is_some_and(|line| line >= 1), "{}\n{}", error, text);
            prop_assert!(!error.problem.is_empty());
        }
    }
    Ok(())
}

/// Values likely to break a parser.
const VALUES: [&str; 28] = [
    "nan",
    "-nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "1e308",
    "-0.0",
    "9223372036854775807",
    "9223372036854775808",
    "99999999999999999999999999",
    "0xffffffffffffffff",
    "1979-05-27T07:32:00Z",
    "true",
    "false",
    "''",
    "'-1'",
    "'999999999999P'",
    "'18446744073709551615'",
    "'NaN'",
    "'zoned:NaN/1,1/inf'",
    "'each:0-4294967295'",
    "[]",
    "[[[]]]",
    "[1, 'a', nan]",
    "{}",
    "{a = {b = {}}}",
    "'\\u0000'",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_file_is_read_or_refused(
        scenario in scenario(),
        edits in vec((any::<prop::sample::Index>(), 0_usize..4, "(?s).{0,3}"), 1..5),
    ) {
        let mut text: Vec<char> = write(&scenario).chars().collect();
        for (at, removed, inserted) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, inserted.chars());
        }
        try_read(&text.into_iter().collect::<String>())?;
    }

    #[test]
    fn a_word_with_any_value_is_read_or_refused(
        scenario in scenario(), line in any::<prop::sample::Index>(), value in select(VALUES.to_vec()),
    ) {
        let text = write(&scenario);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let chosen = line.index(lines.len());
        if let Some((word, _)) = lines[chosen].split_once(" = ") {
            lines[chosen] = format!("{word} = {value}");
        }
        try_read(&lines.join("\n"))?;
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(?s).{0,200}") {
        try_read(&text)?;
    }
}

#[test]
fn deep_nesting_and_long_files_are_refused() {
    for text in [
        format!("depth = {}{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("depth = {}", "{a = ".repeat(100_000)),
        format!("[{}]", vec!["a"; 50_000].join(".")),
        format!("{} = 1", "a".repeat(1_000_000)),
        "[[span]]\n".repeat(20_000),
        (0..20_000).map(|word| format!("w{word} = 1\n")).collect(),
        format!("weights = [{}]", "1,".repeat(100_000)),
    ] {
        assert!(try_read(&text).is_ok());
        assert!(read(&text, "hostile.toml", 7).is_err());
    }
}
