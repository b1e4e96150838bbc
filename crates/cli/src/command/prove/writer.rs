//! `plumb prove writer`: writes to a drive, and reports its acknowledgements to a witness.

use clap::Args;
use plumb_block::{Bytes, Nanos, Time};
use plumb_linux::range_lock::LockKind;
use plumb_report::quantity::counted;
use plumb_targets::{Intent, OpenedTarget, Permission};
use plumb_witness::Error;
use plumb_witness::{Link, Peer, Plan, RunFacts, Until, WriterEnd, open_target, write};

use crate::exit::{self, Exit};
use crate::{stop, terminal};

/// Largest part of the target that is written by default.
const SIZE: Bytes = Bytes::mib(1024);

/// Number of writes that may be issued beyond those confirmed by the witness; at least the depth.
const WINDOW: u64 = 256;

/// Arguments of `plumb prove writer`.
#[derive(Debug, Args)]
pub(crate) struct WriterArguments {
    /// The witness: a command whose stdin and stdout lead to one, unix:SOCKET, or - for stdin and stdout of
    /// this command
    #[arg(long, value_name = "COMMAND")]
    witness: String,

    /// How long to wait for a witness that no longer answers
    #[arg(long, default_value = "60s", value_name = "TIME")]
    patience: Nanos,

    /// End after this time
    #[arg(long, value_name = "TIME")]
    seconds: Option<Nanos>,

    #[command(flatten)]
    pattern: PatternArguments,
}

/// Pattern and place of the writes, which a campaign takes too.
#[derive(Debug, Args)]
pub(super) struct PatternArguments {
    /// A block device, a file (which is made if a size is typed), #N for the Nth disk, or an NBD URI
    target: String,

    /// How much of the target is written, from its beginning; default 1 GiB at most. It is filled first
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,

    /// The size of a write
    #[arg(long, default_value = "4k", value_name = "SIZE")]
    block_size: Bytes,

    /// How many writes are in flight
    #[arg(long, default_value_t = 32, value_name = "N")]
    depth: u32,

    /// Number of writes after which a flush follows; 0: only the flush after the filling
    #[arg(long, default_value_t = 16, value_name = "N")]
    flush_every: u64,

    /// Percentage of the writes that have FUA
    #[arg(long, default_value_t = 25, value_name = "N")]
    fua_percent: u8,

    /// Write to a file that plumb did not make, and to a disk, if it has no signature
    #[arg(long)]
    overwrite: bool,

    /// Write to the disk with this serial, or to the file at this path, although it is in use or has a
    /// signature
    #[arg(long, value_name = "SERIAL")]
    destroy: Vec<String>,
}

impl PatternArguments {
    /// Returns the arguments as words of a command line, the target first.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec![
            self.target.clone(),
            format!("--block-size={}", self.block_size.0),
            format!("--depth={}", self.depth),
            format!("--flush-every={}", self.flush_every),
            format!("--fua-percent={}", self.fua_percent),
        ];
        words.extend(self.size.map(|size| format!("--size={}", size.0)));
        words.extend(self.overwrite.then(|| "--overwrite".to_owned()));
        words.extend(self.destroy.iter().map(|serial| format!("--destroy={serial}")));
        words
    }

    fn plan(&self, opened: &OpenedTarget) -> plumb_witness::Result<Plan> {
        let info = opened.device.info();
        let block = info.logical_block;
        if !self.block_size.0.is_multiple_of(block.0) {
            let (typed, shown) = (self.block_size, &opened.shown);
            let why = format!("--block-size {typed}: expected a multiple of {block}, the block of {shown}");
            return Err(Error::usage(why));
        }
        Ok(Plan {
            seed: Plan::new_seed()?,
            logical_block: block,
            blocks: self.size.unwrap_or(SIZE.min(info.size)).0 / block.0,
            write_blocks: self.block_size.0 / block.0,
            depth: self.depth,
            flush_every: self.flush_every,
            fua_percent: self.fua_percent,
            window: WINDOW.max(u64::from(self.depth)),
        })
    }
}

/// Runs the command as typed.
pub(crate) fn run(arguments: &WriterArguments) -> anyhow::Result<Exit> {
    let stop = stop::on_signals()?;
    let time = Time::real();
    let pattern = &arguments.pattern;
    let permission = Permission {
        overwrite: pattern.overwrite,
        destroy: pattern.destroy.clone(),
        ..Permission::default()
    };
    let intent = Intent { size: pattern.size, lock: Some(LockKind::Exclusive), ..Intent::WRITE };
    let mut opened = open_target(&pattern.target, intent, &permission, &time)?;
    opened.notes.iter().for_each(|note| terminal::say(&format!("plumb: {note}")));
    let peer = Peer::typed(&arguments.witness);
    let is_stdio = peer == Peer::Stdio;
    let begun = pattern.plan(&opened).and_then(|plan| {
        let facts = RunFacts::begin(plan.clone(), &opened)?;
        Ok((plan, Link::connect(peer, Some(facts), arguments.patience, &time, &stop)?))
    });
    let (plan, mut link) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            opened.remove_if_made()?;
            return Err(error.into());
        }
    };
    // The initial filling writes every block, so no separate laying out is needed.
    opened.laid_out();
    terminal::say(&format!("plumb: run {} writes to {}", plan.name(), opened.shown));
    let until = Until { time: arguments.seconds, ..Until::default() };
    let ended = write(&plan, &*opened.device, &time, &mut link, until, &stop);
    opened.mark_as_left();
    if ended.is_err() && opened.made {
        terminal::say(&format!("plumb: {}, which this run made, stays", opened.shown));
    }
    let ended = ended?;
    let WriterEnd { because, device_failed, writes, flushes } = ended;
    let run = plan.name();
    let (writes, flushes) = (counted(writes, "write"), counted(flushes, "flush"));
    let said = format!("run {run}: {writes} and {flushes} acknowledged; it ended because {because}");
    if is_stdio {
        terminal::say(&said)
    } else {
        terminal::print(&format!("{said}\n"))?
    }
    Ok(exit::of_whole(!device_failed))
}
