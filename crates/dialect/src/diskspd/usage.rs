//! What `-?` prints.

/// How to use the DiskSpd command line of plumb.
pub const USAGE: &str = "\
Usage: plumb diskspd [switches] TARGET [TARGET ...]

Measures as DiskSpd 2.2 does, on Linux. A switch and its value are one argument (-b4k), and switches come before
targets. SIZE is digits and K, M, G, T (1024) or b (blocks of -b), in either case.

Targets:
  PATH        a file
  #N          a whole drive: always past the page cache
  *N          a template, filled in when a profile is run (with -Rp or in a profile)

What is read and written:
  -bSIZE      the block [64K]
  -wPERCENT   writes [0]
  -oN         outstanding I/Os of each thread on each target [2]; 1 is synchronous
  -tN         threads of each target [1]
  -FN         threads in all, each on every target; not with -t
  -ON         with -F: outstanding I/Os of each thread over all targets; not with -g -j -p
  -cSIZE      make the files of this size
  -dSECONDS   measured time [10]; -WSECONDS before it [5]; -CSECONDS after it [0]

Where:
  -r[SIZE]    random, at multiples of SIZE [the block]
  -rsPERCENT  so many of 100 I/Os to a random place, the others in a row
  -rdpctIO/TARGET[:IO/TARGET...]  shares of the I/Os on percents of the target, in order; the rest to the rest
  -rdabsIO/SIZE[:IO/SIZE...]      the same on sizes; a share of 0 is a hole
  -s[i][SIZE] sequential with this stride [the block]; i: all threads share one offset
  -p          all outstanding I/Os walk from the same offset
  -TSIZE      the start of a thread after that of the thread before
  -BBASE[:LENGTH]  begin at BASE
  -fSIZE      end at SIZE

Caches and durability:
  -Sb         through the page cache [default]
  -Su, -S     past it (O_DIRECT)
  -Sr         past it on a local file; a file server may cache
  -Sw         each write durable when it completes (RWF_DSYNC)
  -Sh, -h     -Suw
  -Sm         memory mapped; -N{v,n,i} and -Sw: msync after each write
  -f{r,s,t}   hints of access: taken, not given

How fast:
  -gN         bytes per millisecond of each thread on each target; -gNi: I/Os per second
  -iN -jMS    bursts of N I/Os, MS milliseconds between them
  -I{1,2,3}   I/O priority: very low, low, normal [3]

Bytes written [0 to 255 over and over]:
  -Z          zeroes;  -Zr  random, new for each write
  -ZSIZE[,FILE]  from a buffer of random bytes, or of a file's
  -z[SEED]    the seed of all random choices [0]; without a value, the time since the machine started

Threads:
  -a[g]       on all processors in turn [default];  -a[gG,]N[,N...]  on these
  -n          wherever the scheduler puts them
  -x, -l      completion routines, large pages: taken; nothing differs here

Output:
  -R{text,xml}  tables [default], XML; both, if both are given;  -Rp[text|xml]  the profile alone, running nothing
  -L          latencies;  -D[MS]  how I/Os per second varied over intervals of MS [1000]
  -P[N]       a dot for every N I/Os of a thread [65536]
  -v, -vs     more words; how threads waited
  -e..., -:N  Windows event tracing, experiments: taken; nothing differs here

Profiles:
  -XFILE      run a profile; -W -d -C -R -v -z -: change it, and targets fill in its templates *1, *2, ...
";
