//! What `--help` and `--version` print.

/// How to use the fio command line of plumb.
pub const USAGE: &str = "\
Usage: plumb fio [options] [JOBFILE ...]
       plumb fio [options] --name=JOB --rw=randread --size=1g ... [--name=JOB ...]

Runs fio's jobs, from job files (- is standard input) or options, and prints results as fio does. Options before the
first --name hold for all jobs. Options of jobs are those of fio(1); one that cannot be taken is refused by name.

  --output=FILE              write the results there
  --output-format=FORMAT,... normal [default], terse, json, json+; --minimal is terse
  --terse-version=3|5        which terse lines
  --section=NAME             run only this job of the job files; may be repeated
  --readonly                 refuse to write
  --parse-only               read the jobs, and run nothing
  --showcmd                  print job files as a command line, and run nothing
  --eta=always|never|auto    progress
  --version, --help

And plumb's own --overwrite, --destroy SERIAL, --json, --tui, --show-workload, --out DIR.
";

/// The version, in the form that those who look for fio's expect.
pub const VERSION: &str = concat!("plumb-", env!("CARGO_PKG_VERSION"), "\n");
