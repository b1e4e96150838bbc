//! Tests of blocks that are not multiples of a sector, through the page cache: guards against rounded
//! offsets.

use std::path::Path;
use std::sync::Arc;

use crate::support::{answer, queue};
use plumb_block::{
    Bytes, Caching, Device as _, EngineChoice, Errno, ErrorKind, Lba, LbaRange, Outcome, Pattern, Payload,
    RealClock, Request, Tag,
};
use plumb_linux::{FileDevice, FileOptions};

const BLOCK: u64 = 2300;
const BLOCKS: u64 = 100;

fn open(path: &Path, options: FileOptions) -> plumb_block::Result<FileDevice> {
    FileDevice::open(path, options, Arc::new(RealClock::start()))
}

fn pattern(lba: u64) -> Pattern {
    Pattern { seed: 5, lba: Lba(lba), generation: 1 }
}

#[test]
fn every_engine_addresses_in_the_blocks_that_were_asked_for() {
    for options in [
        FileOptions::write_buffered(),
        FileOptions::write_buffered().engine(EngineChoice::Synchronous),
        FileOptions::write_buffered().caching(Caching::Mapped),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        // A part of a block is left over at the end.
        let mut expected = vec![9; (BLOCK * BLOCKS + 1111) as usize];
        std::fs::write(&path, &expected).unwrap();
        let options = options.logical_block(Some(Bytes(BLOCK)));
        let device = match open(&path, options) {
            Ok(device) => device,
            Err(error) => return plumb_testkit::skip(&format!("{options:?}: {error}")),
        };
        let info = device.info();
        assert_eq!((info.logical_block, info.size), (Bytes(BLOCK), Bytes(BLOCK * BLOCKS)), "{options:?}");
        let (mut queue, pool) = queue(&device);
        for (lba, nlb, fua) in [(0, 1, false), (7, 3, true), (BLOCKS - 2, 2, false)] {
            let range = LbaRange::new(Lba(lba), nlb);
            let payload = Payload::Pattern(pattern(lba));
            let write = Request::write(Tag(1), range, payload);
            let write = if fua { Request::write_fua(Tag(1), range, write.payload) } else { write };
            assert_eq!(answer(&mut *queue, write).outcome, Outcome::Done, "{options:?} at {lba}");
            let bytes = &mut expected[(lba * BLOCK) as usize..((lba + nlb) * BLOCK) as usize];
            pattern(lba).fill(BLOCK as usize, bytes);
        }
        assert_eq!(
            answer(&mut *queue, Request::discard(Tag(1), LbaRange::new(Lba(20), 2))).outcome,
            Outcome::Done
        );
        expected[20 * BLOCK as usize..22 * BLOCK as usize].fill(0);
        let beyond = LbaRange::new(Lba(BLOCKS), 1);
        assert_eq!(
            answer(&mut *queue, Request::read(Tag(1), beyond)).outcome,
            Outcome::Failed(Errno::EINVAL)
        );
        assert_eq!(answer(&mut *queue, Request::flush(Tag(1))).outcome, Outcome::Done);
        let all = LbaRange::new(Lba(8), 20);
        let read =
            answer(&mut *queue, Request::read_into(Tag(1), all, pool.take(Bytes(BLOCK * 20)).unwrap()));
        let Payload::Into(bytes) = &read.payload else { panic!("{read:?}") };
        assert!(bytes[..] == expected[8 * BLOCK as usize..28 * BLOCK as usize], "{options:?}");
        assert!(std::fs::read(&path).unwrap() == expected, "{options:?}");
    }
}

#[test]
fn past_the_page_cache_the_blocks_are_those_of_the_device() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, vec![9; 1 << 20]).unwrap();
    match (
        open(&path, FileOptions::write_direct()),
        open(&path, FileOptions::write_direct().logical_block(Some(Bytes(100)))),
    ) {
        (Ok(plain), Ok(asked)) => assert_eq!(plain.info().logical_block, asked.info().logical_block),
        (Err(error), _) | (_, Err(error)) => plumb_testkit::skip(&format!("{error}")),
    }
    let nothing = open(&path, FileOptions::write_buffered().logical_block(Some(Bytes(0)))).err().unwrap();
    assert_eq!(nothing.kind, ErrorKind::Invalid);
}
