//! Arguments of `plumb cache`.

use std::num::NonZeroU32;

use clap::{Args, Subcommand, ValueEnum};
use plumb_block::{Bytes, Nanos};
use plumb_cache::{Layout, Mode, Uuid};
use plumb_caches::{Sleep, Tuning};

use super::exports::ExportArguments;
use super::output::PrintFormat;

/// Arguments of `plumb cache`.
#[derive(Debug, Args)]
#[command(mut_args(|argument| argument.global(true)))]
pub(crate) struct CacheArguments {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,

    #[command(flatten)]
    pub(crate) printed: PrintFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Make a cache: write its log, and mark the device that will need it
    ///
    /// What is on the backing device stays. What is on the devices of the log goes: a device that is in use,
    /// or a file that plumb did not make, is refused unless --overwrite or --destroy says so.
    Create(Box<CreateArguments>),
    /// Rebuild a cache's configuration from its devices, after a reinstall or when device paths changed
    ///
    /// Only name and mode must be given: the devices say everything else.
    Adopt(AdoptArguments),
    /// Say how large a log your own writes need, by replaying a recording of them
    ///
    /// The recording is replayed in simulated time over logs of several sizes.
    Advise(Box<AdviseArguments>),
    /// Serve a cache until it is stopped or the command is interrupted; recovers its log first
    Serve(Box<ServeArguments>),
    /// Show the status of one cache, or of all
    Status {
        /// The name of the cache; without it all are shown
        name: Option<String>,

        /// Print metrics in the text format of Prometheus
        #[arg(long, conflicts_with_all = ["json", "format"])]
        prometheus: bool,

        /// Show requests to caches and their write-back as they happen, until q is pressed
        #[arg(long, conflicts_with_all = ["json", "format", "prometheus"])]
        tui: bool,
    },
    /// Change when writes are acknowledged, now and when the cache is served again
    Mode {
        /// The name of the cache
        name: String,

        /// When writes are acknowledged
        mode: ModeWord,
    },
    /// Change when data is written back, and the endurance of the log
    ///
    /// The settings hold at once, and when the cache is served again.
    Tune {
        /// The name of the cache
        name: String,

        /// Write back soon again, as a cache does without --write-back-at
        #[arg(long, conflicts_with_all = ["write_back_at", "write_back_age", "spin_down"])]
        write_back_soon: bool,

        #[command(flatten)]
        tuning: TuningArguments,
    },
    /// Write everything to the backing device, and keep serving
    Drain {
        /// The name of the cache
        name: String,
    },
    /// Enlarge the log, or cache all of a backing device that has grown
    ///
    /// The cache may be served meanwhile. A log is never made smaller.
    Grow {
        /// The name of the cache
        name: String,

        /// The backing device has grown: cache all of it. Block devices take the new size at once, through
        /// ublk from Linux 6.16 on; NBD clients when they connect again
        #[arg(long)]
        backing: bool,

        /// The bytes used of each device of the log from then on; files are made longer
        #[arg(long, value_name = "SIZE", required_unless_present = "backing", conflicts_with = "backing")]
        size: Option<Bytes>,
    },
    /// Replace one device of a mirrored log, and copy everything to the new one
    ///
    /// A leg is one of the devices that hold the log. The device that is named may be new, or the one that
    /// failed. The cache goes on with the others meanwhile; `status` shows the new one as `resilvering`, and
    /// as `live` once it has everything. If this is interrupted, copying goes on; if the server ends, it
    /// begins again.
    ReplaceLeg(Box<ReplaceLegArguments>),
    /// Give the cache another log; the present one may be read-only, or fail
    ///
    /// The cache may be served or not.
    /// Everything in the present log is written back first. Meanwhile writes go to the backing device. If
    /// this is interrupted that stays so until the same command has ended.
    ReplaceLog(Box<ReplaceLogArguments>),
    /// Stop serving; the log keeps data that is not written back yet
    Stop {
        /// The name of the cache
        name: String,

        /// Do this even if it is in use: its users get I/O errors
        ///
        /// What only a deleted log holds is written back first all the same; a second signal to the server
        /// ends it at once.
        #[arg(long, visible_alias = "force")]
        cut_off: bool,
    },
    /// Write everything to the backing device, and remove the cache; can be interrupted and resumed
    Detach {
        /// The name of the cache
        name: String,

        /// Do this even if it is in use: its users get I/O errors
        ///
        /// What only a deleted log holds is written back first all the same; a second signal to the server
        /// ends it at once.
        #[arg(long, visible_alias = "force")]
        cut_off: bool,

        /// Do not open the log: data that only it holds is lost. UUID is that of the cache, as its status
        /// prints it
        #[arg(long, value_name = "UUID")]
        discard_dirty: Option<Uuid>,

        /// Give up blocks that the log can no longer read: the backing device has older data there. UUID is
        /// that of the cache
        #[arg(long, value_name = "UUID", conflicts_with = "discard_dirty")]
        give_up_unreadable: Option<Uuid>,
    },
    /// Read the whole log of a cache that is not served, and check it; nothing is written
    Verify {
        /// The name of the cache
        name: String,
    },
    /// Recover the log of a cache that is not served, as serving would
    Recover {
        /// The name of the cache
        name: String,

        /// Only say what would be recovered; nothing is written
        #[arg(long)]
        dry_run: bool,

        /// Give up durable records that are damaged or gone, and all that come after them; those before are
        /// kept. UUID is that of the cache
        #[arg(long, value_name = "UUID")]
        give_up_lost: Option<Uuid>,
    },
}

