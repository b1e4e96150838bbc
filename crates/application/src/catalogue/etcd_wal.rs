//! etcd-wal: the disk test recommended to users of etcd. Records are appended and synced until a file is
//! full.

use std::path::PathBuf;

use crate::engine::{Actor, Hand, Program, Step};

const RECORD: u64 = 2300;
/// Number of whole records in 22 MiB.
const WRITES: u64 = (22 << 20) / RECORD;

pub(super) struct EtcdWal;

impl Program for EtcdWal {
    fn actor(&self, number: u32, hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        let path = move |generation: u64| PathBuf::from(format!("{number}-{generation:016x}.wal"));
        let mut file = hand.create(&path(0))?;
        let (mut generation, mut written) = (0, 0);
        Ok(Box::new(move |hand: &mut Hand<'_>| {
            if written == WRITES {
                // Replace the full file with a new one.
                file = hand.unmeasured(|hand| {
                    hand.close(file)?;
                    hand.unlink(&path(generation))?;
                    hand.create(&path(generation + 1))
                })?;
                (generation, written) = (generation + 1, 0);
            }
            let began = hand.begin();
            hand.append(file, RECORD)?;
            hand.fdatasync(file)?;
            written += 1;
            hand.end_durable(began);
            Ok(())
        }))
    }
}
