//! Lists of hosts: comma-separated names with ranges as in Slurm (`a[01-08,12],db1`), or a file with such
//! lists in its lines.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::Path;

use crate::message::short;

/// Maximum number of hosts.
pub const HOSTS_MAX: usize = 10_000;
/// Maximum number of digits of a number in a range.
const WIDTH_MAX: usize = 20;
const RANGE: &str = "expected ranges such as a[01-08] or a[1-4,7], the lower number first, in one pair of brackets, of at most 10000 hosts";
/// White space around names.
const BLANKS: [char; 2] = [' ', '\t'];
const BRACKET: &str = "a bracket has no counterpart: expected a range such as a[01-08]";

/// Error in a list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostsError {
    /// A name or range that is invalid.
    #[error("{place}`{typed}`: {problem}")]
    Wrong {
        /// Position in a file, such as `line 3: `; empty for a list.
        place: String,
        /// Text as typed, printable.
        typed: String,
        /// Description of the problem.
        problem: &'static str,
    },
    /// No host, or too many.
    #[error("{count} hosts are named: expected 1 to {HOSTS_MAX}")]
    Count {
        /// Number of hosts.
        count: usize,
    },
    /// A file of hosts that cannot be used.
    #[error("--hosts {typed}: {why}")]
    File {
        /// Name of the file as typed.
        typed: String,
        /// Reason and remedy.
        why: String,
    },
}

impl HostsError {
    fn in_line(self, number: usize) -> Self {
        match self {
            Self::Wrong { typed, problem, .. } => {
                Self::Wrong { place: format!("line {number}: "), typed, problem }
            }
            other => other,
        }
    }
}

/// Parses a list of hosts: comma-separated names, each with at most one pair of brackets.
///
/// # Errors
/// Fails if a name is invalid or occurs twice.
pub fn of_list(typed: &str) -> Result<Vec<String>, HostsError> {
    let mut names = Vec::new();
    list(typed, &mut names)?;
    checked(names)
}

/// Parses a file with a list of hosts in each line. Ignores empty lines, and text after a `#` at the start of
/// a line or after white space.
///
/// # Errors
/// Fails as [`of_list`].
pub fn of_file(text: &str) -> Result<Vec<String>, HostsError> {
    let mut names = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let comment =
            line.match_indices('#').find(|(at, _)| line[..*at].is_empty() || line[..*at].ends_with(BLANKS));
        let line = comment.map_or(line, |(at, _)| &line[..at]).trim_matches(BLANKS);
        if !line.is_empty() {
            list(line, &mut names).map_err(|error| error.in_line(number))?;
        }
    }
    checked(names)
}

/// Parses a list of hosts, or the file that `typed` names, which `read` reads. Text with a slash or the
/// suffix of a text file is a file name, as is that of an existing object other than a directory.
///
/// # Errors
/// Fails as [`of_list`], and if the file cannot be read.
pub fn of_argument(
    typed: &str,
    read: &dyn Fn(&str) -> io::Result<String>,
) -> Result<Vec<String>, HostsError> {
    let path = Path::new(typed);
    let is_there = path.symlink_metadata().is_ok_and(|found| !found.is_dir());
    if !is_there && !typed.contains('/') && !typed.ends_with(".txt") {
        return of_list(typed);
    }
    let wrong = |why: &dyn fmt::Display| HostsError::File { typed: typed.to_owned(), why: why.to_string() };
    if !path.metadata().map_err(|error| wrong(&error))?.is_file() {
        return Err(wrong(
            &"it is not a regular file: name a file with the hosts in its lines, or type them with commas",
        ));
    }
    of_file(&read(typed).map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))
}

fn list(typed: &str, names: &mut Vec<String>) -> Result<(), HostsError> {
    let mut is_within = false;
    let between = |sign| {
        is_within = match sign {
            '[' => true,
            ']' => false,
            _ => is_within,
        };
        sign == ',' && !is_within
    };
    typed.split(between).try_for_each(|part| expand(part.trim_matches(BLANKS), names))
}