/// When writes are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeWord {
    /// In the log; durable after a flush of its devices
    WriteBack,
    /// On the backing device; durable after a flush of that
    WriteThrough,
    /// In the log, whose devices are vouched for to keep what they acknowledged: they are not flushed
    Protected,
    /// Like write-back, and the backing device gets writes in the order of flushes: without its log it is
    /// old, not damaged
    Ordered,
}

impl From<ModeWord> for Mode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::WriteBack => Self::WriteBack,
            ModeWord::WriteThrough => Self::WriteThrough,
            ModeWord::Protected => Self::Protected,
            ModeWord::Ordered => Self::Ordered,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// The name of the cache
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,

    /// The slow device: a block device or a file
    #[arg(long, value_name = "PATH")]
    pub(crate) backing: String,

    /// A fast device that holds the log: a block device, or a file, which is made if it is missing, or a part
    /// of one that is there, such as /dev/sdb@1G+4G (4 GiB from 1 GiB on). Several hold the same data (a
    /// mirror), or with --stripe a part each
    #[arg(long, value_name = "PATH[@OFFSET+SIZE]", required = true)]
    pub(crate) log: Vec<String>,

    /// Several --log hold the same data: the cache survives the loss of all but one (the default)
    #[arg(long, conflicts_with = "stripe")]
    pub(crate) mirror: bool,

    /// Several --log hold a part each: faster and larger, and lost with any of them
    #[arg(long)]
    pub(crate) stripe: bool,

    /// The bytes used of each --log; default all of a part of a device
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,

    /// When writes are acknowledged
    #[arg(long, value_enum, default_value = "write-back")]
    pub(crate) mode: ModeWord,

    #[command(flatten)]
    pub(crate) tuning: TuningArguments,

    /// Use a --log that plumb did not make and that shows no sign of use; its contents are lost
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Use a --log although it shows signs of use: its serial, or the absolute path of a file; may be given
    /// several times
    #[arg(long, value_name = "ID")]
    pub(crate) destroy: Vec<String>,

    /// Use a backing device that says that it needs another cache; data that only that cache holds is lost.
    /// UUID is that of the other cache
    #[arg(long, value_name = "UUID")]
    pub(crate) discard_dirty: Option<Uuid>,
}

/// Settings that may be changed at any time.
#[derive(Debug, Args)]
pub(crate) struct TuningArguments {
    /// Let the backing device sleep: write back only when this much of the log is in use, or the oldest data
    /// is as old as --write-back-age; then write back all of it. 1 to 60
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=i64::from(Sleep::PERCENT_MAX)))]
    pub(crate) write_back_at: Option<u32>,

    /// Write back all data when the oldest is this old; 1d with --write-back-at
    #[arg(long, value_name = "TIME")]
    pub(crate) write_back_age: Option<Nanos>,

    /// Time without a request after which the backing device spins down, to count spin-ups; default 10m
    #[arg(long, value_name = "TIME")]
    pub(crate) spin_down: Option<Nanos>,

    /// Rated endurance of each device of the log (TBW), to show its wear; without it plumb asks NVMe drives
    #[arg(long, value_name = "SIZE")]
    pub(crate) endurance: Option<Bytes>,
}

