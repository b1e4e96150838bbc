//! Values of each type as users type them, and refused ones.

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Affinity, Amount, BlockSplit, Content, Distribution, Division, LatencyTarget, Warmup, Zone, ZoneLength,
};

use super::{SyncKind, Vocabulary, Weights};

fn check<T: Vocabulary + PartialEq + std::fmt::Debug>(typed: &str, meant: &T, shown: &str) {
    assert_eq!(T::parse(typed).as_ref(), Some(meant), "{typed}");
    assert_eq!(meant.show(), shown, "{typed}");
    assert_eq!(T::parse(shown).as_ref(), Some(meant), "{shown}");
}

fn refuse<T: Vocabulary + std::fmt::Debug>(typed: &[&str]) {
    for typed in typed {
        let parsed = T::parse(typed);
        assert!(parsed.is_none(), "`{typed}` was taken for {parsed:?}");
    }
}

#[test]
fn times_have_units_and_bare_numbers_are_seconds() {
    for (typed, nanos, shown) in [
        ("30s", 30_000_000_000, "30s"),
        ("10", 10_000_000_000, "10s"),
        ("0.5", 500_000_000, "500ms"),
        ("5ms", 5_000_000, "5ms"),
        ("1m30s", 90_000_000_000, "90s"),
        ("500us", 500_000, "500us"),
        ("1.5us", 1_500, "1500ns"),
        ("2h", 7_200_000_000_000, "2h"),
        ("0", 0, "0s"),
        ("18446744073709551615ns", u64::MAX, "18446744073709551615ns"),
    ] {
        check(typed, &Nanos(nanos), shown);
    }
    refuse::<Nanos>(&[
        "",
        "s",
        "-1s",
        "1x",
        "1m30",
        "30s5",
        "1.5ns",
        "1e3",
        "NaN",
        "inf",
        "999999999d",
        "1..5s",
        "+5s",
        "5 years",
    ]);
}

#[test]
fn sizes_and_lengths_are_powers_of_1024() {
    check("4k", &Bytes(4096), "4KiB");
    check("1536", &Bytes(1536), "1536");
    check("0", &Bytes(0), "0");
    check("4k", &BlockSplit::one(Bytes(4096)), "4KiB");
    check("4k/60,64k/40", &BlockSplit(vec![(Bytes(4096), 60), (Bytes(65536), 40)]), "4KiB/60,64KiB/40");
    refuse::<BlockSplit>(&["", "4k/60", "4k/60,64k", "4k/200,1k/156", "4k/-1,8k/101", "k/100", "4k,8k"]);
}

#[test]
fn distributions_are_said_with_their_parameter() {
    check("uniform", &Distribution::Uniform, "uniform");
    check("zipf:1.1", &Distribution::Zipf { theta: 1.1 }, "zipf:1.1");
    let zoned = Distribution::Zoned(vec![
        Zone { io_percent: 60.0, length: ZoneLength::Percent(10.0) },
        Zone { io_percent: 30.5, length: ZoneLength::Bytes(Bytes::gib(1)) },
        Zone { io_percent: 0.0, length: ZoneLength::Bytes(Bytes(512)) },
    ]);
    check("zoned:60/10,30.5/1G,0/512B", &zoned, "zoned:60/10,30.5/1GiB,0/512B");
    refuse::<Distribution>(&[
        "",
        "zipf",
        "zipf:",
        "zipf:NaN",
        "uniform:",
        "uniform:3",
        "zoned:",
        "zoned:60",
        "pareto:x",
    ]);
    check("offset:1G", &Division::Offset(Bytes::gib(1)), "offset:1GiB");
    refuse::<Division>(&["offset", "offset:", "part"]);
}

#[test]
fn rates_have_units() {
    check("5000iops", &Amount::Iops(5000.0), "5000iops");
    check("0.1 IOPS", &Amount::Iops(0.1), "0.1iops");
    for typed in ["100MiB", "100m", "100MB/s", "100 mib/s", "104857600B"] {
        check(typed, &Amount::BytesPerSecond(104_857_600.0), "100MiB");
    }
    check("0.1B", &Amount::BytesPerSecond(0.1), "0.1B");
    refuse::<Amount>(&["", "5000", "iops", "k", "5x", "infB", "NaNiops", "1e400B", "5kiops"]);
}

#[test]
fn the_rest_is_said_in_words() {
    check("auto", &Warmup::Auto, "auto");
    check("5", &Warmup::For(Nanos::secs(5)), "5s");
    check("10ms@99.9", &LatencyTarget { latency: Nanos::millis(10), percentile: 99.9 }, "10ms@99.9");
    refuse::<LatencyTarget>(&["10ms", "@99", "10ms@", "10ms@x"]);
    check("each:0,1", &Affinity::Each(vec![0, 1]), "each:0-1");
    check("shared:7,0-3,3", &Affinity::Shared(vec![7, 0, 1, 2, 3, 3]), "shared:7,0-3,3");
    refuse::<Affinity>(&["each", "each:", "each:-1", "each:3-1", "shared:0-4294967295", "all"]);
    let reducible = Content::Reducible { compress_percent: 50, dedup_percent: 20 };
    check("reducible:50/20", &reducible, "reducible:50/20");
    check(
        "file:1M,/a,b:c",
        &Content::File { size: Bytes::mib(1), path: "/a,b:c".into() },
        "file:1MiB,/a,b:c",
    );
    refuse::<Content>(&["", "noise", "pattern:", "buffer", "file:1M", "reducible:50", "reducible:101/0"]);
    check("dsync", &SyncKind::Dsync, "dsync");
    check("3, 1", &Weights(vec![3, 1]), "3,1");
    refuse::<Weights>(&["", "3,", "-1"]);
}
