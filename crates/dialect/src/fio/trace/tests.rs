//! Constructed, damaged and arbitrary traces.

use plumb_block::{Bytes, Nanos};

use super::*;
use proptest::prelude::*;

/// Returns a record of `struct blk_io_trace`.
fn record(big: bool, time: u64, sector: u64, bytes: u32, action: u32, device: u32, pdu: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    let u32s = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let u64s = |value: u64| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let u16s = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    record.extend(u32s(0x6561_7407));
    record.extend(u32s(1));
    record.extend(u64s(time));
    record.extend(u64s(sector));
    for field in [bytes, action, 77, device, 0] {
        record.extend(u32s(field));
    }
    record.extend(u16s(0));
    record.extend(u16s(pdu.len() as u16));
    record.extend(pdu);
    assert_eq!(record.len(), 48 + pdu.len());
    record
}

const QUEUE: u32 = 1 | 1 << 20;
const COMPLETE: u32 = 8 | 1 << 23;
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const NOTIFY: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;
const SDA: u32 = 8 << 20;

fn by_hand(big: bool) -> Vec<u8> {
    [
        record(big, 900, 0, 0, NOTIFY, 0, b"fio\0"),
        record(big, 2000, 16, 8192, QUEUE | WRITE | FLUSH | FUA, SDA, &[]),
        record(big, 1000, 8, 4096, QUEUE | READ, SDA, &[]),
        record(big, 2500, 16, 8192, COMPLETE | WRITE, SDA, &[]),
        record(big, 3000, 0, 0, QUEUE | WRITE | FLUSH, SDA, &[]),
        record(big, 4000, 64, 4096, QUEUE | DISCARD | WRITE, SDA | 3, &[]),
    ]
    .concat()
}

fn event(at: u64, target: u16, op: TraceOp, offset: u64, length_bytes: u32) -> TraceEvent {
    TraceEvent { at: Nanos(at), target, op, offset: Bytes(offset), length_bytes }
}

fn expected() -> Vec<TraceEvent> {
    vec![
        event(0, 0, TraceOp::Read, 4096, 4096),
        event(1000, 0, TraceOp::Flush, 0, 0),
        event(1000, 0, TraceOp::Write { fua: true }, 8192, 8192),
        event(2000, 0, TraceOp::Flush, 0, 0),
        event(3000, 1, TraceOp::Trim, 32_768, 4096),
    ]
}

#[test]
fn blktrace_of_either_byte_order() {
    for big in [false, true] {
        let trace = read(&*by_hand(big)).unwrap();
        assert_eq!(trace.targets, ["/dev/block/8:0", "/dev/block/8:3"]);
        assert_eq!(trace.events, expected());
    }
}