impl TuningArguments {
    /// Returns the settings, with those of `before` where nothing was typed.
    pub(crate) fn over(&self, before: Tuning) -> Tuning {
        let Self { write_back_at, write_back_age, spin_down, endurance } = self;
        let is_typed = write_back_at.is_some() || write_back_age.is_some() || spin_down.is_some();
        let sleep = before.sleep.unwrap_or(Sleep::DEFAULT);
        let sleep = Sleep {
            at_percent: write_back_at.unwrap_or(sleep.at_percent),
            age: write_back_age.map_or(sleep.age, Nanos::as_secs_f64),
            spin_down: spin_down.map_or(sleep.spin_down, Nanos::as_secs_f64),
        };
        Tuning {
            sleep: if is_typed { Some(sleep) } else { before.sleep },
            endurance_bytes: endurance.map(|bytes| bytes.0).or(before.endurance_bytes),
        }
    }
}

impl CreateArguments {
    pub(crate) const fn layout(&self) -> Layout {
        if self.stripe { Layout::Stripe } else { Layout::Mirror }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReplaceLogArguments {
    /// The name of the cache
    pub(crate) name: String,

    /// The new device for the log, or a part of one; several form a stripe if those before do, else a mirror
    #[arg(value_name = "NEW[@OFFSET+SIZE]", required = true)]
    pub(crate) log: Vec<String>,

    /// The bytes used of each NEW; default as many as of the present devices
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,

    /// Use a device that plumb did not make and that shows no sign of use; its contents are lost
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Use a device although it shows signs of use: its serial, or the absolute path of a file; may be given
    /// several times
    #[arg(long, value_name = "ID")]
    pub(crate) destroy: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AdoptArguments {
    /// The name for the cache
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,

    /// The device that was cached
    #[arg(long, value_name = "PATH")]
    pub(crate) backing: String,

    /// The devices of its log, or the parts of them, in any order; of a mirror one that is lost may be left
    /// out
    #[arg(long, value_name = "PATH[@OFFSET+SIZE]", required = true)]
    pub(crate) log: Vec<String>,

    /// When writes are acknowledged, which its devices do not record; default the mode of the known cache of
    /// this name, or write-back
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeWord>,

    /// Accept a backing device that does not say that it needs the cache, because it is a copy that was made
    /// without its attributes while the cache was not served. UUID is that of the cache
    #[arg(long, value_name = "UUID")]
    pub(crate) unmarked: Option<Uuid>,
}

#[derive(Debug, Args)]
pub(crate) struct AdviseArguments {
    /// A recording of writes: a run of `plumb observe --requests`, an iolog of fio, or the name before
    /// .blktrace.0
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: String,

    /// Bytes per second that the backing device takes of sorted writes, such as 150M
    #[arg(long, value_name = "SIZE", required_unless_present = "backing", conflicts_with = "backing")]
    pub(crate) backing_rate: Option<Bytes>,

    /// Requests per second that the backing device takes
    #[arg(long, value_name = "N", default_value = "150", conflicts_with = "backing")]
    pub(crate) backing_iops: NonZeroU32,

    /// A simulated drive in place of these two figures, such as sim:nearline-4tb
    #[arg(long, value_name = "sim:MODEL")]
    pub(crate) backing: Option<String>,

    /// The simulated drive that stands for the device of the log
    #[arg(long, value_name = "sim:MODEL", default_value = "sim:plp-nvme-ssd")]
    pub(crate) log: String,

    /// Rated endurance of the device of the log (TBW), to say how long it lasts
    #[arg(long, value_name = "SIZE")]
    pub(crate) endurance: Option<Bytes>,

    /// The sizes to try, with commas between
    #[arg(long, value_name = "SIZE", value_delimiter = ',', default_value = "64M,256M,1G,4G,16G")]
    pub(crate) size: Vec<Bytes>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplaceLegArguments {
    /// The name of the cache
    pub(crate) name: String,

    /// The device of the log to replace: its path as the status shows it, or its number from 0 on
    #[arg(long, value_name = "PATH|N")]
    pub(crate) lost: String,

    /// The device that takes its place: a block device, a file, which is made if it is missing, or a part of
    /// one that is there
    #[arg(long, value_name = "PATH[@OFFSET+SIZE]")]
    pub(crate) log: String,

    /// Use a --log that plumb did not make and that shows no sign of use; its contents are lost
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Use a --log although it shows signs of use: its serial, or the absolute path of a file; may be given
    /// several times
    #[arg(long, value_name = "ID")]
    pub(crate) destroy: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The name of the cache
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) exports: ExportArguments,

    /// Serve a mirror although a device of its log is missing
    #[arg(long)]
    pub(crate) degraded: bool,

    /// Serve although something else has written to the backing device since the cache was served: data that
    /// only the log holds overwrites that. Check the file system afterwards. UUID is that of the cache
    #[arg(long, value_name = "UUID")]
    pub(crate) discard_backing_writes: Option<Uuid>,
}
