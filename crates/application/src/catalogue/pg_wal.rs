//! pg-wal: PostgreSQL's write-ahead log with its group commit.

use std::path::PathBuf;
use std::sync::Mutex;

use plumb_block::FileId;
use plumb_load::LoadOutcome;

use crate::engine::group_commit::{GroupCommit, THINK_MEAN};
use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step, lock};

const PAGE: u64 = 8 << 10;
const SEGMENT_PAGES: u64 = (16 << 20) / PAGE;
/// Number of segments, which are reused in turn.
const SEGMENTS: u64 = 4;

/// Numbers of pages in a write, each with its weight.
const SINGLE: &[(u64, u64)] = &[(1, 25), (2, 48), (3, 26)];
const EIGHT: &[(u64, u64)] = &[(1, 67), (2, 25), (3, 6)];
const STEADY: &[(u64, u64)] = &[(1, 1)];

pub(super) struct PgWal {
    threads: u32,
    sizes: &'static [(u64, u64)],
    /// True if each write begins with the last page of the previous one.
    rewrites: bool,
    thinks: bool,
    segments: u64,
    commit: GroupCommit,
    log: Mutex<Option<Log>>,
}

/// End of the log, owned by the flusher.
struct Log {
    file: FileId,
    segment: u64,
    page: u64,
}

impl PgWal {
    pub(super) fn new(setting: &Setting) -> Self {
        let sizes = match setting.variant {
            "eight-clients" => EIGHT,
            "steady-8k" => STEADY,
            _ => SINGLE,
        };
        Self {
            threads: setting.threads,
            sizes,
            rewrites: setting.variant != "steady-8k",
            thinks: setting.variant == "eight-clients",
            segments: setting.scaled(SEGMENTS, 2),
            commit: GroupCommit::default(),
            log: Mutex::new(None),
        }
    }

    fn segment(number: u64) -> PathBuf {
        PathBuf::from(format!("pg_wal/{number:024X}"))
    }

    /// Writes the pages of one commit at the end of the log, and makes them durable.
    fn flush(&self, hand: &mut Hand<'_>) -> Step<()> {
        let pages = hand.chance.weighed(self.sizes);
        let mut log = lock(&self.log);
        let mut at = match log.take() {
            Some(log) if log.page + pages <= SEGMENT_PAGES => log,
            Some(full) => {
                hand.close(full.file)?;
                let segment = (full.segment + 1) % self.segments;
                Log { file: hand.open(&Self::segment(segment))?, segment, page: 0 }
            }
            None => Log { file: hand.open(&Self::segment(0))?, segment: 0, page: 0 },
        };
        hand.write(at.file, at.page * PAGE, pages * PAGE)?;
        hand.fdatasync(at.file)?;
        at.page += pages - u64::from(self.rewrites);
        *log = Some(at);
        Ok(())
    }
}

impl Program for PgWal {
    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        preparation.expect(self.segments * SEGMENT_PAGES * PAGE);
        hand.create_directory("pg_wal".as_ref())?;
        for number in 0..self.segments {
            preparation.file(hand, &Self::segment(number), SEGMENT_PAGES * PAGE)?;
        }
        Ok(())
    }

    fn actor(&self, _number: u32, hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        let mut log = lock(&self.log);
        if log.is_none() {
            *log = Some(Log { file: hand.open(&Self::segment(0))?, segment: 0, page: 0 });
        }
        Ok(Box::new(|hand: &mut Hand<'_>| {
            if self.thinks {
                let time = hand.chance.exponential(THINK_MEAN);
                hand.think(time)?;
            }
            let began = hand.begin();
            let halts = hand.halts();
            self.commit.commit(halts, || self.flush(hand))?;
            hand.end_durable(began);
            Ok(())
        }))
    }

    fn notes(&self, measured: &LoadOutcome) -> Vec<String> {
        let Some(ratio) = measured.syncs_per_transaction().filter(|_| self.threads > 1) else {
            return Vec::new();
        };
        vec![format!(
            "{} clients shared syncs: {ratio:.2} syncs per transaction (0.82 in a traced PostgreSQL; the \
             slower a flush, the more clients share it)",
            self.threads
        )]
    }
}
