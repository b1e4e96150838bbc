//! `rw`: which directions, in which order, and in which proportion.

use crate::Error;
use crate::fio::options::Options;

/// The kind of access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rw {
    /// Kind of access as typed, without its modifier.
    pub(super) name: String,
    /// Reads occur.
    pub(super) reads: bool,
    /// Writes occur.
    pub(super) writes: bool,
    /// Trims occur.
    pub(super) trims: bool,
    /// Places are drawn.
    pub(super) random: bool,
    /// Modifier that stood after a colon.
    pub(super) modifier: Option<String>,
    /// How many of 100 operations are writes.
    pub(super) write_percent: u8,
}

impl Rw {
    /// Returns how many of 100 operations are trims.
    pub(super) fn trim_percent(&self) -> u8 {
        if self.trims { 100 } else { 0 }
    }

    /// Returns, of one value for each direction, those of the directions that occur.
    pub(super) fn used<T>(&self, read: T, write: T, trim: T) -> Vec<T> {
        let values = [(self.reads, read), (self.writes, write), (self.trims, trim)];
        values.into_iter().filter(|(occurs, _)| *occurs).map(|(_, value)| value).collect()
    }

    /// Reads and writes both.
    pub(super) fn is_mixed(&self) -> bool {
        self.reads && self.writes
    }
}

/// Returns the kind of access that `options` describe.
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

/// Returns the share of writes of a mix: whichever of the two was typed later.
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