#[test]
fn the_files_of_several_processors_are_one_trace() {
    let whole = by_hand(false);
    let file = |name: &str| -> io::Result<Box<dyn BufRead>> {
        let part = match name {
            "sda.blktrace.0" => &whole[..52],
            "sda.blktrace.1" => &whole[52..148],
            "sda.blktrace.2" => &whole[148..],
            _ => return Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        Ok(Box::new(io::Cursor::new(part.to_vec())))
    };
    assert_eq!(read_named("sda", &file).unwrap().events, expected());
    assert_eq!(read_named("sda.blktrace.2", &file).unwrap().events.len(), 2);
    assert!(read_named("sdb", &file).unwrap_err().to_string().contains("no such trace"));
}

#[test]
fn completions_serve_where_nothing_was_queued() {
    let only = record(false, 5, 8, 512, COMPLETE | WRITE, SDA, &[]);
    assert_eq!(read(&*only).unwrap().events, [event(0, 0, TraceOp::Write { fua: false }, 4096, 512)]);
}

#[test]
fn broken_blktrace_files_name_the_byte() {
    let whole = by_hand(false);
    let error = read(&whole[..60]).unwrap_err().to_string();
    assert!(error.contains("byte 52") && error.contains("within a record"), "{error}");
    let mut wrong = whole.clone();
    wrong[52] = 6;
    assert!(read(&*wrong).unwrap_err().to_string().contains("byte 52"));
    let beyond = record(false, 0, u64::MAX, 512, QUEUE | READ, SDA, &[]);
    assert!(read(&*beyond).unwrap_err().to_string().contains("16 EiB"));
}

#[test]
fn iologs_of_version_2_and_3() {
    let second = "fio version 2 iolog\n/a add\n/b add\n/a open\n/a write 0 4096\n/a wait 1500 0\n/b read 8192 512\n\
                  /a datasync 0 0\n/b trim 0 512\n/a close\n";
    let trace = read(second.as_bytes()).unwrap();
    assert_eq!(trace.targets, ["/a", "/b"]);
    let expected = [
        event(0, 0, TraceOp::Write { fua: false }, 0, 4096),
        event(1_500_000, 1, TraceOp::Read, 8192, 512),
        event(1_500_000, 0, TraceOp::Flush, 0, 0),
        event(1_500_000, 1, TraceOp::Trim, 0, 512),
    ];
    assert_eq!(trace.events, expected);
    let third = "fio version 3 iolog\n18 /a add\n100 /a open\n103 /a write 0 4096\n129 /a sync 0 0\n";
    let trace = read(third.as_bytes()).unwrap();
    assert_eq!(trace.events[1], event(26_000, 0, TraceOp::Flush, 0, 0));
}

#[test]
fn broken_iologs_name_the_line() {
    for (text, line) in [
        ("fio version 1 iolog\n", "line 1"),
        ("", "line 1"),
        ("fio version 2 iolog\n/a add\n/a write 0\n", "line 3"),
        ("fio version 2 iolog\n/a write x 1\n", "line 2"),
        ("fio version 2 iolog\n/a write 18446744073709551615 2\n", "line 2"),
        ("fio version 3 iolog\n1 /a wait 100 0\n", "line 2"),
        ("fio version 3 iolog\nx /a add\n", "line 2"),
        ("fio version 3 iolog\n18446744073709551615 /a read 0 1\n", "line 2"),
        ("fio version 2 iolog\n/a add\n\n/a read 0 0\n", "line 4"),
        ("fio version 2 iolog\n/a read 0 1073741825\n", "line 2"),
        ("fio version 2 iolog\n/a trim 0 4294967296\n", "line 2"),
        ("fio version 2 iolog\n/a read 0 512 512\n", "line 2"),
    ] {
        assert_eq!(read(text.as_bytes()).unwrap_err().place, line, "{text}");
    }
}

#[test]
fn hostile_iologs_are_bounded() {
    let endless = format!("fio version 2 iolog\n/{}", "a".repeat(100_000));
    let error = read(endless.as_bytes()).unwrap_err();
    assert_eq!(error.place, "line 2");
    assert!(error.problem.contains("longer than 8192"), "{error}");
    let names: String = (0..5000).map(|name| format!("/{name} add\n")).collect();
    let error = read(format!("fio version 2 iolog\n{names}").as_bytes()).unwrap_err();
    assert_eq!(error.place, "line 4098", "the head, 4096 targets, and one more");
    assert_eq!(read(&b"fio version 2 iolog\n\xff"[..]).unwrap_err().place, "line 2");
}

proptest! {
    #[test]
    fn nothing_panics_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(read(&*bytes).is_ok() || !bytes.is_empty() || bytes.is_empty());
    }

    #[test]
    fn damaged_traces_hold_the_invariants(
        place in 0_usize..350, value in any::<u8>(), cut in 0_usize..350, big in any::<bool>(),
    ) {
        let mut bytes = by_hand(big);
        let length = bytes.len();
        bytes[place % length] = value;
        bytes.truncate(cut.max(4));
        if let Ok(trace) = read(&*bytes) {
            prop_assert!(trace.events.len() <= bytes.len() / 24);
            prop_assert!(trace.events.windows(2).all(|pair| pair[0].at <= pair[1].at));
            for event in trace.events {
                prop_assert!((event.target as usize) < trace.targets.len());
                prop_assert!(event.offset.0.checked_add(event.length().0).is_some());
            }
        }
    }

    #[test]
    fn any_lines_after_the_head_are_read_or_refused(
        lines in proptest::collection::vec("[0-9]{0,21} ?/?[a-z]{0,3} (write|read|sync|wait|add|trim)? ?[0-9]{0,21} ?[0-9]{0,5}", 0..20),
        version in 2..4,
    ) {
        let text = format!("fio version {version} iolog\n{}", lines.join("\n"));
        if let Ok(trace) = read(text.as_bytes()) {
            prop_assert!(trace.events.len() <= lines.len());
        }
    }
}
