//! Help of each command beyond its arguments: the options that `-h` shows, headings, examples, notes, exit
//! statuses and files. `-h`, `--help` and the manual pages are made from this one table.

/// Help of one command.
#[derive(Debug)]
pub(crate) struct Page {
    /// Words after `plumb`, such as `prove app`; empty for plumb itself.
    pub(crate) command: &'static str,
    /// Long names of the options that `-h` shows. It always shows positional arguments.
    pub(super) essential: &'static [&'static str],
    /// Headings for options whose definition names none.
    pub(super) groups: &'static [Group],
    /// Command lines; the first stands in `-h`, all in `--help`.
    pub(crate) examples: &'static [Example],
    /// Paragraphs for `--help` and the manual page. A line that begins with spaces stays a line.
    pub(super) notes: &'static [&'static str],
    /// Exit statuses with a meaning of their own in this command, with that meaning; empty for one that the
    /// command does not use. The others mean what they mean in all commands.
    pub(super) exits: &'static [(usize, &'static str)],
    /// Files that the command reads or writes without being told their names.
    pub(super) files: &'static [File],
}

/// Options under one heading, by their long names.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) heading: &'static str,
    pub(super) options: &'static [&'static str],
}

/// Command line, and what it is for.
#[derive(Debug)]
pub(crate) struct Example {
    pub(crate) line: &'static str,
    pub(super) purpose: &'static str,
}

/// Path, and what is there.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: &'static str,
    pub(super) content: &'static str,
}

const NONE: Page =
    Page { command: "", essential: &[], groups: &[], examples: &[], notes: &[], exits: &[], files: &[] };

