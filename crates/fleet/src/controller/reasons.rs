//! Reasons why a host cannot be reached, in words.

use plumb_text::printable;

use super::settings::Settings;
use crate::message::{Identity, SHORT_MAX, short};

/// Lower-case words that mark a line as an error message.
const ERRORS: [&str; 10] =
    ["error", "fatal", "fail", "cannot", "denied", "refused", "not found", "no such", "closed", "usage:"];

/// Returns the reason from the output of a launcher: all of it if it is short, else the first line with an
/// error, or the last line.
pub(super) fn reason(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let all = lines.join("; ");
    if all.len() <= SHORT_MAX {
        return short(&all);
    }
    let tells_of_error = |line: &&&str| ERRORS.iter().any(|word| line.to_lowercase().contains(word));
    let line = lines.iter().find(tells_of_error).or(lines.last()).copied().unwrap_or_default();
    short(line)
}

/// Returns the difference between an agent's program and this one; `None` if they match.
pub(super) fn mismatch(theirs: &Identity, settings: &Settings) -> Option<String> {
    let ours = &settings.identity;
    let short = |text: &str| printable(&text.chars().take(16).collect::<String>());
    if theirs.version != ours.version {
        let (theirs, ours) = (short(&theirs.version), &ours.version);
        return Some(format!("plumb {theirs} is there, {ours} here: install the same, or use --push"));
    }
    (theirs.binary != ours.binary && !settings.any_binary).then(|| {
        format!(
            "another build of plumb {} is there (SHA-256 {}..., here {}...): install the same, use --push, \
             or accept it with --any-build",
            ours.version,
            short(&theirs.binary),
            short(&ours.binary)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_all_of_a_short_text_and_the_error_of_a_long_one() {
        assert_eq!(
            reason("pyenv: cannot rehash\n\nno route to host\r\n"),
            "pyenv: cannot rehash; no route to host"
        );
        let help = "Results go to stdout, progress to stderr.\n".repeat(20);
        assert_eq!(
            reason(&format!("Welcome\nerror: unexpected argument\n{help}")),
            "error: unexpected argument"
        );
        assert_eq!(reason(&format!("{help}\nthe end")), "the end");
        assert_eq!(reason(""), "");
    }
}
