//! Each switch that changes what is done, as plain data: where a device is at hand, the same list asks
//! whether the stream of requests changes, too.

/// Kind of change that a switch makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// The requests: where they go, how many at once, how fast, what they carry, how they are made durable.
    Requests,
    /// Only how targets are opened.
    Opening,
    /// Only where and with what priority threads run.
    Placement,
    /// Only how long.
    Time,
    /// Only the file, before the first request.
    File,
    /// Only which target.
    Target,
}

/// The switch, what it changes, the arguments without it, and with it.
pub(crate) const CHANGES: &[(&str, What, &str, &str)] = &[
    ("-a", What::Placement, "-t2 t", "-t2 -a1,2 t"),
    ("-ag", What::Placement, "-t2 t", "-t2 -ag0,3,1 t"),
    ("-b", What::Requests, "t", "-b4k t"),
    ("-B", What::Requests, "t", "-B1m t"),
    ("-B:", What::Requests, "t", "-B1m:1m t"),
    ("-c", What::File, "t", "-c1g t"),
    ("-C", What::Time, "t", "-C3 t"),
    ("-d", What::Time, "t", "-d3 t"),
    ("-f", What::Requests, "t", "-f1m t"),
    ("-F", What::Requests, "t", "-F3 t"),
    ("-g", What::Requests, "t", "-g1000 t"),
    ("-gi", What::Requests, "t", "-g1000i t"),
    ("-h", What::Requests, "-w100 t", "-w100 -h t"),
    ("-i -j", What::Requests, "t", "-i10 -j5 t"),
    ("-I", What::Placement, "t", "-I1 t"),
    ("-n", What::Placement, "t", "-n t"),
    ("-Nv", What::Requests, "-w100 -Sm t", "-w100 -Sm -Nv t"),
    ("-Nn", What::Requests, "-w100 -Sm t", "-w100 -Sm -Nn t"),
    ("-Ni", What::Requests, "-w100 -Sm t", "-w100 -Sm -Ni t"),
    ("-o", What::Requests, "t", "-o8 t"),
    ("-o1", What::Requests, "t", "-o1 t"),
    ("-O", What::Requests, "-F2 t u", "-F2 -O8 t u"),
    ("-p", What::Requests, "t", "-p t"),
    ("-r", What::Requests, "t", "-r t"),
    ("-r align", What::Requests, "-r t", "-r4k t"),
    ("-rs", What::Requests, "-r t", "-rs30 t"),
    ("-rdpct", What::Requests, "-r t", "-r -rdpct90/10 t"),
    ("-rdabs", What::Requests, "-r t", "-r -rdabs90/1m t"),
    ("-s", What::Requests, "t", "-s128k t"),
    ("-si", What::Requests, "-t2 t", "-t2 -si t"),
    ("-S", What::Opening, "t", "-S t"),
    ("-Su", What::Opening, "t", "-Su t"),
    ("-Sr", What::Opening, "t", "-Sr t"),
    ("-Sw", What::Requests, "-w100 t", "-w100 -Sw t"),
    ("-Sh", What::Requests, "-w100 t", "-w100 -Sh t"),
    ("-Sm", What::Opening, "-o1 t", "-o1 -Sm t"),
    ("-Smw", What::Requests, "-w100 -Sm t", "-w100 -Smw t"),
    ("-t", What::Requests, "t", "-t4 t"),
    ("-T", What::Requests, "-t2 t", "-t2 -T1m t"),
    ("-w", What::Requests, "t", "-w30 t"),
    ("-W", What::Time, "t", "-W1 t"),
    ("-z", What::Requests, "t", "-z5 t"),
    ("-z bare", What::Requests, "t", "-z t"),
    ("-Z", What::Requests, "-w100 t", "-w100 -Z t"),
    ("-Zr", What::Requests, "-w100 t", "-w100 -Zr t"),
    ("-Z size", What::Requests, "-w100 t", "-w100 -Z1m t"),
    ("-Z file", What::Requests, "-w100 t", "-w100 -Z1m,noise t"),
    ("target", What::Target, "t", "u"),
    ("#N", What::Target, "t", "#3"),
    ("second target", What::Requests, "t", "t u"),
];
