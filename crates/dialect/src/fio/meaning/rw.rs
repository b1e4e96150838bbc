//! `rw`: directions of operations, their order and their shares.

use crate::Error;
use crate::fio::options::Options;

/// Kind of access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rw {
    /// Kind of access as typed, without its modifier.
    pub(super) name: String,
    /// True if there are reads.
    pub(super) reads: bool,
    /// True if there are writes.
    pub(super) writes: bool,
    /// True if there are trims.
    pub(super) trims: bool,
    /// True if offsets are random.
    pub(super) random: bool,
    /// Modifier after the colon.
    pub(super) modifier: Option<String>,
    /// Percentage of operations that are writes.
    pub(super) write_percent: u8,
}

impl Rw {
    /// Returns the percentage of operations that are trims.
    pub(super) fn trim_percent(&self) -> u8 {
        if self.trims { 100 } else { 0 }
    }

    /// Returns the values of the directions in use.
    pub(super) fn used<T>(&self, read: T, write: T, trim: T) -> Vec<T> {
        let values = [(self.reads, read), (self.writes, write), (self.trims, trim)];
        values.into_iter().filter(|(occurs, _)| *occurs).map(|(_, value)| value).collect()
    }

    /// Returns true if there are reads and writes.
    pub(super) fn is_mixed(&self) -> bool {
        self.reads && self.writes
    }
}

/// Returns the kind of access.
pub(super) fn from_options(options: &Options<'_>) -> Result<Rw, Error> {
    let text = options.text("rw")?.unwrap_or("read");
    let (name, modifier) = match text.split_once(':') {
        Some((name, modifier)) => (name.trim(), Some(modifier.trim().to_owned())),
        None => (text, None),
    };
    let (reads, writes, trims) = match name {
        "read" | "randread" => (true, false, false),
        "write" | "randwrite" => (false, true, false),
        "rw" | "readwrite" | "randrw" => (true, true, false),
        "trim" | "randtrim" => (false, false, true),
        "trimwrite" | "randtrimwrite" => {
            return options.refuse(
                "rw",
                format!("is {name}: trims that precede writes are not supported"),
                "run a job of trims, and one of writes after a stonewall",
            );
        }
        _ => {
            let expected = "read, write, rw, trim, randread, randwrite, randrw, randtrim";
            return Err(options.error("rw", format!("is `{name}`: expected {expected}")));
        }
    };
    let mix = mix(options)?;
    let write_percent = match (reads, writes) {
        (true, true) => mix,
        (_, writes) => {
            options.note_unused(&["rwmixread", "rwmixwrite"], "only rw and randrw mix");
            if writes { 100 } else { 0 }
        }
    };
    let (random, writes) = (name.starts_with("rand"), write_percent > 0);
    Ok(Rw { name: name.to_owned(), reads, writes, trims, random, modifier, write_percent })
}

/// Returns the percentage of writes in a mix, from the later one of the two options.
fn mix(options: &Options<'_>) -> Result<u8, Error> {
    let read = options.whole("rwmixread", 0..=100)?;
    let write = options.whole("rwmixwrite", 0..=100)?;
    Ok(match (read, write) {
        (Some(read), None) => 100 - read as u8,
        (Some(read), Some(_)) if options.is_after("rwmixread", "rwmixwrite") => 100 - read as u8,
        (_, Some(write)) => write as u8,
        (None, None) => 50,
    })
}