const fn group(heading: &'static str, options: &'static [&'static str]) -> Group {
    Group { heading, options }
}

const fn example(line: &'static str, purpose: &'static str) -> Example {
    Example { line, purpose }
}

const fn file(path: &'static str, content: &'static str) -> File {
    File { path, content }
}

/// Headings of options that many commands have.
pub(super) const COMMON: [Group; 2] = [
    group(
        "Report",
        &["format", "json", "html", "prometheus", "tui", "output", "verbose", "quiet", "strict", "junit"],
    ),
    group("Recording", &["out", "replace", "no-record"]),
];

/// Exit statuses of all commands.
pub(super) const EXITS: [&str; 6] = [
    "done, nothing found",
    "a finding: unsafe, drift, loss or regression",
    "usage",
    "could not measure",
    "refused for safety",
    "failed",
];

const RUNS: File =
    file("plumb-runs/TIME-COMMAND/", "recording and report.html of a run, unless --out names a place");
const CLAIMS: File =
    file("/etc/plumb/claims.toml", "claims of administrators that a cache survives a power cut");
const JOURNALS: File = file("/var/lib/plumb/policy/journals/", "journal of each change, for rollback");
const STATES: File = file("/etc/plumb/policy.d/", "states that `plumb policy persist` keeps");
const PERSISTENCE: File = file("/var/lib/plumb/policy/persistence.json", "how reliably each state was kept");

const FAULTS: &str = "\
A fault is WHAT:EFFECT[:WHEN]..., such as write:eio:nth=100 or flush:slow=50ms:p=0.1.
  WHAT    read, write, flush, discard, any
  EFFECT  eio, enospc, timeout (never answered), slow=TIME (takes so much longer)
  WHEN    nth=N, every=N, p=0..1, lba=FIRST-LAST, times=N; all must hold";
const FAULT_COUNTS: &str = "\
An lba is a logical block of the drive; a command that touches one of FIRST to LAST matches. nth and every count the commands of that kind \
from when the fault is set; with lba, only those that touch it. Commands are counted at the drive, where a large write over NBD is several.";

const SAFETY: &str = "\
Reading is always safe. Writing to a disk, or to a file that plumb did not make, needs --overwrite. Writing to a disk that is in use or has a \
signature needs --destroy with its serial.";

/// All pages, in the order of `plumb --help`.
pub(crate) const PAGES: &[Page] = &[
    Page {
        examples: &[
            example("plumb check .", "judge the write path of this directory"),
            example("plumb observe --all --duration 10s", "who makes my disks wait?"),
            example("plumb policy show --all", "which disks have their write cache on?"),
        ],
        notes: &[
            "Results go to stdout, progress to stderr.",
            "Questions and their answers, and a guide for each command: docs/QUESTIONS.md.",
        ],
        files: &[RUNS],
        ..NONE
    },
    Page {
        command: "check",
        essential: &["seconds", "size", "out", "format", "verbose", "quiet"],
        groups: &[
            group("How long and how much", &["seconds", "size", "seed"]),
            group("Safety", &["overwrite"]),
        ],
        examples: &[
            example("plumb check /var/lib/postgresql", "is an fsync durable here, and what does it cost?"),
            example("plumb check . --seconds 5 --quiet", "the verdict alone, in a quarter of the time"),
            example("plumb check 'sim:consumer-nvme-ssd?wce=off'", "a simulated drive with its cache off"),
        ],
        notes: &[
            "A check is safe on a live system: it writes to one test file of its own, takes at most a tenth of the free space, and \
                  removes the file at the end, also when interrupted. It does not need root, and says what it could not see without it.",
        ],
        files: &[RUNS],
        ..NONE
    },
    Page {
        command: "survey",
        essential: &["all", "now", "guests", "format"],
        groups: &[
            group("Which paths", &["all", "guests", "from", "page-size"]),
            group("Power cuts", &["now"]),
            group("Recording", &["record", "overwrite"]),
        ],
        examples: &[
            example("plumb survey /var/lib/postgresql", "each layer down to the drive"),
            example("plumb survey --all --format csv", "all file systems and disks, for a table"),
            example("plumb survey --now /srv", "what would a power cut take now, and from which processes?"),
            example("plumb survey --guests", "disks of the virtual machines on this host"),
            example("plumb survey . --page-size 16k", "can a power cut tear a page of InnoDB?"),
            example("plumb survey --record host-a /srv", "keep what was read, to survey it elsewhere"),
        ],
        notes: &[
            "A survey says for each layer what it caches and what it does with FLUSH and FUA, with the evidence. It writes nothing to \
                  any device.",
            "--now counts the pages of open files with cachestat(2) (Linux 6.5): as root those of all processes, otherwise those of your own. \
                  The rest is the kernel's count: as root that of one device (debugfs, Linux 6.10), otherwise that of the whole machine. One reading \
                  cannot tell how much the journal and the drive hold: `plumb observe --exposure` sees commits and flushes.",
        ],
        ..NONE
    },
    Page {
        command: "load",
        essential: &[
            "profile",
            "size",
            "block-size",
            "write",
            "random",
            "sequential",
            "sync-every",
            "depth",
            "threads",
            "duration",
            "overwrite",
            "out",
            "format",
        ],
        groups: &[group("Profile", &["profile", "explain"])],
        examples: &[
            example(
                "plumb load /srv --size 1G --random --write 100 --sync-every 1",
                "durable random writes in a new file",
            ),
            example("plumb load /srv --size 1G --sequential --block-size 1M --depth 8", "sequential reads"),
            example("plumb load /srv --profile pg-wal", "the log of a PostgreSQL server"),
            example("plumb load --explain", "list the profiles"),
            example("plumb load sim:nearline-4tb --random --write 100", "a simulated disk, in virtual time"),
        ],
        notes: &[
            "A target is a path, a block device, #N for the Nth disk, sim:MODEL or an NBD URI. A directory with a size is a test file in it, \
             which is gone afterwards. A target that ends in .toml is a file with these options, and other options go over it.",
            SAFETY,
        ],
        files: &[RUNS],
        ..NONE
    },
    Page {
        command: "compare",
        essential: &["factor", "a", "b", "budget", "size", "write", "fail-if", "format"],
        groups: &[
            group("What differs", &["factor", "cache-log", "fs-size", "a", "b", "against", "together"]),
            group("Under which workload", &["profile", "workload"]),
            group(
                "How sure and how long",
                &[
                    "budget",
                    "whole-budget",
                    "equivalent",
                    "confidence",
                    "figure",
                    "fail-if",
                    "find",
                    "dry-run",
                ],
            ),
        ],
        examples: &[
            example("plumb compare /srv/a /srv/b", "which of two directories is better for a log?"),
            example(
                "plumb compare --factor policy=on,off /srv/io --size 1G --write 100",
                "would turning the write cache off hurt or help?",
            ),
            example(
                "plumb compare --factor buffering=cached,direct /srv/io --size 1G",
                "the page cache or not",
            ),
            example(
                "plumb compare --factor cache=none,wb:1G --cache-log /ssd/log /srv/io --size 9G",
                "with a write-back cache, and without",
            ),
            example("plumb compare --factor fs=ext4,xfs /srv --write 100 --sync-every 1", "file systems"),
            example("plumb compare --factor policy=on,off /srv --profile sqlite-wal", "under a profile"),
            example(
                "plumb compare --a '--depth 1' --b '--depth 32' /srv/io --fail-if 'p99 ratio > 2'",
                "any two command lines, with a limit",
            ),
            example("plumb compare --together --a sim:sas-15k --b sim:nearline-4tb", "two drives at once"),
            example("plumb compare plumb-runs/NEW --against plumb-runs/OLD", "recorded runs"),
            example(
                "plumb compare cache-on.xml cache-off.xml",
                "results of DiskSpd or fio, the second against the first",
            ),
        ],
        notes: &[
            "Targets, the words of a workload and their safety are those of `plumb load`; --duration is how long a block is measured. Blocks \
             of the levels take turns in an order that is drawn from the seed; the first level is what the others are compared with.",
            "Levels of policy on real disks, of scheduler, cache and fs are set before each block, and the \
             old setting is restored at the end; if plumb is killed, the next command that changes \
             something restores it and says so, as does `plumb restore`.",
            "  policy     of the disks beneath the targets; protected needs a claim. Root only
  scheduler  of the disks beneath the targets, such as none,mq-deadline. Root only
  cache      none, or the same target behind a write-back cache: wb:SIZE, wt:SIZE
  fs         in a file below the directory that is the target. Root only",
        ],
        exits: &[
            (0, "done, whatever the outcome"),
            (1, "a limit of --fail-if is exceeded"),
            (3, "interrupted, or a limit is not decided"),
        ],
        files: &[RUNS],
    },
    Page {
        command: "observe",
        essential: &[
            "all", "duration", "slow", "serve", "exposure", "workload", "requests", "tui", "out", "format",
        ],
        groups: &[
            group("What is observed", &["all", "duration", "exposure", "counters", "no-syscalls", "from"]),
            group("While it is observed", &["slow", "serve"]),
            group("What is kept", &["requests", "workload"]),
        ],
        examples: &[
            example(
                "plumb observe /var/lib/postgresql --duration 1m",
                "who syncs there, and how long do they wait?",
            ),
            example("plumb observe 4711", "a process, by its number"),
            example(
                "plumb observe /dev/sdb --workload > same.toml",
                "the same load again: plumb load same.toml",
            ),
            example("plumb observe /dev/sdb --workload=/dev/sdc", "the same load for another disk"),
            example("plumb observe /dev/sdb --requests", "then: plumb cache advise RUN --backing-rate 100M"),
            example(
                "plumb observe /srv --exposure --counters --format prometheus",
                "what would a power cut take, as metrics",
            ),
            example("plumb observe /srv --slow 50ms", "a line for each slow sync and request"),
            example("plumb observe --serve 9950", "metrics of all disks for Prometheus, until Ctrl-C"),
            example("plumb observe compare RUN-BEFORE RUN-AFTER", "before and after a change"),
        ],
        notes: &[
            "Nothing is written to what is observed. Root sees each request and each sync, through the kernel's tracing, in an instance that \
             is removed afterwards; without root only counters are read. Ctrl-C ends the observation and keeps it.",
            "Recording events costs the programs that are observed: a load that saturates a processor ran 18 to 32 % slower in pairs of runs \
             with and without (`cargo xtask bench observe` measures it on a machine); one that waits for its device loses next to nothing.",
            "--serve records nothing and needs root. Its histograms have the 32 busiest devices, file \
             systems, processes and cgroups, chosen again each minute, and \"other\" for all others; the \
             series of a name ends when the name drops out.",
        ],
        files: &[RUNS],
        ..NONE
    },
    Page {
        command: "observe compare",
        essential: &["format", "verbose", "quiet"],
        examples: &[example(
            "plumb observe compare plumb-runs/BEFORE plumb-runs/AFTER",
            "before and after a change",
        )],
        notes: &[
            "Shows syncs by process, flushes, sizes, mix and bursts of both, side by side. Each observation \
            is one value, and they were not interleaved: every difference includes whatever else changed \
            between them, and no interval can be given. With several of each, \
                  `plumb compare A1 A2 --against B1 B2` gives intervals.",
        ],
        ..NONE
    },
    Page {
        command: "study",
        essential: &["on", "seed", "out", "format"],
        groups: &[group("Where", &["on", "switch", "cache-log"]), group("Safety", &["overwrite", "destroy"])],
        examples: &[
            example("plumb study all", "all studies, beside the reported figures"),
            example("plumb study D --verbose", "one study, with everything"),
            example("plumb study D --on /srv", "as far as a real directory allows"),
        ],
        notes: &[
            "The studies:
  A  the write cache turned off on an all-flash cluster: why is it as fast?
  B  does a test reach the disk, or the file-system cache?
  C  a write-back cache of Storage Spaces in front of hard disks, seen from a VM
  D  fdatasync of Ceph OSDs on hard disks, with the drive's cache on and off
  E  Microsoft KB 332023: slow small writes, and applications that wait for flushes",
            "On simulated drives they take seconds, and the same seed gives the same figures on every \
             machine. --on runs what is possible on a real target, with the safety rules of `plumb load`.",
        ],
        exits: &[
            (0, "done, even if a figure did not come out, which the report says"),
            (1, ""),
            (3, "interrupted"),
        ],
        files: &[RUNS],
    },
    Page {
        command: "diskspd",
        examples: &[example(
            "plumb diskspd -c1G -b4K -r -w100 -d10 -Sh io.dat",
            "random writes past the page cache",
        )],
        files: &[RUNS],
        ..NONE
    },
    Page {
        command: "sqlio",
        examples: &[example("plumb sqlio -kW -s10 -frandom -b8 io.dat", "random writes of 8 KiB")],
        files: &[RUNS],
        ..NONE
    },
    Page {
        command: "fio",
        examples: &[
            example("plumb fio job.fio", "a job file"),
            example("plumb fio --name=a --rw=randwrite --size=1g --fsync=1", "options alone"),
        ],
        files: &[RUNS],
        ..NONE
    },
    Page {
        command: "drive",
        essential: &["format"],
        examples: &[
            example("plumb drive list", "the models"),
            example("plumb drive serve sas-15k --name slow --attach", "a slow disk as /dev/loopN"),
        ],
        notes: &[
            "Every command that takes a device also takes sim:MODEL?wce=off&seed=7, a simulated drive in virtual time. Any parameter that \
             `plumb drive show` prints can follow the name, as in ata-40gb?behaviour.driver_drops_flush=true.",
            "Does a file system keep what was synced on a drive that ignores flushes?
  plumb drive serve liar --size 1G --attach      # prints /dev/loopN
  mkfs.ext4 /dev/loopN && mount /dev/loopN /mnt  # in another terminal
  plumb drive cut liar --at-flush 100            # with the 100th flush from now
  ...                                            # write and sync until I/O errors
  umount /mnt && plumb drive power-on liar && mount /dev/loopN /mnt
  ...                                            # what is missing?
  umount /mnt && plumb drive detach liar",
        ],
        files: &[file(
            "/run/plumb/NAME.control",
            "control socket of a served drive; below XDG_RUNTIME_DIR without root",
        )],
        ..NONE
    },
    Page {
        command: "drive list",
        essential: &["format"],
        examples: &[example("plumb drive list", "name, kind, interface, size and write cache of each model")],
        ..NONE
    },
    Page {
        command: "drive show",
        essential: &["figures", "format"],
        examples: &[example("plumb drive show sas-15k --figures", "its figures beside published ones")],
        ..NONE
    },
    Page {
        command: "drive serve",
        essential: &["name", "size", "backing", "nbd", "attach", "wce"],
        groups: &[
            group("Drive", &["name", "size", "backing", "seed", "wce", "fault", "overwrite", "destroy"]),
            group(
                "Where it is served",
                &["nbd", "nbd-tcp", "tls-certificates", "tls-verify-peer", "attach", "ublk", "recover"],
            ),
        ],
        examples: &[
            example(
                "plumb drive serve sas-15k --name slow --attach",
                "prints /dev/loopN; runs until it is detached",
            ),
            example(
                "plumb drive serve liar --backing medium --size 1G --nbd /tmp/nbd",
                "a medium that outlives the process",
            ),
        ],
        notes: &[FAULTS, FAULT_COUNTS],
        ..NONE
    },
    Page {
        command: "drive cut",
        essential: &["at-write", "at-flush", "disarm"],
        examples: &[
            example("plumb drive cut slow", "now"),
            example("plumb drive cut slow --at-flush 100", "with the 100th flush from now"),
            example(
                "plumb drive cut slow --between flush:3:submitted..flush:3:completed",
                "while the third flush is done",
            ),
        ],
        notes: &[
            "An EVENT is KIND:N:submitted or KIND:N:completed: the moment when the Nth command of a kind from now arrives, or is about to be answered. \
                  KIND is read, write, flush, discard or any. Commands are counted at the drive: a large write over NBD is several, \
                  write-zeroes is a write, and FUA on a drive without it is a write and a flush.",
        ],
        ..NONE
    },
    Page {
        command: "drive power-on",
        essential: &["format"],
        examples: &[example("plumb drive power-on slow", "serve what survived the cut")],
        ..NONE
    },
    Page {
        command: "drive status",
        essential: &["format"],
        examples: &[example("plumb drive status", "all served drives")],
        ..NONE
    },
    Page {
        command: "drive set",
        essential: &["wce"],
        examples: &[example(
            "plumb drive set slow --wce off",
            "turn the write cache off until the next power cut",
        )],
        ..NONE
    },
    Page {
        command: "drive fault",
        essential: &["clear"],
        examples: &[
            example("plumb drive fault slow write:eio:nth=100", "the 100th write from now fails"),
            example("plumb drive fault slow --clear", "no faults any more"),
        ],
        notes: &[FAULTS, FAULT_COUNTS],
        ..NONE
    },
    Page {
        command: "drive detach",
        essential: &["format"],
        examples: &[example("plumb drive detach slow", "end its exports and its process")],
        ..NONE
    },
    Page {
        command: "cache",
        essential: &["format"],
        examples: &[
            example("plumb cache status", "all caches"),
            example("plumb cache advise io.log --backing-rate 150M", "how large a log do my writes need?"),
        ],
        notes: &[
            "The life of a cache:
  plumb cache create --name db --backing /dev/sdb --log /dev/nvme0n1p4 --size 5G --overwrite
  plumb cache serve db --attach         # prints /dev/loopN; runs until stopped
  mount /dev/loopN /srv                 # in another terminal
  plumb cache status db
  umount /srv && plumb cache detach db  # writes everything back",
            "A leg is one of the devices that hold the log, each of them a --log; a mirror has everything on every leg. What is durable when, \
             and what is lost when which device dies: docs/CACHE.md.",
        ],
        files: &[
            file("/var/lib/plumb/cache/", "configuration of each cache"),
            file("/run/plumb/cache/", "control sockets of served caches"),
        ],
        ..NONE
    },
    Page {
        command: "cache create",
        essential: &["name", "backing", "log", "size", "mode", "stripe", "overwrite"],
        groups: &[
            group("Devices", &["name", "backing", "log", "mirror", "stripe", "size", "mode"]),
            group("Safety", &["overwrite", "destroy", "discard-dirty"]),
        ],
        examples: &[
            example(
                "plumb cache create --name db --backing /dev/sdb --log /ssd/log --size 5G",
                "a log in a file on a fast disk",
            ),
            example(
                "plumb cache create --name db --backing /dev/sdb --log /ssd/a --log /ssd/b --size 5G",
                "a log on two devices, one of which may die",
            ),
        ],
        ..NONE
    },
    Page {
        command: "cache adopt",
        essential: &["name", "backing", "log", "mode"],
        examples: &[example(
            "plumb cache adopt --name db --backing /dev/sdb --log /ssd/log",
            "after a reinstallation",
        )],
        ..NONE
    },
    Page {
        command: "cache advise",
        essential: &["backing-rate", "backing-iops", "backing", "size", "format"],
        groups: &[group("Devices", &["backing-rate", "backing-iops", "backing", "log", "size"])],
        examples: &[
            example("plumb cache advise io.log --backing-rate 150M", "from the rate of the slow disk"),
            example(
                "plumb cache advise io.log --backing sim:nearline-4tb --size 1G,4G",
                "from a simulated disk",
            ),
        ],
        ..NONE
    },
    Page {
        command: "cache serve",
        essential: &["nbd", "attach", "ublk", "degraded"],
        groups: &[
            group(
                "Where it is served",
                &["nbd", "nbd-tcp", "tls-certificates", "tls-verify-peer", "attach", "ublk"],
            ),
            group("Safety", &["degraded", "discard-backing-writes"]),
        ],
        examples: &[
            example("plumb cache serve db --attach", "prints /dev/loopN; runs until it is stopped"),
            example("plumb cache serve db --nbd /run/db.sock", "for a virtual machine"),
        ],
        ..NONE
    },
    Page {
        command: "cache status",
        essential: &["tui", "prometheus", "format"],
        examples: &[
            example("plumb cache status", "all caches"),
            example("plumb cache status db --tui", "one cache, as it works"),
            example("plumb cache status db --format html", "a page to send"),
        ],
        ..NONE
    },
    Page {
        command: "cache mode",
        examples: &[example("plumb cache mode db write-through", "acknowledge writes on the backing device")],
        ..NONE
    },
    Page {
        command: "cache tune",
        essential: &["write-back-at", "write-back-age", "write-back-soon", "endurance"],
        examples: &[
            example(
                "plumb cache tune db --write-back-at 50 --write-back-age 12h",
                "let the backing device sleep",
            ),
            example("plumb cache tune db --endurance 600T", "the TBW of the log, for its wear in the status"),
        ],
        ..NONE
    },
    Page {
        command: "cache drain",
        examples: &[example("plumb cache drain db", "before the backing device is copied")],
        ..NONE
    },
    Page {
        command: "cache grow",
        essential: &["size", "backing"],
        examples: &[
            example("plumb cache grow db --size 20G", "20 GiB of each device of the log"),
            example("plumb cache grow db --backing", "all of a backing device that lvextend has made larger"),
        ],
        ..NONE
    },
    Page {
        command: "cache replace-leg",
        essential: &["lost", "log", "overwrite"],
        examples: &[example(
            "plumb cache replace-leg db --lost 1 --log /dev/nvme1n1p4 --overwrite",
            "after one device of a mirror died",
        )],
        ..NONE
    },
    Page {
        command: "cache replace-log",
        essential: &["size", "overwrite"],
        examples: &[example(
            "plumb cache replace-log db /dev/nvme1n1p4 --overwrite",
            "the device of the log is dying, or has become read-only",
        )],
        ..NONE
    },
    Page {
        command: "cache stop",
        essential: &["cut-off"],
        examples: &[example("plumb cache stop db", "the log keeps what is not written back yet")],
        ..NONE
    },
    Page {
        command: "cache detach",
        essential: &["cut-off"],
        examples: &[example("plumb cache detach db", "write everything back, and use the disk alone")],
        ..NONE
    },
    Page {
        command: "cache verify",
        essential: &["format"],
        examples: &[example("plumb cache verify db", "read and check the whole log")],
        ..NONE
    },
    Page {
        command: "cache recover",
        essential: &["dry-run"],
        examples: &[example("plumb cache recover db --dry-run", "what would be recovered?")],
        ..NONE
    },
    Page {
        command: "policy",
        examples: &[
            example("plumb policy show --all", "every disk with a write cache"),
            example("plumb policy plan off sdb --out plan.json", "then: plumb policy apply plan.json"),
        ],
        notes: &[
            "A write cache has one of three states: off (no volatile cache; Windows: quick removal), on (a volatile cache, and the \
                  kernel sends flushes; Windows: better performance), protected (a volatile cache without flushes, because a claim of power \
                  loss protection is recorded; Windows: power protected). Only apply, rollback, heal and enforce change a disk, and only as \
                  root.",
        ],
        files: &[CLAIMS, STATES, JOURNALS, PERSISTENCE],
        ..NONE
    },
    Page {
        command: "policy show",
        essential: &["all", "where", "prometheus", "format"],
        groups: &[group("Which disks", &["all", "where", "claims", "raid-report", "explain"])],
        examples: &[
            example("plumb policy show --all", "every disk with a write cache"),
            example("plumb policy show --where 'transport = sas and state = on'", "some of them"),
        ],
        files: &[CLAIMS],
        ..NONE
    },
    Page {
        command: "policy plan",
        essential: &["all", "where", "out", "save", "format"],
        groups: &[
            group("Which disks", &["all", "where", "claims"]),
            group("What is planned", &["wave-size", "save", "explain"]),
            group("Output", &["out", "overwrite"]),
        ],
        examples: &[
            example(
                "plumb policy plan off sdb --out plan.json",
                "turn one cache off; then: plumb policy apply plan.json",
            ),
            example("plumb policy plan off --where 'transport = sas' --out plan.json", "all SAS disks"),
        ],
        exits: &[(0, "planned, or nothing to do"), (1, ""), (3, ""), (4, "a disk is refused")],
        files: &[CLAIMS],
        ..NONE
    },
    Page {
        command: "policy apply",
        essential: &["resume", "observe", "format"],
        examples: &[
            example("plumb policy apply plan.json", "check again, change in waves, read back"),
            example("plumb policy apply plan.json --observe /srv/probe", "and measure the longest stall"),
        ],
        files: &[CLAIMS, JOURNALS],
        ..NONE
    },
    Page {
        command: "policy verify",
        essential: &["prometheus-file", "format"],
        examples: &[example("plumb policy verify plan.json", "are the disks as planned?")],
        files: &[CLAIMS],
        ..NONE
    },
    Page {
        command: "policy rollback",
        essential: &["format"],
        examples: &[example(
            "plumb policy rollback /var/lib/plumb/policy/journals/1",
            "as `apply` printed it",
        )],
        files: &[CLAIMS, JOURNALS],
        ..NONE
    },
    Page {
        command: "policy watch",
        essential: &["all", "where", "interval", "prometheus-file"],
        groups: &[group("Which disks", &["all", "where", "claims"])],
        examples: &[example("plumb policy watch --all --interval 5m", "report each change of a write cache")],
        files: &[CLAIMS],
        ..NONE
    },
    Page {
        command: "policy persist",
        essential: &["remove", "format"],
        examples: &[
            example("plumb policy persist sdb", "keep its present state after power cycles"),
            example("plumb policy persist", "which states are kept, and how reliably?"),
        ],
        files: &[CLAIMS, STATES, PERSISTENCE],
        ..NONE
    },
    Page {
        command: "policy heal",
        essential: &["all", "where", "dry-run"],
        groups: &[group("Which disks", &["all", "where", "claims"])],
        examples: &[example(
            "plumb policy heal --all --dry-run",
            "which disks get no flushes, and what helps?",
        )],
        files: &[CLAIMS, JOURNALS],
        ..NONE
    },
    Page {
        command: "policy claim",
        essential: &["by", "until", "reason", "withdraw"],
        examples: &[example(
            "plumb policy claim sdb --by anna --until 2027-06-30 --reason 'battery replaced'",
            "the cache of sdb survives a power cut until then",
        )],
        files: &[CLAIMS],
        ..NONE
    },
    Page {
        command: "policy enforce",
        essential: &["udev"],
        examples: &[example("plumb policy enforce", "after a boot")],
        files: &[CLAIMS, STATES, JOURNALS, PERSISTENCE],
        ..NONE
    },
    Page {
        command: "prove",
        examples: &[
            example("plumb prove app --subject sqlite:journal=wal", "does SQLite keep its commits?"),
            example("plumb prove trace ./write.sh", "which syncs does a program leave out?"),
        ],
        ..NONE
    },
    Page {
        command: "prove app",
        essential: &["subject", "run", "check", "read", "drive", "fs", "budget", "out", "format"],
        groups: &[
            group(
                "What is put to the test",
                &[
                    "subject",
                    "run",
                    "check",
                    "read",
                    "setup",
                    "user",
                    "ack",
                    "run-timeout",
                    "recording",
                    "keep",
                    "resume",
                ],
            ),
            group("On which drive", &["drive", "fs", "size", "block-size", "mount-here"]),
            group(
                "Which states and how long",
                &[
                    "states",
                    "budget",
                    "recordings",
                    "recovery-depth",
                    "target",
                    "workers",
                    "check-timeout",
                    "seed",
                    "no-change",
                    "needless-syncs",
                ],
            ),
            group("Recording", &["overwrite"]),
        ],
        examples: &[
            example(
                "plumb prove app --subject sqlite:journal=delete,synchronous=full",
                "does SQLite keep its commits?",
            ),
            example("plumb prove app --subject postgres", "is PostgreSQL safe on a volatile cache?"),
            example(
                "plumb prove app --run ./write.sh --check ./check.sh --fs xfs --drive volatile,lying:8",
                "a program of your own, on two kinds of drives",
            ),
            example(
                "plumb prove app --run ./write.sh --check ./check.sh --fs posix",
                "on any file system, without root",
            ),
            example("plumb prove app --run ./write.sh --fs posix", "the same without a checker"),
        ],
        notes: &[
            "--run and --check are given to `sh -c` and start in the mount, or with --fs none with the block device in PLUMB_DEVICE; a first \
             word such as ./write.sh is looked up in the directory in which plumb was started. The program acknowledges what it promises by a number in the file that PLUMB_ACK names: echo 3 > $PLUMB_ACK. The checker finds the \
             last acknowledgement before the cut in PLUMB_REQUIRED, and exits with 0 (intact), 1 (acknowledged data is lost) or 2 (data is \
             corrupt); any other status says that the check itself failed.",
            "A power cut is simulated; nothing is written but files of plumb's own. It takes root, FUSE and a loop device, or with --fs posix \
             strace alone.",
        ],
        exits: &[
            (0, "no state fails, proved or not"),
            (1, "a state fails"),
            (3, "not all could be judged or seen"),
        ],
        files: &[RUNS],
    },
    Page {
        command: "prove ci",
        essential: &["require", "baseline", "read", "junit", "gitlab", "page", "format"],
        groups: &[
            group("What is put to the test", &["setup", "check", "read"]),
            group("What is required", &["require", "baseline", "write-baseline"]),
            group("How long", &["budget", "seed"]),
            group("For the build server", &["junit", "page", "gitlab", "github"]),
            group("Recording", &["overwrite"]),
        ],
        examples: &[
            example("plumb prove ci -- ./save.sh", "does a power cut lose what it saved?"),
            example(
                "plumb prove ci --require proved --junit prove.xml -- ./save.sh",
                "the same with a report for the build server",
            ),
            example("plumb prove ci --write-baseline accepted -- ./save.sh", "accept what fails today"),
        ],
        notes: &[
            "The program starts in an empty directory. It is recorded by strace(1), without root, and judged as by `plumb prove app --fs \
             posix`. A baseline identifies a failure by its class and the names of the lost files, without their numbers.",
        ],
        exits: &[
            (0, "what is required is met"),
            (1, "a state fails that the baseline does not accept"),
            (3, "not proved although that is required, or not all could be judged"),
        ],
        files: &[RUNS],
    },
    Page {
        command: "prove replay",
        essential: &["mount", "format"],
        examples: &[
            example("plumb prove replay plumb-runs/RUN", "the worst failing state again"),
            example("plumb prove replay plumb-runs/RUN --mount /mnt", "look at its files"),
        ],
        notes: &[
            "It takes root, FUSE and a loop device, except for a proof with --fs posix, whose state is made in DIR. Changes to a mounted \
                  state are forgotten.",
        ],
        exits: &[
            (0, "the state was mounted (--mount)"),
            (1, "the state fails as before"),
            (3, "the checker says something else now"),
        ],
        ..NONE
    },
    Page {
        command: "prove trace",
        essential: &["beneath", "fail-fsync", "format"],
        examples: &[
            example("plumb prove trace ./write.sh", "which syncs does it leave out?"),
            example("plumb prove trace --fail-fsync ./write.sh", "does it notice a failed fsync?"),
        ],
        ..NONE
    },
    Page {
        command: "prove witness",
        essential: &["dir", "listen"],
        examples: &[example(
            "plumb prove witness --dir w --listen /run/witness",
            "on a machine that keeps its power",
        )],
        notes: &[
            "Without --listen it serves one writer on its stdin and stdout: `plumb prove writer /dev/sdX --witness 'ssh HOST plumb prove \
                  witness --dir DIR'`. It must not lose power with the drive. It may be killed and started again at any time: what it has \
                  confirmed is durable.",
        ],
        ..NONE
    },
    Page {
        command: "prove writer",
        essential: &["witness", "seconds", "size", "overwrite", "destroy"],
        groups: &[
            group("Witness", &["witness", "patience"]),
            group(
                "What is written",
                &["seconds", "size", "block-size", "depth", "flush-every", "fua-percent"],
            ),
            group("Safety", &["overwrite", "destroy"]),
        ],
        examples: &[example(
            "plumb prove writer /dev/sdX --witness 'ssh w plumb prove witness --dir w' --overwrite",
            "write until the power goes out",
        )],
        notes: &[
            "It writes until the power goes out, or --seconds are over. Then: `plumb prove verify TARGET \
             --witness W`.",
            "Writing to a disk, or to a file that plumb did not make, needs --overwrite; a disk that is in use or has a signature needs \
             --destroy with its serial, and a file that has one needs it with its path.",
        ],
        ..NONE
    },
    Page {
        command: "prove verify",
        essential: &["witness", "format"],
        examples: &[example(
            "plumb prove verify /dev/sdX --witness 'ssh w plumb prove witness --dir w'",
            "when the power is back",
        )],
        notes: &["It reads only."],
        exits: &[
            (0, "all that was acknowledged as durable is there"),
            (1, "some of it is not"),
            (3, "nothing can be said"),
        ],
        ..NONE
    },
    Page {
        command: "prove campaign",
        essential: &["dir", "cycles", "power", "cut-with", "power-on-with", "on", "overwrite", "destroy"],
        groups: &[
            group("Power", &["power", "cut-with", "power-on-with", "cut-after", "aim"]),
            group("Cycles", &["dir", "cycles", "patience", "seed"]),
            group("Machine under test", &["on", "plumb"]),
            group("What is written", &["size", "block-size", "depth", "flush-every", "fua-percent"]),
            group("Safety", &["overwrite", "destroy"]),
        ],
        examples: &[
            example(
                "plumb prove campaign --dir c --power drive:slow nbd+unix:///?socket=/tmp/nbd",
                "a simulated drive",
            ),
            example(
                "plumb prove campaign /dev/sdX --dir c --on 'ssh root@h' --power ipmi:me@bmc --overwrite",
                "a real disk in another machine",
            ),
        ],
        notes: &[
            "This machine is the witness, and must keep its power. With --on the writer runs on another machine; the password of an IPMI \
                  switch is in IPMI_PASSWORD. The same command with the same --dir continues a campaign. \
                  Each write of a cycle overwrites the data in its place.",
        ],
        ..NONE
    },
    Page {
        command: "fleet",
        examples: &[
            example("plumb fleet policy-show --hosts 'db[1-20]'", "which servers have their write cache on?"),
            example("plumb fleet survey --hosts 'a[01-08],db1' /srv", "the write path on each host"),
            example(
                "plumb fleet check --hosts a,b --launcher 'srun -w {host}' /srv",
                "through another launcher",
            ),
            example(
                "plumb fleet survey --hosts 'db-[0-2]' --launcher 'kubectl exec -i {pod} --' /data",
                "pods",
            ),
        ],
        notes: &[
            "plumb adds the remote command to the launcher's words as one word, as ssh takes it; a launcher \
             that names neither ssh nor a shell is given `sh -c`. It must not prompt: set up its keys \
             first. Of its words only the program is recorded.",
        ],
        exits: &[
            (1, "a finding, even if a host is missing"),
            (3, "nothing found, but a host is missing or its result is incomplete"),
        ],
        files: &[RUNS],
        ..NONE
    },
    Page {
        command: "fleet load",
        essential: &[
            "hosts",
            "launcher",
            "push",
            "scale",
            "size",
            "block-size",
            "write",
            "random",
            "depth",
            "duration",
            "format",
        ],
        groups: &[group("Hosts", &["scale"])],
        examples: &[
            example(
                "plumb fleet load --hosts hosts.txt /srv/io --size 1G --random --write 100",
                "at the same time on all",
            ),
            example(
                "plumb fleet load --hosts 'a[01-08]' --scale 1,2,4,8 --push /srv/io --size 1G",
                "on more and more hosts",
            ),
        ],
        notes: &[
            "Each host runs the workload on its own targets; {host} in the name of a target stands for the name of the host, and each \
                  host draws its random choices from a seed of its own. The total is the sum of their rates, each over the time that it ran. \
                  Everything else is as in `plumb load`.",
        ],
        exits: &[
            (1, "a finding, even if a host is missing"),
            (3, "nothing found, but a host is missing or its result is incomplete"),
        ],
        files: &[RUNS],
    },
    Page {
        command: "fleet compare",
        essential: &["hosts", "factor", "a", "b", "rounds", "size", "write", "format"],
        groups: &[
            group("What differs", &["factor", "a", "b"]),
            group("How sure and how long", &["rounds", "equivalent", "confidence", "figure", "fail-if"]),
        ],
        examples: &[
            example(
                "plumb fleet compare --hosts hosts.txt --factor buffering=direct,cached /srv/io --size 1G",
                "on all at once",
            ),
            example(
                "plumb fleet compare --hosts a,b --factor policy=on,off --rounds 20 /srv/io --size 1G",
                "write caches on and off",
            ),
            example(
                "plumb fleet compare --hosts a,b --a '--depth 1' --b '--depth 32' /srv/io --size 1G",
                "any two command lines",
            ),
        ],
        notes: &[
            "Each block is a load on all hosts at once, and its value is that of all of them together; --duration is how long it is measured. \
             Blocks of the levels take turns in an order that is drawn from the seed. Levels of policy= and scheduler= are set on each host \
             before its block, and put back after it; cache= and fs= need a place on each machine, and are compared on each alone.",
            "The result is a comparison, so it has no metrics of hosts: --format prometheus is refused.",
        ],
        exits: &[
            (0, "done, whatever the outcome"),
            (1, "a limit of --fail-if is exceeded"),
            (3, "interrupted, a host is missing, or a limit is not decided"),
        ],
        files: &[RUNS],
    },
    Page {
        command: "fleet check",
        essential: &["hosts", "launcher", "push", "out", "format"],
        examples: &[example("plumb fleet check --hosts 'a[1-8]' /srv", "is an fsync durable on each host?")],
        files: &[RUNS],
        ..NONE
    },
    Page {
        command: "fleet survey",
        essential: &["hosts", "launcher", "push", "out", "format"],
        examples: &[example("plumb fleet survey --hosts 'a[01-08],db1' /srv", "the write path on each host")],
        files: &[RUNS],
        ..NONE
    },
    Page {
        command: "fleet policy-show",
        essential: &["hosts", "launcher", "push", "out", "format"],
        examples: &[example(
            "plumb fleet policy-show --hosts 'db[1-20]' --format csv",
            "which write caches are on?",
        )],
        files: &[RUNS],
        ..NONE
    },
    Page {
        command: "report",
        essential: &["format", "output", "beneath", "verbose", "quiet"],
        groups: &[group("Which run", &["result", "beneath"]), group("Report", &["overwrite"])],
        examples: &[
            example("plumb report", "the newest run"),
            example("plumb report plumb-runs/RUN --format html --output page.html", "a page to send"),
            example("plumb report fio.json", "what does last week's result of fio say?"),
        ],
        files: &[RUNS],
        ..NONE
    },
    Page {
        command: "explain",
        examples: &[
            example("plumb explain flush-dropped", "one rule: its meaning, how it is found, what to do"),
            example("plumb explain", "all rules by layer, each with its severity"),
        ],
        ..NONE
    },
    Page {
        command: "restore",
        essential: &["dry-run", "format"],
        examples: &[example("plumb restore --dry-run", "is anything left?")],
        notes: &[
            "A killed plumb may leave settings of a comparison (policies, schedulers, caches, file systems), instances of the kernel's \
                  tracing, and block devices and sockets of its servers. What a running plumb uses is never \
                  touched. Only root can remove what root has left.",
        ],
        exits: &[
            (0, "nothing is left"),
            (1, "something is left (--dry-run)"),
            (3, ""),
            (4, "something is in use and stays"),
            (5, "something could not be put back"),
        ],
        ..NONE
    },
    Page {
        command: "agent",
        essential: &["stdio"],
        examples: &[example("plumb agent --stdio", "as `plumb fleet` starts it on a host")],
        ..NONE
    },
    Page {
        command: "manual",
        essential: &["overwrite"],
        examples: &[example("plumb manual /usr/local/share/man/man1", "then: man plumb-check")],
        ..NONE
    },
    Page {
        command: "completions",
        examples: &[
            example("plumb completions bash > /etc/bash_completion.d/plumb", "for bash"),
            example("plumb completions zsh > ~/.zfunc/_plumb", "for zsh"),
            example("plumb completions fish > ~/.config/fish/completions/plumb.fish", "for fish"),
        ],
        notes: &[
            "The scripts ask plumb itself for the names of profiles, rules, models, subjects, caches and served drives.",
        ],
        ..NONE
    },
];
