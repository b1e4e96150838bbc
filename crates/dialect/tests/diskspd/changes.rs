//! Table of switches and their effects, used by tests of scenarios and of request streams.

/// Kind of effect of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// Requests: offsets, depth, rate, content, durability.
    Requests,
    /// Opening of targets only.
    Opening,
    /// Placement and priority of threads only.
    Placement,
    /// Times only.
    Time,
    /// The file before the first request only.
    File,
    /// The target only.
    Target,
}

/// Switch, effect, arguments without it, and arguments with it.
pub(crate) const CHANGES: &[(&str, ChangeKind, &str, &str)] = &[
    ("-a", ChangeKind::Placement, "-t2 t", "-t2 -a1,2 t"),
    ("-ag", ChangeKind::Placement, "-t2 t", "-t2 -ag0,3,1 t"),
    ("-b", ChangeKind::Requests, "t", "-b4k t"),
    ("-B", ChangeKind::Requests, "t", "-B1m t"),
    ("-B:", ChangeKind::Requests, "t", "-B1m:1m t"),
    ("-c", ChangeKind::File, "t", "-c1g t"),
    ("-C", ChangeKind::Time, "t", "-C3 t"),
    ("-d", ChangeKind::Time, "t", "-d3 t"),
    ("-f", ChangeKind::Requests, "t", "-f1m t"),
    ("-F", ChangeKind::Requests, "t", "-F3 t"),
    ("-g", ChangeKind::Requests, "t", "-g1000 t"),
    ("-gi", ChangeKind::Requests, "t", "-g1000i t"),
    ("-h", ChangeKind::Requests, "-w100 t", "-w100 -h t"),
    ("-i -j", ChangeKind::Requests, "t", "-i10 -j5 t"),
    ("-I", ChangeKind::Placement, "t", "-I1 t"),
    ("-n", ChangeKind::Placement, "t", "-n t"),
    ("-Nv", ChangeKind::Requests, "-w100 -Sm t", "-w100 -Sm -Nv t"),
    ("-Nn", ChangeKind::Requests, "-w100 -Sm t", "-w100 -Sm -Nn t"),
    ("-Ni", ChangeKind::Requests, "-w100 -Sm t", "-w100 -Sm -Ni t"),
    ("-o", ChangeKind::Requests, "t", "-o8 t"),
    ("-o1", ChangeKind::Requests, "t", "-o1 t"),
    ("-O", ChangeKind::Requests, "-F2 t u", "-F2 -O8 t u"),
    ("-p", ChangeKind::Requests, "t", "-p t"),
    ("-r", ChangeKind::Requests, "t", "-r t"),
    ("-r align", ChangeKind::Requests, "-r t", "-r4k t"),
    ("-rs", ChangeKind::Requests, "-r t", "-rs30 t"),
    ("-rdpct", ChangeKind::Requests, "-r t", "-r -rdpct90/10 t"),
    ("-rdabs", ChangeKind::Requests, "-r t", "-r -rdabs90/1m t"),
    ("-s", ChangeKind::Requests, "t", "-s128k t"),
    ("-si", ChangeKind::Requests, "-t2 t", "-t2 -si t"),
    ("-S", ChangeKind::Opening, "t", "-S t"),
    ("-Su", ChangeKind::Opening, "t", "-Su t"),
    ("-Sr", ChangeKind::Opening, "t", "-Sr t"),
    ("-Sw", ChangeKind::Requests, "-w100 t", "-w100 -Sw t"),
    ("-Sh", ChangeKind::Requests, "-w100 t", "-w100 -Sh t"),
    ("-Sm", ChangeKind::Opening, "-o1 t", "-o1 -Sm t"),
    ("-Smw", ChangeKind::Requests, "-w100 -Sm t", "-w100 -Smw t"),
    ("-t", ChangeKind::Requests, "t", "-t4 t"),
    ("-T", ChangeKind::Requests, "-t2 t", "-t2 -T1m t"),
    ("-w", ChangeKind::Requests, "t", "-w30 t"),
    ("-W", ChangeKind::Time, "t", "-W1 t"),
    ("-z", ChangeKind::Requests, "t", "-z5 t"),
    ("-z bare", ChangeKind::Requests, "t", "-z t"),
    ("-Z", ChangeKind::Requests, "-w100 t", "-w100 -Z t"),
    ("-Zr", ChangeKind::Requests, "-w100 t", "-w100 -Zr t"),
    ("-Z size", ChangeKind::Requests, "-w100 t", "-w100 -Z1m t"),
    ("-Z file", ChangeKind::Requests, "-w100 t", "-w100 -Z1m,noise t"),
    ("target", ChangeKind::Target, "t", "u"),
    ("#N", ChangeKind::Target, "t", "#3"),
    ("second target", ChangeKind::Requests, "t", "t u"),
];
