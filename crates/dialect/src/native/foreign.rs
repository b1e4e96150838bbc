//! Options of other programs that users type by habit, and plumb's equivalents. The table is `foreign.txt`.

use plumb_text::shell_word;

use super::table::{self, Takes};

/// An option of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Argument as typed, with its value.
    pub typed: String,
    /// Program to which the option belongs.
    pub program: &'static str,
    /// Equivalent words of plumb, or a remark in parentheses.
    pub native: String,
}

/// Returns the options of other programs among `arguments`, and the same command line in plumb's own words.
pub fn translate(arguments: &[String]) -> (Vec<Foreign>, Vec<String>) {
    let (mut found, mut line) = (Vec::new(), Vec::new());
    let mut arguments = arguments.iter().peekable();
    while let Some(typed) = arguments.next() {
        let next = arguments.peek().filter(|next| !next.starts_with('-')).map(|next| next.as_str());
        let Some((foreign, took_next)) = find(typed, next) else {
            line.push(shell_word(typed));
            continue;
        };
        arguments.next_if(|_| took_next);
        line.extend((!foreign.native.starts_with('(')).then(|| foreign.native.clone()));
        found.push(foreign);
    }
    // An explicit mix replaces the even one.
    if line.iter().any(|native| native.starts_with("--write ")) {
        line.iter_mut().for_each(|native| *native = native.replace(" --write 50", ""));
    }
    (found, line)
}

/// Returns plumb's word for the option `name` of another program.
pub(super) fn meant(name: &str) -> Option<&'static str> {
    lookup(name)?.1.strip_prefix("--")?.split(' ').next()
}

/// Returns the option of `program` for plumb's word `word`, preferably one that sets nothing else.
pub(super) fn called(program: &str, word: &str) -> Option<&'static str> {
    let section = include_str!("foreign.txt").split_once(&format!("[{program}]\n"))?.1;
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let rows: Vec<_> = lines.filter_map(|line| line.split_once(" | ")).collect();
    let alone = rows.iter().find(|(_, native)| *native == format!("--{word} {{}}"));
    let beside = || rows.iter().find(|(_, native)| native.contains(&format!("--{word} {{}}")));
    let names = alone.or_else(beside)?.0;
    Some(names.split(' ').next()?.trim_end_matches("{}"))
}

/// Returns the equivalent of `typed`, and whether the argument `next` is its value.
fn find(typed: &str, next: Option<&str>) -> Option<(Foreign, bool)> {
    let letters = typed.strip_prefix('-')?;
    let word = letters.trim_start_matches('-');
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    // A plumb flag typed with a value belongs to another program: --direct=1.
    if table::find(name).is_some_and(|ours| value.is_none() || !matches!(ours.takes, Takes::Nothing)) {
        return None;
    }
    let (given, is_next) = (value.or(next), value.is_none());
    let mut keys: Vec<(String, Option<&str>, bool)> = Vec::new();
    keys.extend(given.map(|value| (format!("{name}={value}"), Some(value), is_next)));
    keys.push((name.to_owned(), given, is_next));
    for end in (1..=letters.len()).rev().filter(|_| word == letters) {
        let (flag, rest) = letters.split_at_checked(end)?;
        let attached = Some(rest).filter(|rest| !rest.is_empty());
        keys.extend(attached.map(|value| (format!("-{flag}{{}}"), Some(value), false)));
        keys.push((format!("-{flag}"), attached.or(next), attached.is_none()));
    }
    let found = |(key, value, is_next): (String, _, _)| lookup(&key).map(|row| (key, value, is_next, row));
    let (key, given, is_next, (program, native)) = keys.into_iter().find_map(found)?;
    let taken = next.filter(|_| is_next && (native.contains('{') || key.contains('=')));
    let typed = taken.map_or_else(|| typed.to_owned(), |next| format!("{typed} {next}"));
    Some((Foreign { typed, program, native: filled(native, given) }, taken.is_some()))
}

/// Returns the program that has the option `word`, and plumb's equivalent.
fn lookup(word: &str) -> Option<(&'static str, &'static str)> {
    let mut program = "";
    for line in include_str!("foreign.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(" | ") {
            None => program = line.trim_matches(['[', ']']),
            Some((words, native)) if words.split(' ').any(|known| known == word) => {
                return Some((program, native));
            }
            Some(_) => {}
        }
    }
    None
}

/// Returns the equivalent with the value inserted.
fn filled(native: &str, value: Option<&str>) -> String {
    let word = native.trim_start_matches('-').split(' ').next().and_then(table::find);
    let value = value.unwrap_or(word.map_or("TARGET", |word| word.value_name));
    let rest = value.trim_end_matches('%').parse().ok().and_then(|percent: u8| 100_u8.checked_sub(percent));
    let rest = rest.map_or_else(|| "PERCENT".to_owned(), |rest| rest.to_string());
    native.replace("{rest}", &rest).replace("{sizes}", &value.replace(':', ",")).replace("{}", value)
}
