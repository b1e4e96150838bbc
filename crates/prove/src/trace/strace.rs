//! Parser of the output of strace(1) with `-f -y -ttt -s 0`: a thread, a time, and a call on each line,
//! descriptors with their paths; with `-T` also the duration.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use plumb_block::Nanos;

use super::names::removed;

/// A system call that has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Calling thread.
    pub thread: u32,
    /// Start of the call, since the epoch.
    pub at: Nanos,
    /// Duration of the call, if traced.
    pub took: Nanos,
    /// Name of the system call.
    pub name: String,
    /// Arguments of the call.
    pub arguments: Vec<Argument>,
    /// Value that the call returned, or the name of the error.
    pub result: Result<i64, String>,
    /// Path behind the returned descriptor.
    pub opened: Option<PathBuf>,
}

impl Call {
    /// Returns true for a failed fsync(2), fdatasync(2) or syncfs(2).
    pub(super) fn is_failed_sync(&self) -> bool {
        matches!(kind(self), "fsync" | "syncfs") && self.result.is_err()
    }

    /// Returns the text argument with this number, from 0, and its index among all arguments.
    pub(crate) fn text(&self, number: usize) -> Option<(usize, &Path)> {
        let mut texts = self.arguments.iter().enumerate().filter_map(|(place, argument)| match argument {
            Argument::Text(path) => Some((place, &**path)),
            Argument::Descriptor(..) | Argument::Word(_) => None,
        });
        texts.nth(number)
    }

    /// Returns the path below `root` that the call syncs; an empty path for everything. `None` if it syncs
    /// nothing there.
    pub(crate) fn synced(&self, root: &Path) -> Option<PathBuf> {
        match (kind(self), self.arguments.first()) {
            ("sync", _) => Some(PathBuf::new()),
            ("fsync" | "syncfs", Some(Argument::Descriptor(_, path))) if path.starts_with(root) => {
                Some(path.clone())
            }
            _ => None,
        }
    }
}

/// Argument of a system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// Descriptor, and its path if it has one.
    Descriptor(i64, PathBuf),
    /// Text: a path, or data, which is omitted.
    Text(PathBuf),
    /// Anything else as printed: numbers, flags, structures.
    Word(String),
}

/// Calls that an audit uses, in the syntax of strace(1) (`?`: missing on some processors), each group after
/// the plainest name of its kind.
pub(super) const CALLS: [(&str, &str); 17] = [
    ("execve", "execve"),
    ("open", "?open,openat,?openat2,?creat"),
    ("rename", "?rename,?renameat,renameat2"),
    ("link", "?link,linkat,?symlink,symlinkat"),
    ("mkdir", "?mkdir,mkdirat"),
    ("unlink", "?unlink,unlinkat"),
    ("rmdir", "?rmdir"),
    ("write", "write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range,splice,fallocate,ftruncate"),
    ("truncate", "truncate"),
    ("fsync", "fsync,fdatasync"),
    ("msync", "msync"),
    ("sync", "sync"),
    ("syncfs", "syncfs"),
    ("chdir", "chdir,fchdir"),
    ("mmap", "mmap"),
    ("io_uring", "io_uring_setup"),
    ("aio", "io_setup"),
];

/// Returns the plainest name of the call's kind; empty if an audit does not use it.
pub(crate) fn kind(call: &Call) -> &'static str {
    let is_one = |names: &str| names.split(',').any(|name| name.trim_start_matches('?') == call.name);
    CALLS.iter().find(|(_, names)| is_one(names)).map_or("", |(kind, _)| kind)
}

/// State of parsing the lines of a trace.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    /// By thread: the beginning of a call that was interrupted by a line of another thread.
    begun: HashMap<u32, (Nanos, String)>,
}

impl Lines {
    /// Returns the call that returned with this line. Lines that are not calls (signals, exits) are skipped,
    /// and so is a truncated one.
    pub fn parse(&mut self, line: &str) -> Option<Call> {
        let (thread, rest) = line.trim_ascii_start().split_once(' ')?;
        let (at, rest) = rest.trim_ascii_start().split_once(' ')?;
        let (thread, at) = (thread.parse().ok()?, time(at)?);
        let rest = rest.trim_ascii_end();
        if let Some(begin) = rest.strip_suffix(" <unfinished ...>") {
            self.begun.insert(thread, (at, begin.to_owned()));
            return None;
        }
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let (_, end) = resumed.split_once(" resumed>")?;
            let (at, begin) = self.begun.remove(&thread)?;
            return call(thread, at, &format!("{begin}{end}"));
        }
        call(thread, at, rest)
    }
}

/// Returns the thread that ended with this line, if it reports an end.
pub(super) fn exited(line: &str) -> Option<u32> {
    let mut words = line.split_whitespace();
    let thread = words.next()?.parse().ok()?;
    (words.nth(1) == Some("+++")).then_some(thread)
}

/// Parses a time such as `1795386843.676686`.
fn time(text: &str) -> Option<Nanos> {
    let (seconds, micros) = text.split_once('.')?;
    let (seconds, micros): (u64, u64) = (seconds.parse().ok()?, micros.parse().ok()?);
    seconds.checked_mul(1_000_000)?.checked_add(micros)?.checked_mul(1000).map(Nanos)
}

