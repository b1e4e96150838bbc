//! pg-wal: PostgreSQL's write-ahead log, with its group commit.

use std::path::PathBuf;
use std::sync::Mutex;

use plumb_block::{Bytes, FileId, Nanos};

use crate::engine::group_commit::{GroupCommit, THINK_MEAN};
use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step, lock};
use crate::measured::Measured;
use crate::profile::{Extent, FileWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "pg-wal",
    summary: "PostgreSQL's log: 8 to 24 KiB and an fdatasync for each commit, or for several at once",
    pattern: "Sequential writes of whole 8 KiB pages into segments of 16 MiB that exist already, fdatasync after \
              each; the last page of a write is written again by the next. single: 8, 16 and 24 KiB in the ratio \
              25:48:26. eight-clients: 67:25:6, and clients whose records are there when a flush begins share it; \
              0.82 syncs a transaction where a flush takes 60 us, fewer where it takes longer. steady-8k: 8 KiB, each \
              page once.",
    provenance: Provenance::Traced,
    source: "The system calls of a PostgreSQL server with one and with eight clients; sizes and the ratio of syncs to \
             transactions are from that trace. Estimated: the time a client computes between commits (exponential, \
             mean 525 us), chosen so that the traced ratio comes out where a flush takes 60 us.",
    leaves_out: "1 to 2 % of writes were longer than 24 KiB; the size of a write does not depend on how many \
                 transactions share it; clients sleep rather than compute; data files, checkpoints and the renaming \
                 of old segments.",
    criteria: &[],
    variants: &[
        Variant { name: "single", summary: "one client, one sync for each commit" },
        Variant { name: "eight-clients", summary: "eight clients that share syncs" },
        Variant { name: "steady-8k", summary: "one 8 KiB page for each commit" },
    ],
    extent: Extent::Time(Nanos::secs(30)),
    work: Work::Files(FileWork {
        program: |setting| Box::new(PgWal::new(setting)),
        room: Bytes::mib(64),
        each_thread: false,
    }),
};

const PAGE: u64 = 8 << 10;
const SEGMENT_PAGES: u64 = (16 << 20) / PAGE;
/// Segments are used in turn.
const SEGMENTS: u64 = 4;

/// How many pages a write has, and the weight of each.
const SINGLE: &[(u64, u64)] = &[(1, 25), (2, 48), (3, 26)];
const EIGHT: &[(u64, u64)] = &[(1, 67), (2, 25), (3, 6)];
const STEADY: &[(u64, u64)] = &[(1, 1)];

struct PgWal {
    threads: u32,
    sizes: &'static [(u64, u64)],
    /// Whether the last page of a write is written again by the next.
    rewrites: bool,
    thinks: bool,
    segments: u64,
    commit: GroupCommit,
    log: Mutex<Option<Log>>,
}

/// Where the log ends. Held by the flusher.
struct Log {
    file: FileId,
    segment: u64,
    page: u64,
}

struct Client<'a>(&'a PgWal);

impl PgWal {
    fn new(setting: &Setting) -> Self {
        let (own, sizes) = match setting.variant {
            "eight-clients" => (8, EIGHT),
            "steady-8k" => (1, STEADY),
            _ => (1, SINGLE),
        };
        Self {
            threads: setting.threads_or(own),
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

    /// Writes one commit's pages at the end of the log and makes them durable.
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
    fn threads(&self) -> u32 {
        self.threads
    }

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
        Ok(Box::new(Client(self)))
    }

    fn notes(&self, measured: &Measured) -> Vec<String> {
        let Some(ratio) = measured.syncs_per_transaction().filter(|_| self.threads > 1) else {
            return Vec::new();
        };
        vec![format!(
            "{} clients shared syncs: {ratio:.2} syncs a transaction (0.82 were traced; a slower flush is shared by \
             more)",
            self.threads
        )]
    }
}

impl Actor for Client<'_> {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let wal = self.0;
        if wal.thinks {
            let time = hand.chance.exponential(THINK_MEAN);
            hand.think(time)?;
        }
        let began = hand.begin();
        let halts = hand.halts();
        wal.commit.commit(halts, || wal.flush(hand))?;
        hand.end_durable(began);
        Ok(())
    }
}
