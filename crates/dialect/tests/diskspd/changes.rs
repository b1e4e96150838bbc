//! Each switch that changes what is done, with a command line without it and one with it. Where a device is at hand,
//! the same list asks whether the stream of requests changes, too.

/// The switch, the arguments without it, and with it.
pub(crate) const CHANGES: &[(&str, &str, &str)] = &[
    ("-a", "-t2 t", "-t2 -a1,2 t"),
    ("-ag", "-t2 t", "-t2 -ag0,3,1 t"),
    ("-b", "t", "-b4k t"),
    ("-B", "t", "-B1m t"),
    ("-B:", "t", "-B1m:1m t"),
    ("-c", "t", "-c1g t"),
    ("-C", "t", "-C3 t"),
    ("-d", "t", "-d3 t"),
    ("-f", "t", "-f1m t"),
    ("-F", "t", "-F3 t"),
    ("-g", "t", "-g1000 t"),
    ("-gi", "t", "-g1000i t"),
    ("-h", "-w100 t", "-w100 -h t"),
    ("-i -j", "t", "-i10 -j5 t"),
    ("-I", "t", "-I1 t"),
    ("-n", "t", "-n t"),
    ("-Nv", "-w100 -Sm t", "-w100 -Sm -Nv t"),
    ("-Nn", "-w100 -Sm t", "-w100 -Sm -Nn t"),
    ("-Ni", "-w100 -Sm t", "-w100 -Sm -Ni t"),
    ("-o", "t", "-o8 t"),
    ("-o1", "t", "-o1 t"),
    ("-O", "-F2 t u", "-F2 -O8 t u"),
    ("-p", "t", "-p t"),
    ("-r", "t", "-r t"),
    ("-r align", "-r t", "-r4k t"),
    ("-rs", "-r t", "-rs30 t"),
    ("-rdpct", "-r t", "-r -rdpct90/10 t"),
    ("-rdabs", "-r t", "-r -rdabs90/1m t"),
    ("-s", "t", "-s128k t"),
    ("-s0", "t", "-s0 t"),
    ("-si", "-t2 t", "-t2 -si t"),
    ("-S", "t", "-S t"),
    ("-Su", "t", "-Su t"),
    ("-Sr", "t", "-Sr t"),
    ("-Sw", "-w100 t", "-w100 -Sw t"),
    ("-Sh", "-w100 t", "-w100 -Sh t"),
    ("-Sm", "t", "-Sm t"),
    ("-Smw", "-w100 -Sm t", "-w100 -Smw t"),
    ("-t", "t", "-t4 t"),
    ("-T", "-t2 t", "-t2 -T1m t"),
    ("-w", "t", "-w30 t"),
    ("-W", "t", "-W1 t"),
    ("-z", "t", "-z5 t"),
    ("-z bare", "t", "-z t"),
    ("-Z", "-w100 t", "-w100 -Z t"),
    ("-Zr", "-w100 t", "-w100 -Zr t"),
    ("-Z size", "-w100 t", "-w100 -Z1m t"),
    ("-Z file", "-w100 t", "-w100 -Z1m,noise t"),
    ("target", "t", "u"),
    ("#N", "t", "#3"),
    ("second target", "t", "t u"),
];

/// Switches that change what is printed, not what is done.
const PRINTED: &[&str] = &["-L t", "-D t", "-D500 t", "-v t", "-vs t", "-P t", "-Rxml t", "-Rtext -Rxml t"];

/// Switches that mean nothing here and are said so once.
const SAID: &[(&str, &str)] = &[
    ("-x t", "-x"),
    ("-l t", "-l"),
    ("-fr t", "-fr"),
    ("-fs t", "-fs"),
    ("-ft t", "-ft"),
    ("-frst t u v", "-fr"),
    ("-eDISK_IO t", "-e"),
    ("-:1 t", "-:"),
];

#[test]
fn each_switch_changes_the_scenario() {
    for (switch, without, with) in CHANGES {
        let meaning =
            |typed| super::meaning(typed).unwrap_or_else(|error| panic!("{typed}: {error}")).scenario;
        assert_ne!(meaning(without), meaning(with), "{switch} changes nothing: {without} and {with}");
    }
}

#[test]
fn what_is_only_printed_changes_the_profile_alone() {
    let plain = super::invocation("t").unwrap();
    for typed in PRINTED {
        let changed = super::invocation(typed).unwrap();
        assert_ne!(plain.profile, changed.profile, "{typed} changes nothing");
        assert_eq!(super::meaning("t").unwrap().scenario, super::meaning(typed).unwrap().scenario, "{typed}");
    }
}

#[test]
fn what_means_nothing_here_is_said_once() {
    for (typed, named) in SAID {
        let notes = super::meaning(typed).unwrap().notes;
        assert_eq!(notes.iter().filter(|note| note.contains(named)).count(), 1, "{typed}: {notes:?}");
    }
    assert!(super::meaning("t").unwrap().notes.is_empty(), "nothing to say of nothing");
}