/// Parses `name(arguments) = result`.
fn call(thread: u32, at: Nanos, text: &str) -> Option<Call> {
    let (name, rest) = text.split_once('(')?;
    let (inside, after) = divide(rest)?;
    let result = after.trim_ascii_start().strip_prefix("= ")?;
    let timed =
        result.rsplit_once(" <").and_then(|(result, took)| Some((result, time(took.strip_suffix('>')?)?)));
    let (result, took) = timed.unwrap_or((result, Nanos(0)));
    let (value, opened) = match result.split_once('<') {
        Some((value, path)) => {
            let (path, after) = path.split_once('>')?;
            let path = unescape(path);
            (value, Some(if after.starts_with("(deleted)") { removed(&path) } else { path }))
        }
        None => (result.split(' ').next()?, None),
    };
    let result = match result.strip_prefix("-1 ") {
        Some(error) => Err(error.split(' ').next()?.to_owned()),
        None if value == "?" => return None,
        None => Ok(number(value)?),
    };
    let arguments = inside.into_iter().map(argument).collect();
    Some(Call { thread, at, took, name: name.to_owned(), arguments, result, opened })
}

/// Returns the number in a word: decimal, or hexadecimal after `0x`.
pub(super) fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok().map(u64::cast_signed),
        None => text.parse().ok(),
    }
}

/// Returns the arguments up to the closing bracket, and the text after it.
fn divide(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut depth, mut start, mut is_quoted, mut is_escaped) = (0_u32, 0, false, false);
    let mut arguments = Vec::new();
    for (place, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '[' | '{' | '<' => depth += 1,
            ')' if depth == 0 => {
                arguments.push(text[start..place].trim());
                arguments.retain(|argument| !argument.is_empty());
                return Some((arguments, &text[place + 1..]));
            }
            // `=>` is not a bracket, and `>` ends only the path that it belongs to.
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                arguments.push(text[start..place].trim());
                start = place + 1;
            }
            _ => {}
        }
    }
    None
}

fn argument(text: &str) -> Argument {
    if let Some(quoted) = text.strip_prefix('"') {
        let end = quoted.rfind('"').unwrap_or(quoted.len());
        return Argument::Text(unescape(&quoted[..end]));
    }
    let descriptor = text.split_once('<').and_then(|(number, path)| {
        let number = if number == "AT_FDCWD" { -100 } else { number.parse().ok()? };
        match path.strip_suffix(">(deleted)") {
            Some(path) => Some(Argument::Descriptor(number, removed(&unescape(path)))),
            None => Some(Argument::Descriptor(number, unescape(path.strip_suffix('>')?))),
        }
    });
    descriptor.unwrap_or_else(|| Argument::Word(text.to_owned()))
}

/// Decodes the escapes of C: `\n`, `\"`, `\303`.
fn unescape(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'v') => bytes.push(0x0b),
            Some(b'f') => bytes.push(0x0c),
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|next| (b'0'..=b'7').contains(next)) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                }
                bytes.push(value as u8);
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Call {
        Lines::default().parse(line).unwrap()
    }

    #[test]
    fn paths_come_back_as_they_are() {
        let call = one(
            "4436  1795386843.659276 openat(AT_FDCWD</tmp/a, b>, \"a\\\"b c\\303\\244\\n\", O_WRONLY|O_CREAT, 0777) = \
             3</tmp/a, b/x\\76y>",
        );
        assert_eq!(
            (call.thread, call.at, call.name.as_str()),
            (4436, Nanos(1_795_386_843_659_276_000), "openat")
        );
        assert_eq!(
            call.arguments,
            [
                Argument::Descriptor(-100, "/tmp/a, b".into()),
                Argument::Text("a\"b c\u{e4}\n".into()),
                Argument::Word("O_WRONLY|O_CREAT".into()),
                Argument::Word("0777".into()),
            ]
        );
        assert_eq!((call.result, call.opened), (Ok(3), Some("/tmp/a, b/x>y".into())));
    }

    #[test]
    fn a_call_that_another_one_interrupts_is_put_together() {
        let trace = "1 5.000001 fsync(3</d/f> <unfinished ...>\n2 5.000002 sync() = 0\n1 5.000003 <... fsync resumed>) = \
                     -1 EIO (Input/output error)\n1 5.000004 +++ exited with 1 +++\n2 5.00";
        let mut lines = Lines::default();
        let calls: Vec<Call> = trace.lines().filter_map(|line| lines.parse(line)).collect();
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["sync", "fsync"]);
        assert_eq!((&calls[1].result, calls[1].at), (&Err("EIO".to_owned()), Nanos(5_000_001_000)));
        assert_eq!(calls[1].arguments, [Argument::Descriptor(3, "/d/f".into())]);
    }

    #[test]
    fn a_descriptor_whose_name_was_removed_is_one() {
        let call = one("7 1.000000 fsync(3</d/a>(deleted)) = 0");
        assert_eq!(call.arguments, [Argument::Descriptor(3, "/d/a (deleted)".into())]);
    }

    #[test]
    fn how_long_a_call_took_is_no_path() {
        let call = one("7 1.000000 unlink(\"a\") = 0 <0.000012>");
        assert_eq!((call.took, call.result, call.opened), (Nanos(12_000), Ok(0), None));
        let call = one("7 1.000000 open(\"a\", O_RDONLY) = 3</a> <1.000002>");
        assert_eq!((call.took, call.result, call.opened), (Nanos(1_000_002_000), Ok(3), Some("/a".into())));
        let call = one("7 1.000000 fsync(3</a>) = -1 EIO (Input/output error) <0.000001>");
        assert_eq!((call.took, call.result), (Nanos(1000), Err("EIO".to_owned())));
    }

    #[test]
    fn structures_and_addresses_are_words() {
        let call =
            one("7 1.000000 mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 3</f>, 0) = 0x7f2f124d1000");
        assert_eq!((call.arguments.len(), call.result), (6, Ok(0x7f2f_124d_1000)));
        let call = one("7 1.000000 pwritev(3</f>, [{iov_base=\"\"..., iov_len=4096}], 1, 0) = 4096");
        assert_eq!((call.arguments.len(), call.result), (4, Ok(4096)));
    }
}
