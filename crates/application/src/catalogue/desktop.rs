//! desktop: the file I/O of office programs and of photo and video editors.

use std::path::PathBuf;

use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};

const PAGE: u64 = 4 << 10;
/// Number of pages of an office file that a transaction reads.
const READS: u64 = 8;
/// Number of pages that it then changes and syncs one by one.
const CHANGES: u64 = 3;
/// Piece of a large file that is read and written at once, in bytes.
const RUN: u64 = 4 << 20;

pub(super) struct Desktop {
    threads: u32,
    size: u64,
    is_office: bool,
}

impl Desktop {
    pub(super) fn new(setting: &Setting) -> Self {
        let is_office = setting.variant == "business";
        let size = match is_office {
            true => setting.scaled((64 << 20) / PAGE, READS) * PAGE,
            false => setting.scaled((256 << 20) / RUN, 2) * RUN,
        };
        Self { threads: setting.threads, size, is_office }
    }
}

/// Returns the paths of the file that is read and, for editors, of the one that is written.
fn names(thread: u32) -> [PathBuf; 2] {
    ["source", "result"].map(|kind| PathBuf::from(format!("{kind}{thread}")))
}

impl Program for Desktop {
    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        let files = if self.is_office { 1 } else { 2 };
        preparation.expect(u64::from(self.threads) * files * self.size);
        for thread in 0..self.threads {
            for name in names(thread).iter().take(files as usize) {
                preparation.file(hand, name, self.size)?;
            }
        }
        Ok(())
    }

    fn actor(&self, number: u32, hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        let [source, result] = names(number);
        let source = hand.open(&source)?;
        if self.is_office {
            let pages = self.size / PAGE;
            return Ok(Box::new(move |hand: &mut Hand<'_>| {
                let began = hand.begin();
                for _ in 0..READS {
                    let page = hand.chance.below(pages);
                    hand.read(source, page * PAGE, PAGE)?;
                }
                for _ in 0..CHANGES {
                    let page = hand.chance.below(pages);
                    hand.write(source, page * PAGE, PAGE)?;
                    hand.fsync(source)?;
                }
                hand.end_durable(began);
                Ok(())
            }));
        }
        let (result, runs, mut next) = (hand.open(&result)?, self.size / RUN, 0);
        Ok(Box::new(move |hand: &mut Hand<'_>| {
            let began = hand.begin();
            hand.read(source, next * RUN, RUN)?;
            hand.write(result, next * RUN, RUN)?;
            next = (next + 1) % runs;
            hand.end(began);
            Ok(())
        }))
    }
}
