//! Parser for /proc/PID/mountinfo, the mount table. proc_pid_mountinfo(5), fs/proc_namespace.c.
//!
//! ```text
//! 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
//! id parent dev root point options tags...  - type source super-options
//! ```
//! Blank, tab, newline and backslash in a field are escaped as a backslash and three octal digits. Some file
//! systems do not escape their options (overlayfs of Linux 6.5, 9p of WSL), so the options are the rest of
//! the line.

use super::DeviceNumber;

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Mount number, `stx_mnt_id` of statx(2).
    pub id: u64,
    /// Mount number of the parent mount.
    pub parent: u64,
    /// Device of the superblock; anonymous if the file system has no device or several.
    pub device: DeviceNumber,
    /// Directory of the file system that is mounted.
    pub root: String,
    /// Mount point.
    pub point: String,
    /// Options of this mount: `rw`, `noatime`.
    pub options: Vec<String>,
    /// File system type with its subtype: `ext4`, `fuse.sshfs`.
    pub kind: String,
    /// Source: a device, a server, `none`.
    pub source: String,
    /// Options of the file system itself.
    pub super_options: Vec<String>,
}

impl Mount {
    /// Returns true if the mount or the file system is read-only.
    pub fn is_read_only(&self) -> bool {
        self.options.iter().chain(&self.super_options).any(|option| option == "ro")
    }

    /// Returns the value of the super option `name`, `""` if it has none.
    pub fn super_option(&self, name: &str) -> Option<&str> {
        self.super_options.iter().find_map(|option| match option.split_once('=') {
            Some((key, value)) if key == name => Some(value),
            None if option == name => Some(""),
            _ => None,
        })
    }
}

/// Returns the mounts that a process sees, by its number or `self`; none if they cannot be read.
pub fn mounts_of(process: &str) -> Vec<Mount> {
    parse(&std::fs::read(format!("/proc/{process}/mountinfo")).unwrap_or_default())
}

/// Parses all lines of a mount table, and skips lines in another format.
pub fn parse(bytes: &[u8]) -> Vec<Mount> {
    bytes.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

/// Parses a line; `None` if a field is missing or a number malformed.
pub fn parse_line(line: &[u8]) -> Option<Mount> {
    // A separate hyphen ends the optional tags. No earlier field is a single hyphen: root and mount point
    // begin with a slash or are names in brackets.
    let (line, rest) = split_once(line, b" - ")?;
    let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let mut text = || fields.next().map(|field| String::from_utf8_lossy(field).into_owned());
    let id = text()?.parse().ok()?;
    let parent = text()?.parse().ok()?;
    let device = text()?.parse().ok()?;
    let root = unescape(fields.next()?);
    let point = unescape(fields.next()?);
    let options = options(fields.next()?);
    let (kind, rest) = split_once(rest, b" ").unwrap_or((rest, b""));
    let (source, super_options) = source_and_options(rest);
    Some(Mount {
        id,
        parent,
        device,
        root,
        point,
        options,
        kind: Some(unescape(kind)).filter(|kind| !kind.is_empty())?,
        source: unescape(source),
        super_options: self::options(super_options),
    })
}

fn split_once<'a>(bytes: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(separator.len()).position(|window| window == separator)?;
    Some((&bytes[..at], &bytes[at + separator.len()..]))
}

/// Splits the part after the type into source and options. The options begin with `rw` or `ro`
/// (show_mountinfo, fs/proc_namespace.c) and may contain blanks, as may an unescaped source. Some file
/// systems print an empty source as nothing at all.
fn source_and_options(rest: &[u8]) -> (&[u8], &[u8]) {
    let begins_options = |at: &usize| {
        let behind = &rest[*at..];
        let is_whole = behind.get(2).is_none_or(|byte| *byte == b',');
        (behind.starts_with(b"rw") || behind.starts_with(b"ro"))
            && is_whole
            && (*at == 0 || rest[at - 1] == b' ')
    };
    let start = (0..rest.len()).find(begins_options);
    let start = start.or_else(|| rest.iter().position(|byte| *byte == b' ').map(|blank| blank + 1));
    let start = start.unwrap_or(0);
    (rest[..start].trim_ascii(), &rest[start..])
}

