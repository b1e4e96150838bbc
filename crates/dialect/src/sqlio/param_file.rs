//! Parameter file of `-F`: `path threads mask sizeMB` for each file; `#` begins a comment.
//!
//! ```text
//! /data/test.dat 2 0x0 100
//! ```

use plumb_workload::Affinity;

use super::File;
use super::arguments::mask;
use crate::diskspd;
use crate::error::Error;

/// Maximum length of the file in bytes.
const LENGTH_MAX: usize = 1 << 20;

/// Parses a parameter file; `file` is its name in errors.
///
/// # Errors
/// The invalid line.
pub(super) fn parse(text: &str, file: &str) -> Result<Vec<File>, Error> {
    if text.len() > LENGTH_MAX {
        return Err(Error::new(file, format!("{} bytes: at most {LENGTH_MAX} are read", text.len())));
    }
    let mut files = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = comment_cut_off(line).trim();
        if line.is_empty() {
            continue;
        }
        let place = format!("{file}:{}", number + 1);
        let read = self::line(line).map_err(|problem| Error::new(&place, problem))?;
        diskspd::check_name(&read.name).map_err(|error| Error { place, ..error })?;
        files.push(read);
    }
    if files.is_empty() {
        return Err(Error::new(
            file,
            "no file is named: expected lines of path, threads, mask and size in MB",
        ));
    }
    Ok(files)
}

/// Removes the comment from a line. `#N` at the start of a line is a drive; other `#` begin comments.
fn comment_cut_off(line: &str) -> &str {
    let drive = line
        .trim_start()
        .strip_prefix('#')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let skipped = if drive { line.find('#').map_or(0, |place| place + 1) } else { 0 };
    match line[skipped..].find('#') {
        Some(place) => &line[..skipped + place],
        None => line,
    }
}

fn line(line: &str) -> Result<File, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (name, threads, mask_text, size) = match fields[..] {
        [name, threads, mask] => (name, threads, mask, None),
        [name, threads, mask, size] => (name, threads, mask, Some(size)),
        _ => return Err(format!("'{line}': expected path, threads, mask and size in MB")),
    };
    let count = threads.parse().ok().filter(|threads| (1..=1024).contains(threads));
    let threads = count.ok_or_else(|| format!("threads '{threads}': expected 1 to 1024"))?;
    let processors = mask(mask_text)?;
    let affinity = if processors.is_empty() { Affinity::Any } else { Affinity::Shared(processors) };
    let size = size.map(|size| {
        let bytes =
            size.parse::<u64>().ok().and_then(|size| size.checked_mul(1 << 20)).filter(|size| *size > 0);
        bytes.ok_or_else(|| format!("size '{size}': expected a whole number of MB above 0"))
    });
    Ok(File { name: name.to_owned(), threads, affinity, size: size.transpose()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_files() {
        let files = parse("# a comment\n/data/a 2 0x0 100\n\n#3 1 0x3 # a drive\n", "param.txt").unwrap();
        let expected = [
            File { name: "/data/a".to_owned(), threads: 2, affinity: Affinity::Any, size: Some(100 << 20) },
            File { name: "#3".to_owned(), threads: 1, affinity: Affinity::Shared(vec![0, 1]), size: None },
        ];
        assert_eq!(files, expected);
    }

    #[test]
    fn nonsense_is_named_with_its_line() {
        for (text, named) in [
            ("", "no file"),
            ("/a", "'/a'"),
            ("/a 0 0x0 1", "threads '0'"),
            ("/a 1 zz 1", "'zz'"),
            ("/a 1 0x0 0", "size '0'"),
            ("/a 1 0x0 1 2", "'/a 1 0x0 1 2'"),
            (r"c:\t.dat 2 0x0 100", "drive letter"),
        ] {
            let error = parse(text, "p").unwrap_err().to_string();
            assert!(error.contains(named) && error.starts_with('p'), "{text}: {error}");
        }
        assert!(parse("\n/a 1 q 1", "p").unwrap_err().place.ends_with(":2"));
    }
}
