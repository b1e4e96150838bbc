//! Durable contents, in memory as extents or in a file. With a backing file, the extents only mark unreadable
//! blocks.

use plumb_block::{ExtentMap, Lba, LbaRange};

use super::content::Content;
use super::file::BackingFile;
use super::shape::{Backing, BackingError};

/// Length of the pieces in which bytes are stored, so that a remaining block of a long write does not keep
/// all of it.
const PIECE_BYTES: usize = 1 << 16;

/// Minimum length of a run of zeroes that is stored without memory, unless it fills a logical block.
const ZEROES_BYTES: usize = 1 << 12;

/// The medium.
#[derive(Debug)]
pub(super) struct Medium {
    block_bytes: usize,
    extents: ExtentMap<Content>,
    /// Backing file, if there is one.
    pub(super) file: Option<BackingFile>,
}

/// Content of a run on the medium.
pub(super) enum MediumContent<'a> {
    Known(&'a Content),
    /// Contents of the backing file.
    InFile,
}

impl Medium {
    pub(super) fn new(block_bytes: usize, backing: Backing) -> Self {
        let file = match backing {
            Backing::File(file) => Some(BackingFile::new(file)),
            Backing::Memory | Backing::Nothing => None,
        };
        Self { block_bytes, extents: ExtentMap::default(), file }
    }

    /// Makes a run durable. It is in the file at the latest after the next [`drain`](Self::drain).
    pub(super) fn store(&mut self, range: LbaRange, content: &Content) {
        if self.file.is_some() {
            return self.store_in_file(range, content);
        }
        match content {
            Content::Hole => self.extents.remove(range),
            Content::Bytes(stored) if range.nlb as usize * self.block_bytes > PIECE_BYTES => {
                for piece in self.pieces(range) {
                    self.store_bytes(piece, stored.slice(piece, self.block_bytes));
                }
            }
            content => self.extents.insert(range, content.clone()),
        }
    }

    /// Stores a copy of the bytes of a run, with long runs of zeroes as extents.
    fn store_bytes(&mut self, range: LbaRange, bytes: &[u8]) {
        // Comparing two slices handles many bytes at a time.
        let are_zeroes =
            |unit: &[u8]| unit.chunks(ZEROES_BYTES).all(|part| *part == [0_u8; ZEROES_BYTES][..part.len()]);
        let units = bytes.chunks(ZEROES_BYTES.max(self.block_bytes));
        let units: Vec<(usize, bool)> = units.map(|unit| (unit.len(), are_zeroes(unit))).collect();
        let mut from = 0;
        for alike in units.chunk_by(|(_, one), (_, next)| one == next) {
            let until = from + alike.iter().map(|(length, _)| length).sum::<usize>();
            let first = Lba(range.lba.0 + (from / self.block_bytes) as u64);
            let content = match alike {
                [(_, true), ..] => Content::Zeroes,
                _ => Content::bytes(first, &bytes[from..until]),
            };
            let run = LbaRange::new(first, ((until - from) / self.block_bytes) as u64);
            self.extents.insert(run, content);
            from = until;
        }
    }

    fn store_in_file(&mut self, range: LbaRange, content: &Content) {
        if *content == Content::Unreadable {
            return self.extents.insert(range, Content::Unreadable);
        }
        if !self.extents.is_empty() {
            self.extents.remove(range);
        }
        let block_bytes = self.block_bytes as u64;
        let (offset, length) = (range.lba.0 * block_bytes, range.nlb * block_bytes);
        let pieces = self.pieces(range);
        let Some(file) = &mut self.file else { return };
        match content {
            Content::Hole => file.punch(offset, length),
            Content::Zeroes => file.zero(offset, length),
            content => {
                let mut bytes = vec![0; length.min(PIECE_BYTES as u64) as usize];
                for piece in pieces {
                    let bytes = &mut bytes[..(piece.nlb * block_bytes) as usize];
                    content.fill(piece, self.block_bytes, bytes);
                    file.write(piece.lba.0 * block_bytes, bytes);
                }
            }
        }
    }

    fn pieces(&self, range: LbaRange) -> impl Iterator<Item = LbaRange> + use<> {
        let step = (PIECE_BYTES / self.block_bytes) as u64;
        let starts = (range.lba.0..range.end().0).step_by(step as usize);
        starts.map(move |first| LbaRange::new(Lba(first), step.min(range.end().0 - first)))
    }

    /// Calls `each` for the contents of `range`, run by run, in order and without gaps.
    pub(super) fn visit<'a>(&'a self, range: LbaRange, each: &mut impl FnMut(LbaRange, MediumContent<'a>)) {
        let mut at = range.lba.0;
        let unknown =
            || if self.file.is_some() { MediumContent::InFile } else { MediumContent::Known(&Content::Hole) };
        for (run, content) in self.extents.over(range) {
            if at < run.lba.0 {
                each(LbaRange::new(Lba(at), run.lba.0 - at), unknown());
            }
            each(run, MediumContent::Known(content));
            at = run.end().0;
        }
        if at < range.end().0 {
            each(LbaRange::new(Lba(at), range.end().0 - at), unknown());
        }
    }

    /// Reads the file's bytes of a run into `into`, which must have the same length.
    pub(super) fn read_file(&self, range: LbaRange, into: &mut [u8]) -> Result<(), BackingError> {
        let offset = range.lba.0 * self.block_bytes as u64;
        self.file.as_ref().map_or(Ok(()), |file| file.read(offset, into))
    }

    /// Returns the bytes of a block; `None` if it is unreadable.
    pub(super) fn block(&mut self, lba: Lba) -> Option<Vec<u8>> {
        self.drain();
        let (mut bytes, mut is_read) = (vec![0; self.block_bytes], false);
        self.visit(LbaRange::new(lba, 1), &mut |run, held| {
            is_read = match held {
                MediumContent::Known(content) => content.fill(run, self.block_bytes, &mut bytes),
                MediumContent::InFile => self.read_file(run, &mut bytes).is_ok(),
            };
        });
        is_read.then_some(bytes)
    }

    /// Writes the combined bytes to the file.
    pub(super) fn drain(&mut self) {
        if let Some(file) = &mut self.file {
            file.drain();
        }
    }
}
