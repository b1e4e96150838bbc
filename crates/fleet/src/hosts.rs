//! The hosts that were named: with commas and ranges (`a[01-08],db1`), or a line each in a file.

use std::collections::HashSet;

/// So many hosts are taken.
pub const HOSTS_MAX: usize = 10_000;

/// Names that make no list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostsError {
    /// A name that a launcher could take for something else.
    #[error("host `{name}`: {problem}")]
    Name {
        /// The name, ready to print.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A range that is none.
    #[error("`{typed}`: expected a range such as a[01-08], with the lower number first")]
    Range {
        /// What was typed, ready to print.
        typed: String,
    },
    /// The same name twice: its results could not be told apart.
    #[error("host `{name}` is named twice")]
    Twice {
        /// The name, ready to print.
        name: String,
    },
    /// None, or too many.
    #[error("{count} hosts are named: expected 1 to {HOSTS_MAX}")]
    Count {
        /// How many.
        count: usize,
    },
}

/// The hosts of a list that was typed: names with commas between, each with one range or none.
///
/// # Errors
/// If a name is none, or stands there twice.
pub fn of_list(typed: &str) -> Result<Vec<String>, HostsError> {
    let mut names = Vec::new();
    for part in typed.split(',') {
        expand(part.trim_matches(' '), &mut names)?;
    }
    checked(names)
}

/// The hosts of a file: one a line, with a range or without; empty lines and what follows a `#` at the start of a line are left out.
///
/// # Errors
/// As [`of_list`].
pub fn of_file(text: &str) -> Result<Vec<String>, HostsError> {
    let mut names = Vec::new();
    for line in text.lines().map(|line| line.trim_matches(' ')) {
        if !line.is_empty() && !line.starts_with('#') {
            expand(line, &mut names)?;
        }
    }
    checked(names)
}

fn expand(part: &str, names: &mut Vec<String>) -> Result<(), HostsError> {
    // An address such as [fe80::1] is no range.
    let range = part.split_once('[').and_then(|(before, rest)| {
        let (range, after) = rest.split_once(']')?;
        let (first, last) = range.split_once('-')?;
        Some((before, first, last, after))
    });
    let Some((before, first, last, after)) = range else {
        names.push(part.to_owned());
        return Ok(());
    };
    let wrong = || HostsError::Range { typed: printable(part) };
    let number = |digits: &str| -> Option<usize> {
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    };
    let (low, high) = number(first).zip(number(last)).filter(|(low, high)| low <= high).ok_or_else(wrong)?;
    if high - low >= HOSTS_MAX || after.contains('[') {
        return Err(wrong());
    }
    let width = first.len();
    names.extend((low..=high).map(|number| format!("{before}{number:0width$}{after}")));
    Ok(())
}

fn checked(names: Vec<String>) -> Result<Vec<String>, HostsError> {
    let mut seen = HashSet::new();
    for name in &names {
        let problem = if name.is_empty() {
            "it is empty"
        } else if name.starts_with('-') {
            "it begins with a dash: a launcher would take it for an option"
        } else if name.chars().any(char::is_control) {
            "it holds a control character, such as the end of a line"
        } else if !seen.insert(name) {
            return Err(HostsError::Twice { name: printable(name) });
        } else {
            continue;
        };
        return Err(HostsError::Name { name: printable(name), problem });
    }
    match names.len() {
        1..=HOSTS_MAX => Ok(names),
        count => Err(HostsError::Count { count }),
    }
}

fn printable(text: &str) -> String {
    plumb_report::printable::printable(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_files_name_hosts() {
        assert_eq!(of_list("a[08-11].x,db1").unwrap(), ["a08.x", "a09.x", "a10.x", "a11.x", "db1"]);
        assert_eq!(of_list("root@[fe80::1]").unwrap(), ["root@[fe80::1]"]);
        assert_eq!(of_file("# all\n\n n[1-2] \nit's a \"host\"\n").unwrap(), ["n1", "n2", "it's a \"host\""]);
    }

    #[test]
    fn what_a_launcher_could_take_for_something_else_is_refused() {
        for typed in ["-oProxyCommand=x", "a,,b", "a\nb", "a\u{1b}[1m", "a[3-1]", "a[1-99999999]", "a,a", ""]
        {
            assert!(of_list(typed).is_err(), "{typed:?}");
        }
        assert!(matches!(of_list("a[1-2]b[3-4]"), Err(HostsError::Range { .. })));
    }
}
