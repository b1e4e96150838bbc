//! A cpio archive in the "newc" format, which the kernel unpacks as its first root directory.
//!
//! ```text
//! "070701" | 13 fields of 8 hexadecimal digits | name NUL | pad to 4 | content | pad to 4
//! ```
//! The fields are ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor, rdevmajor, rdevminor, namesize and
//! check (zero). The archive ends with an entry named `TRAILER!!!`. Source: the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst.
//!
//! Parents come before their children whatever the order of the calls, and everything belongs to root, so the same
//! content gives the same bytes.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// What an entry is.
#[derive(Debug)]
enum Entry {
    Directory,
    File { content: Vec<u8>, executable: bool },
    Symlink { to: String },
}

/// The archive as it grows in memory; paths are relative to the root, without a leading slash.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    entries: BTreeMap<String, Entry>,
}

impl Archive {
    /// Adds a directory and its parents.
    pub(crate) fn directory(&mut self, path: &str) {
        let path = path.trim_matches('/');
        for (end, _) in path.match_indices('/').chain([(path.len(), "")]) {
            if end > 0 {
                self.entries.entry(path[..end].to_owned()).or_insert(Entry::Directory);
            }
        }
    }

    /// Adds a plain file, over an earlier one of that name.
    pub(crate) fn file(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.insert(path, Entry::File { content: content.into(), executable: false });
    }

    /// Adds a file that can be run.
    pub(crate) fn program(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.insert(path, Entry::File { content: content.into(), executable: true });
    }

    /// Adds a symbolic link.
    pub(crate) fn symlink(&mut self, path: &str, to: &str) {
        self.insert(path, Entry::Symlink { to: to.to_owned() });
    }

    fn insert(&mut self, path: &str, entry: Entry) {
        let path = path.trim_start_matches('/');
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent);
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// Writes the whole archive.
    ///
    /// # Errors
    /// Those of the writer, and `InvalidInput` for a file of 4 GiB or more, which the format cannot hold.
    pub(crate) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        for (ino, (path, entry)) in self.entries.iter().enumerate() {
            let (mode, content): (u32, &[u8]) = match entry {
                Entry::Directory => (0o040_755, b""),
                Entry::File { content, executable: true } => (0o100_755, content),
                Entry::File { content, executable: false } => (0o100_644, content),
                Entry::Symlink { to } => (0o120_777, to.as_bytes()),
            };
            write_entry(out, Header { ino: ino + 1, mode, path }, content)?;
        }
        write_entry(out, Header { ino: 0, mode: 0, path: "TRAILER!!!" }, b"")
    }
}

/// The fields of an entry that differ between entries.
#[derive(Clone, Copy)]
struct Header<'a> {
    ino: usize,
    mode: u32,
    path: &'a str,
}

fn write_entry(out: &mut impl Write, header: Header<'_>, content: &[u8]) -> io::Result<()> {
    let size = u32::try_from(content.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let name_size = header.path.len() + 1;
    let Header { ino, mode, path } = header;
    let zero = 0;
    write!(out, "070701{ino:08x}{mode:08x}{zero:08x}{zero:08x}{:08x}{zero:08x}{size:08x}", 1)?;
    write!(out, "{zero:08x}{zero:08x}{zero:08x}{zero:08x}{name_size:08x}{zero:08x}{path}\0")?;
    const FIXED_BYTES: usize = 6 + 13 * 8;
    pad(out, FIXED_BYTES + name_size)?;
    out.write_all(content)?;
    pad(out, content.len())
}

/// Zeroes up to the next multiple of four.
fn pad(out: &mut impl Write, written: usize) -> io::Result<()> {
    out.write_all(&[0; 3][..written.wrapping_neg() % 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(archive: &Archive) -> Vec<u8> {
        let mut out = Vec::new();
        archive.write_to(&mut out).unwrap();
        out
    }

    #[test]
    fn an_empty_archive_is_its_trailer() {
        let out = bytes(&Archive::default());
        assert!(out.starts_with(b"070701"));
        assert_eq!(&out[110..121], b"TRAILER!!!\0");
        assert_eq!(out.len(), 124);
    }

    #[test]
    fn parents_come_first_and_content_is_padded() {
        let mut archive = Archive::default();
        archive.program("/a/b/c", "hello");
        archive.directory("a/b");
        let out = bytes(&archive);
        let position = |name: &[u8]| out.windows(name.len()).position(|window| window == name).unwrap();
        assert!(position(b"a\0") < position(b"a/b\0"));
        assert!(position(b"a/b\0") < position(b"a/b/c\0"));
        assert_eq!(position(b"hello") % 4, 0);
        assert_eq!(out.len() % 4, 0);
    }

    /// The format as another program reads it.
    #[test]
    fn another_cpio_can_list_it() {
        let Some(busybox) = crate::packages::find("busybox") else {
            eprintln!("SKIPPED: no busybox on this machine");
            return;
        };
        let mut archive = Archive::default();
        archive.symlink("bin/sh", "busybox");
        archive.file("etc/motto", "flush");
        let mut child = std::process::Command::new(busybox)
            .args(["cpio", "-it"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes(&archive)).unwrap();
        let listed = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(listed, "bin\nbin/sh\netc\netc/motto\n");
    }
}
