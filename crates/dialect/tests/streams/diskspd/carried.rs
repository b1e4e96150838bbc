//! Kind and content of requests: `-w`, `-S`, `-N`, `-Z`.

use plumb_block::Op;
use plumb_workload::Caching;

use super::{brief, span, stream};
use crate::streams::crew::{Stream, is_write};
use crate::streams::recording::RequestContent;

#[test]
fn w_is_the_percent_of_writes() {
    for (typed, expected) in
        [("-b4k t", 0.0), ("-b4k -w0 -r t", 0.0), ("-b4k -w30 t", 30.0), ("-b4k -r -w75 t", 75.0)]
    {
        let writes = stream(&format!("-W0 -d10 {typed}")).percent(is_write);
        let tolerance = if expected == 0.0 { 0.0 } else { 1.5 };
        assert!((writes - expected).abs() <= tolerance, "{typed}: {writes} % writes");
    }
    assert_eq!(brief("-w100 t").percent(is_write), 100.0);
    assert!(brief("-w1 t").percent(is_write) > 0.0 && brief("-w99 t").percent(is_write) < 100.0);
}

#[test]
fn w_makes_every_write_durable_when_it_completes_and_no_read() {
    for (typed, caching, fua) in [
        ("-w50 t", Caching::Cached, false),
        ("-w50 -Sb t", Caching::Cached, false),
        ("-w50 -S t", Caching::Direct, false),
        ("-w50 -Su t", Caching::Direct, false),
        ("-w50 -Sr t", Caching::Direct, false),
        ("-w50 -Sw t", Caching::Cached, true),
        ("-w50 -Sbw t", Caching::Cached, true),
        ("-w50 -Sh t", Caching::Direct, true),
        ("-w50 -h t", Caching::Direct, true),
        ("-w50 -Suw t", Caching::Direct, true),
        ("-w50 -Srw t", Caching::Direct, true),
    ] {
        assert_eq!(span(typed).jobs[0].opening.caching, caching, "{typed}");
        let stream = brief(typed);
        assert!(stream.writes().iter().all(|seen| seen.op == Op::Write { fua }), "{typed}");
        assert!(stream.percent(|seen| seen.op == Op::Read) > 40.0, "{typed}");
        assert_eq!(stream.flushes(), 0, "{typed}");
    }
}

#[test]
fn a_mapping_is_flushed_after_each_write() {
    for typed in ["-w50 -Sm -Nv t", "-w50 -Sm -Nn t", "-w50 -Sm -Ni t", "-w50 -Smw t"] {
        assert_eq!(span(typed).jobs[0].opening.caching, Caching::Mapped, "{typed}");
        let stream = brief(typed);
        assert!(stream.writes().iter().all(|seen| seen.op == Op::Write { fua: false }), "{typed}");
        assert_eq!(stream.flushes(), stream.writes().len(), "{typed}: a flush for each write");
        let mut unflushed = 0;
        for seen in &stream.seen {
            unflushed = match seen.op {
                Op::Write { .. } => unflushed + 1,
                Op::Flush => 0,
                _ => unflushed,
            };
            assert!(unflushed <= 1, "{typed}: {unflushed} writes before a flush");
        }
    }
    assert_eq!(brief("-w50 -Sm t").flushes(), 0, "without -N and w nothing is flushed");
    assert_eq!(brief("-Sm -Nv t").flushes(), 0, "and nothing is where nothing is written");
}

/// Returns the contents of all writes.
fn bytes(stream: &Stream) -> Vec<&Vec<u8>> {
    let writes = stream.writes().into_iter();
    let bytes = writes.map(|seen| match &seen.carried {
        RequestContent::Bytes(bytes) => bytes,
        other => panic!("{other:?}"),
    });
    bytes.collect()
}

#[test]
fn by_default_writes_carry_0_to_255_over_and_over() {
    let counting: Vec<u8> = (0..=255).cycle().take(1024).collect();
    let stream = brief("-w100 t");
    assert!(bytes(&stream).iter().all(|bytes| **bytes == counting));
}

#[test]
fn z_writes_carry_zeroes() {
    let stream = brief("-w100 -Z t");
    assert!(bytes(&stream).iter().all(|bytes| bytes.iter().all(|byte| *byte == 0)));
}

#[test]
fn zr_writes_carry_noise_of_their_own() {
    let mut generations = Vec::new();
    for seen in brief("-w100 -Zr -t3 t").writes() {
        let RequestContent::Pattern { generation, .. } = seen.carried else { panic!("{seen:?}") };
        generations.push(generation);
    }
    let all = generations.len();
    generations.sort_unstable();
    generations.dedup();
    assert_eq!(generations.len(), all, "no two writes carry the same, whichever thread they are of");
    let seeds = |typed| match brief(typed).writes()[0].carried {
        RequestContent::Pattern { seed, .. } => seed,
        ref other => panic!("{other:?}"),
    };
    assert_ne!(seeds("-w100 -Zr t"), seeds("-w100 -Zr -z3 t"), "another seed, other noise");
}

/// Returns the number of distinct beginnings of writes.
fn different(stream: &Stream) -> usize {
    let mut bytes = bytes(stream);
    bytes.sort_unstable();
    bytes.dedup();
    bytes.len()
}

#[test]
fn a_buffer_of_noise_gives_each_write_another_part() {
    let stream = brief("-w100 -b4k -Z64k t");
    // 4 KiB may begin at 15,361 places in 64 KiB, 4 bytes apart, so few of 4,000 writes share one.
    assert!(different(&stream) > 3400, "{}", different(&stream));
    let ones: u32 = bytes(&stream)[0].iter().map(|byte| byte.count_ones()).sum();
    assert!((3600..4400).contains(&ones), "{ones} of 8192 bits: not noise");
    assert_eq!(different(&brief("-w100 -b4k -Z4k t")), 1, "a buffer of a block has one part");
}

#[test]
fn a_file_gives_the_bytes() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text: Vec<u8> = (0..16_384_u32).map(|index| (index / 512) as u8 + 1).collect();
    std::fs::write(file.path(), &text).unwrap();
    let stream = brief(&format!("-w100 -b4k -Z16k,{} t", file.path().display()));
    assert!(different(&stream) > 1000, "{}", different(&stream));
    for bytes in bytes(&stream) {
        assert!(text.windows(bytes.len()).step_by(4).any(|part| part == bytes), "not of the file");
    }
}