/// Splits options at commas, except inside a quoted value (SELinux contexts).
fn options(field: &[u8]) -> Vec<String> {
    let mut quoted = false;
    field
        .split(|byte| {
            quoted ^= *byte == b'"';
            *byte == b',' && !quoted
        })
        .map(unescape)
        .filter(|option| !option.is_empty())
        .collect()
}

/// Decodes escapes like `\040` (`mangle`, fs/seq_file.c). A backslash without three octal digits stays.
pub fn unescape(field: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'\\'
            && let Some(&[high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7']) = tail.get(..3)
        {
            bytes.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
            rest = &tail[3..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_tags_and_escapes() {
        let line = br"36 35 98:0 /a\040b /mnt\0112 rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw,errors=continue";
        let mount = parse_line(line).unwrap();
        assert_eq!((mount.id, mount.parent), (36, 35));
        assert_eq!(mount.root, "/a b");
        assert_eq!(mount.point, "/mnt\t2");
        assert_eq!(mount.kind, "ext3");
        assert_eq!(mount.source, "/dev/root");
        assert_eq!(mount.super_option("errors"), Some("continue"));
        assert_eq!(mount.super_option("rw"), Some(""));
        assert_eq!(mount.super_option("nobarrier"), None);
    }

    #[test]
    fn an_overlay_keeps_its_directories() {
        let line = br#"9 1 0:30 / / rw - overlay overlay rw,context="u:r:t:s0:c1,c2",lowerdir=/l1:/l2,upperdir=/u\040p,workdir=/w"#;
        let mount = parse_line(line).unwrap();
        assert_eq!(mount.super_option("upperdir"), Some("/u p"));
        assert_eq!(mount.super_option("workdir"), Some("/w"));
        assert_eq!(mount.super_option("context"), Some("\"u:r:t:s0:c1,c2\""));
    }

    #[test]
    fn options_and_sources_with_blanks_are_read_to_the_end_of_the_line() {
        // Linux 6.5 (btrbk 563): the folders of an overlay are not escaped.
        let line = b"32 1 0:26 / /m rw - overlay none rw,lowerdir=/my disk/low,upperdir=/my disk/up,workdir=/w,volatile";
        let mount = parse_line(line).unwrap();
        assert_eq!(mount.super_option("upperdir"), Some("/my disk/up"));
        assert_eq!(mount.super_option("volatile"), Some(""));
        // WSL (9p): the source is a folder of Windows, and the options have it again.
        let line = b"88 82 0:52 / /Docker rw,noatime - 9p C:\\134Program\\040Files\\134Docker rw,dirsync,aname=drvfs;path=C:\\Program Files\\Docker;symlinkroot=/mnt/,access=client";
        let mount = parse_line(line).unwrap();
        assert_eq!(mount.source, r"C:\Program Files\Docker");
        assert_eq!(mount.super_option("access"), Some("client"));
        assert_eq!(mount.super_option("dirsync"), Some(""));
        let line = b"9 1 0:9 / /x rw - 9p my share ro,sync";
        let mount = parse_line(line).unwrap();
        assert_eq!(
            (mount.source.as_str(), mount.super_options.as_slice()),
            ("my share", &["ro".to_owned(), "sync".to_owned()][..])
        );
    }

    #[test]
    fn short_and_empty_fields_are_survived() {
        assert_eq!(parse_line(b"1 2 0:3 / /x rw - tmpfs  rw").unwrap().source, "");
        assert_eq!(parse_line(b"1 2 0:3 / /x rw tmpfs none rw"), None);
        assert_eq!(parse_line(b"x 2 0:3 / /x rw - tmpfs none rw"), None);
        assert_eq!(unescape(br"a\1"), "a\\1");
        assert_eq!(unescape(br"a\777"), "a\\777");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            parse(&bytes);
        }

        #[test]
        fn near_lines_are_taken_without_panic(line in r"[0-9]{1,3} [0-9]{1,3} [0-9]{1,3}:[0-9]{1,3} /[\\0-9 a]{0,8} / rw[, \-a-z0-9\\]{0,30}") {
            parse(line.as_bytes());
        }
    }
}
