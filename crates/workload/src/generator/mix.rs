//! Kind and length of each operation.

use plumb_block::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::block_sizes::BlockSplit;
use crate::workload::Workload;

/// Kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Trim,
}

/// Probabilities of reads, writes and trims as fractions of 2^64; 2^64 itself means always.
#[derive(Debug, Clone)]
pub(crate) struct Mix {
    write_below: u128,
    change_below: u128,
}

/// Lengths by kind.
#[derive(Debug, Clone)]
pub(crate) struct Lengths {
    /// Length of all operations, or zero if they differ.
    only: u64,
    read: Split,
    write: Split,
    trim: Split,
}

/// Lengths, each with the last fraction of 2^64 that selects it; earlier fractions select earlier entries.
#[derive(Debug, Clone)]
struct Split(Vec<(u64, u64)>);

impl Mix {
    pub(crate) fn new(workload: &Workload) -> Self {
        let (write, trim) = (u128::from(workload.write_percent), u128::from(workload.trim_percent));
        Self { write_below: (write << 64) / 100, change_below: ((write + trim) << 64) / 100 }
    }

    /// Returns the kind that `fraction` selects.
    #[inline]
    pub(crate) fn kind(&self, fraction: u64) -> Kind {
        let fraction = u128::from(fraction);
        if fraction < self.write_below {
            Kind::Write
        } else if fraction < self.change_below {
            Kind::Trim
        } else {
            Kind::Read
        }
    }
}

impl Lengths {
    pub(crate) fn new(workload: &Workload) -> Self {
        let (shortest, longest) = (workload.block_min(), workload.block_max());
        let blocks = &workload.blocks;
        Self {
            only: if shortest == longest { longest.0 } else { 0 },
            read: Split::new(&blocks.read),
            write: Split::new(&blocks.write),
            trim: Split::new(&blocks.trim),
        }
    }

    /// Returns the length of an operation of `kind`. Draws a number only if there is a choice.
    #[inline]
    pub(crate) fn draw(&self, kind: Kind, random: &mut Xoshiro256PlusPlus) -> u64 {
        if self.only > 0 { self.only } else { self.draw_split(kind, random) }
    }

    fn draw_split(&self, kind: Kind, random: &mut Xoshiro256PlusPlus) -> u64 {
        let Split(split) = match kind {
            Kind::Read => &self.read,
            Kind::Write => &self.write,
            Kind::Trim => &self.trim,
        };
        if let [(_, length)] = split[..] {
            return length;
        }
        let fraction = random.next_u64();
        split[split.partition_point(|(upto, _)| *upto < fraction)].1
    }
}

impl Split {
    fn new(split: &BlockSplit) -> Self {
        let mut percent = 0;
        let upto = |(Bytes(length), share): &(Bytes, u8)| {
            percent += u128::from(*share);
            (((percent << 64) / 100 - 1) as u64, *length)
        };
        Self(split.0.iter().map(upto).collect())
    }
}