fn expand(part: &str, names: &mut Vec<String>) -> Result<(), HostsError> {
    let range = part.split_once('[').and_then(|(before, rest)| {
        let (ranges, after) = rest.split_once(']')?;
        Some((before, ranges, after))
    });
    let Some((before, ranges, after)) = range else {
        if part.contains(['[', ']']) {
            return Err(wrong(part, BRACKET));
        }
        names.push(part.to_owned());
        return Ok(());
    };
    // Brackets around an address, such as [fe80::1], do not form a range.
    if ranges.contains(':') && !after.contains(['[', ']']) {
        names.push(part.to_owned());
        return Ok(());
    }
    let no_range = || wrong(part, RANGE);
    let is_more = before.contains(']') || after.contains(['[', ']']);
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (low, high) =
            number(first).zip(number(last)).filter(|(low, high)| low <= high).ok_or_else(no_range)?;
        if is_more {
            return Err(no_range());
        }
        let count = (high - low).saturating_add(1).saturating_add(names.len());
        if count > HOSTS_MAX {
            return Err(HostsError::Count { count });
        }
        let width = first.len();
        if width > WIDTH_MAX {
            return Err(no_range());
        }
        names.extend((low..=high).map(|number| format!("{before}{number:0width$}{after}")));
    }
    Ok(())
}

fn number(digits: &str) -> Option<usize> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn checked(names: Vec<String>) -> Result<Vec<String>, HostsError> {
    let mut seen = HashSet::new();
    for name in &names {
        let problem = match name {
            _ if name.is_empty() => "it is not a name of a host: expected one such as db1",
            _ if name.starts_with('-') => "it begins with a dash: a launcher would take it for an option",
            _ if name.chars().any(char::is_control) => {
                "it holds a control character, such as the end of a line"
            }
            _ if !seen.insert(name) => "it is named twice: its results could not be told apart",
            _ => continue,
        };
        return Err(wrong(name, problem));
    }
    match names.len() {
        1..=HOSTS_MAX => Ok(names),
        count => Err(HostsError::Count { count }),
    }
}

fn wrong(typed: &str, problem: &'static str) -> HostsError {
    HostsError::Wrong { place: String::new(), typed: short(typed), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_files_name_hosts() {
        assert_eq!(of_list("a[08-11].x,db1").unwrap(), ["a08.x", "a09.x", "a10.x", "a11.x", "db1"]);
        assert_eq!(of_list("root@[fe80::1]").unwrap(), ["root@[fe80::1]"]);
        assert_eq!(of_list("n[1-3,7,09-10],m[4]").unwrap(), ["n1", "n2", "n3", "n7", "n09", "n10", "m4"]);
        assert_eq!(of_file("# all\n\n n[1-2] \nit's a \"host\"\n").unwrap(), ["n1", "n2", "it's a \"host\""]);
        assert_eq!(
            of_file("\th[1-2], h3\t\r\n\t# no\nx,y[4,5]\n").unwrap(),
            ["h1", "h2", "h3", "x", "y4", "y5"]
        );
        assert_eq!(of_file("a#1 # spare\n#\nb\t#\n").unwrap(), ["a#1", "b"]);
        assert!(of_file("a\n\n[g]\n").unwrap_err().to_string().starts_with("line 3: `[g]`: "));
    }

    #[test]
    fn what_a_launcher_could_take_for_something_else_is_refused() {
        for typed in ["-oProxyCommand=x", "a,,b", "a\nb", "a\u{1b}[1m", "a[3-1]", "a,a", ""] {
            assert!(of_list(typed).is_err(), "{typed:?}");
        }
        assert!(of_list(&format!("a[{}1]", "0".repeat(70_000))).is_err());
        let many = of_list("b,a[1-100000000]").unwrap_err().to_string();
        assert_eq!(many, "100000001 hosts are named: expected 1 to 10000");
        for typed in ["a[1-2]b[3-4]", "a[x]", "a[1-2,]", "a[]"] {
            assert!(matches!(of_list(typed), Err(HostsError::Wrong { problem: RANGE, .. })), "{typed}");
        }
        for typed in ["n[1-4", "n1-4]", "a[1,b", "n]1-4["] {
            assert!(matches!(of_list(typed), Err(HostsError::Wrong { problem: BRACKET, .. })), "{typed}");
        }
    }
}
