//! What `-?` prints.

/// How to use the SQLIO command line of plumb.
pub const USAGE: &str = "\
Usage: plumb sqlio [switches] FILE [FILE ...]
       plumb sqlio [switches] -FPARAMFILE

Measures as SQLIO did, on Linux. A switch and its value are one argument (-b64). SQLIO was retired in 2015: what its
switches mean is recalled, and what is not certain is refused.

  -k{R,W}       read [default] or write
  -sSECONDS     how long [30]
  -tN           threads of each file [1]
  -oN           outstanding I/Os of each thread [0: one at a time]
  -bKB          an I/O [2]
  -f{random,sequential,BLOCKS}  where to go; BLOCKS from one I/O to the next [64]
  -SBLOCKS      blocks left out at the start of each file [0]
  -B{N,Y,H,S}   buffering: none [default], all, the device's, the page cache
  -L{S,P}       latencies
  -aMASK, -p..  processors for the threads
  -R#[,#]       disks by number, always past the page cache
  -FPARAMFILE   files from lines of: path, threads, mask, size in MB; missing files are made of that size

And plumb's own --overwrite, --destroy SERIAL, --json, --tui, --show-workload, --out DIR.
";
