//! Tests of `plumb diskspd` as users run it: its outputs, profiles, and the rows of a field report on the
//! caches between a test and the disk.
//!
//! Tests of figures use `-n`, because otherwise the first threads of all simultaneous tests share one
//! processor.

use std::collections::HashSet;

use crate::common::{can_mount, entries, exited, holds, in_own_mounts, said, valid_document};
use crate::load_support::{Place, Zram, stderr};
use serde_json::Value;

/// Asserts that the text is one well-formed XML element.
fn assert_is_xml(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut elements = 0;
    for piece in text.trim().split('<').skip(1) {
        let (tag, after) = piece.split_once('>').unwrap_or_else(|| panic!("an open tag: {piece}"));
        assert!(!after.contains('>') || after.trim().is_empty(), "stray text: {after}");
        if tag.starts_with(['?', '!']) {
            continue;
        }
        elements += 1;
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "in {text}"),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split_whitespace().next().unwrap()),
        }
        assert!(!open.is_empty() || after.trim().is_empty(), "text behind the document: {after}");
    }
    assert!(open.is_empty() && elements > 0, "not closed: {open:?}");
    assert!(text.trim().starts_with('<'), "{text}");
}

#[test]
fn text_has_the_tables_that_parsers_look_for() {
    let place = Place::new();
    let output = exited(place.run("diskspd -c4M -b4k -r -w30 -o4 -t2 -W0 -d1 -L -D f"), 0);
    let text = String::from_utf8(output.stdout).unwrap();
    let parts = [
        "Command Line:",
        "Input parameters:",
        "System information:",
        "Results for timespan 1:",
        "actual test time:",
        "CPU |  Usage",
        "Total IO",
        "Read IO",
        "Write IO",
        "%-ile",
        "9-nines",
        "max |",
    ];
    let mut from = 0;
    for part in parts {
        let at =
            text[from..].find(part).unwrap_or_else(|| panic!("{part} is missing or out of order: {text}"));
        from += at;
    }
    assert_eq!(text.matches("f (4MiB)").count(), 6, "a line for each thread in each table: {text}");
    assert_eq!(entries(place.here.path()), ["f"]);
}

#[test]
fn xml_is_xml_and_alone_on_stdout() {
    let place = Place::new();
    let output = exited(place.run("diskspd -c4M -b4k -r -w30 -W0 -d1 -L -D -Rxml f"), 0);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_is_xml(&text);
    for element in
        ["<Results>", "<Profile>", "<TimeSpan>", "<TestTimeSeconds>", "<IOCount>", "<Latency", "<Iops"]
    {
        assert!(text.contains(element), "{element}: {text}");
    }
}

#[test]
fn of_two_result_formats_the_last_counts_so_that_a_parser_reads_it() {
    let place = Place::new();
    let output = place.run("diskspd -c4M -b4k -W0 -d1 -Rtext -Rxml f");
    assert_is_xml(&String::from_utf8(output.stdout).unwrap());
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let place = Place::new();
    let output = exited(place.run("diskspd -c4M -n --json -b4k -w20 -W0 -d1 -Rxml -Zr f"), 0);
    let document = valid_document("load", &output);
    assert_eq!(document["targets"][0]["application"]["io_bytes_mean"], 4096.0);
}

#[test]
fn a_profile_is_printed_without_a_run_and_runs_when_given() {
    let place = Place::new();
    let printed = exited(place.run("diskspd -c4M -n -b8k -r -w40 -W0 -d1 -t2 -Rpxml f"), 0);
    assert_is_xml(&String::from_utf8_lossy(&printed.stdout));
    assert_eq!(entries(place.here.path()), Vec::<String>::new(), "it was run");
    std::fs::write(place.path("p.xml"), &printed.stdout).unwrap();
    let from_file = place.json("diskspd -Xp.xml -Rtext", 0);
    assert_eq!(from_file["targets"][0]["application"]["io_bytes_mean"], 8192.0);
    assert_eq!(from_file["spans"][0]["jobs"][0]["threads"], 2);
    exited(place.run("diskspd -Xp.xml -b4k"), 2);
}

#[test]
fn notes_are_left_out_where_no_terminal_is() {
    let place = Place::new();
    let output = exited(place.run("diskspd -c4M -b4k -W0 -d1 -x -Zr f"), 0);
    assert_eq!(stderr(&output), "");
    for named in ["-x (", "-Z ("] {
        assert!(!String::from_utf8_lossy(&output.stdout).contains(named));
    }
}

#[test]
fn c_makes_a_file_of_its_own_that_size_and_leaves_others_alone() {
    let place = Place::new();
    for (typed, size) in [("-c4M", 4 << 20), ("-c12M", 12 << 20), ("-c1M", 1 << 20)] {
        let output = place.run(&format!("diskspd {typed} -b4k -w50 -W0 -d1 f"));
        assert_eq!(output.status.code(), Some(0), "{typed}: {}", said(&output));
        assert_eq!(std::fs::metadata(place.path("f")).unwrap().len(), size, "{typed}");
    }
    let foreign = place.foreign("g", 5000);
    let output = exited(place.run("diskspd -c2M -b4k -w50 -W0 -d1 g"), 4);
    assert!(stderr(&output).contains("g: ") && stderr(&output).contains("--overwrite"), "{}", said(&output));
    assert_eq!(std::fs::read(place.path("g")).unwrap(), foreign);
    exited(place.run("diskspd --overwrite -c2M -b4k -w50 -W0 -d1 g"), 0);
    assert_eq!(std::fs::metadata(place.path("g")).unwrap().len(), 2 << 20);
}

#[test]
fn dots_come_on_stdout_for_every_so_many_operations_also_into_a_file() {
    let place = Place::new();
    let output = exited(place.run("diskspd -c4M -b4k -W0 -d1 -P100 -n f"), 0);
    assert_eq!(stderr(&output), "");
    let text = String::from_utf8(output.stdout).unwrap();
    let (dots, results) = text.split_once('\n').unwrap();
    assert!(!dots.is_empty() && dots.chars().all(|dot| dot == '.'), "{text}");
    let total = results.lines().find(|line| line.starts_with("total:")).unwrap();
    let ios: usize = total.split('|').nth(1).unwrap().trim().parse().unwrap();
    assert!(dots.len() >= ios / 100, "{} dots, {ios} operations", dots.len());
    let xml = place.run("diskspd -c4M -b4k -W0 -d1 -P100 -Rxml f");
    assert_is_xml(&String::from_utf8(xml.stdout).unwrap());
}

/// DiskSpd then warms up, cools down and reports that; this is not a failure.
#[test]
fn in_no_time_nothing_is_measured_and_the_run_is_done() {
    let place = Place::new();
    let output = exited(place.run("diskspd -c1M -b4k -w100 -Zr -W1 -d0 f"), 0);
    assert_eq!(stderr(&output), "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("No results are displayed") && !text.contains("Storage:"), "{text}");
    assert_eq!(std::fs::metadata(place.path("f")).unwrap().len(), 1 << 20);
}

/// Returns the ratio by which gzip compresses a file; `None` without gzip, which is reported.
fn compressed(file: &std::path::Path) -> Option<f64> {
    let Ok(output) = std::process::Command::new("gzip").arg("-1c").arg(file).output() else {
        plumb_testkit::skip("gzip is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", said(&output));
    Some(output.stdout.len() as f64 / std::fs::metadata(file).unwrap().len() as f64)
}

/// Compressing or deduplicating storage gets random bytes by default.
#[test]
fn what_is_written_does_not_compress_and_neighbours_share_no_bytes() {
    let place = Place::new();
    for typed in ["diskspd -c8M -Z20M -b4k -w100 -W0 -d1", "diskspd -c8M -Zr -b4k -w100 -W0 -d1"] {
        let name = typed.split_whitespace().nth(2).unwrap().trim_start_matches('-');
        exited(place.run(&format!("{typed} {name}")), 0);
        let Some(ratio) = compressed(&place.path(name)) else { return };
        assert!(ratio > 0.95, "{typed}: {ratio}");
        let written = std::fs::read(place.path(name)).unwrap();
        let words = |block: &[u8]| block.chunks(8).map(<[u8]>::to_vec).collect::<HashSet<_>>();
        let blocks: Vec<HashSet<_>> = written.chunks(4096).take(256).map(words).collect();
        let sharing = blocks.windows(2).filter(|pair| !pair[0].is_disjoint(&pair[1])).count();
        assert!(sharing <= 2, "{typed}: {sharing} of 255 blocks share words with the next");
    }
    let output = place.run("load v --size 8M --write 100 --bytes 16M --verify");
    assert!(output.status.code() < Some(2), "{}", said(&output));
    let ratio = compressed(&place.path("v")).unwrap();
    assert!(ratio > 0.95, "what is verified compresses to {ratio}");
}

/// Number of bytes in flight when the counters are read, which may be counted on one side only.
const AT_THE_EDGES: u64 = 2 * 32 * 8192;

/// Returns the tolerated difference of both sides: the bytes in flight, and those of the time for which a
/// busy machine delays reading the counters.
const fn edges(application: u64) -> u64 {
    AT_THE_EDGES + application / 100
}

/// Returns the bytes of a row: at the application, read from the disk, written to the disk.
fn bytes(place: &Place, row: &str, direction: &str) -> (u64, u64, u64) {
    let text = std::fs::read(place.path(&format!("{row}.json"))).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    holds("load", &document);
    let target = &document["targets"][0];
    let of = |pointer: &str| {
        target.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{row}: {target:#}"))
    };
    let moved = (of(&format!("/{direction}/bytes")), of("/storage/read_bytes"), of("/storage/write_bytes"));
    assert!(moved.0 > 0, "{row}: nothing was done: {document:#}");
    moved
}

/// Runs rows of a shell script on a memory disk of its own, `$disk`. Each `row NAME SWITCHES TARGET` leaves
/// its document in NAME.json. The memory disk is a finding (exit 1).
fn rows_on_a_disk_of_our_own(rows: &str) -> Option<Place> {
    let place = Place::new();
    let Some(disk) = Zram::new(64 << 20).filter(|_| can_mount()) else {
        plumb_testkit::skip("no zram, or no mounts");
        return None;
    };
    let script = format!(
        "cd $place; out=$(mktemp -d); trap 'cd /; umount -q $place/m || true; rm -r $out' EXIT; disk={}; row() {{ \
         name=$1; shift; $plumb diskspd --json --overwrite --out $out/run -n -b8k -r -o32 -W0 -d1 --replace \"$@\" > $name.json \
         || test $? = 1; }}; {rows}",
        disk.path
    );
    exited(in_own_mounts(&script, place.here.path()), 0);
    Some(place)
}

#[test]
fn past_the_page_cache_the_disk_moves_what_the_application_does() {
    let rows = "mkfs.ext4 -q $disk; mkdir m; mount $disk m; row made -c16M -w0 m/f; sync -f m; row read -w0 -Su m/f; \
                row write -w100 -Zr -Su m/f; row through -w100 -Zr -Sh m/f; umount m";
    let Some(place) = rows_on_a_disk_of_our_own(rows) else { return };
    // The file system adds some writes of its own.
    let about = |disk: u64, application: u64| {
        disk + edges(application) >= application && disk < application + (4 << 20) + edges(application)
    };
    let (application, read, _) = bytes(&place, "read", "read");
    assert!(about(read, application), "{application} bytes were read, {read} from the disk");
    for row in ["write", "through"] {
        let (application, _, written) = bytes(&place, row, "write");
        assert!(
            about(written, application),
            "{row}: {application} bytes were written, {written} to the disk"
        );
    }
}

#[test]
fn through_the_page_cache_the_disk_moves_less() {
    let rows = "mkfs.ext4 -q $disk; mkdir m; mount $disk m; row made -c16M -w0 m/f; cat m/f > /dev/null; sync -f m; \
                row read -w0 m/f; row write -w100 -Zr m/f; umount m";
    let Some(place) = rows_on_a_disk_of_our_own(rows) else { return };
    let (application, read, _) = bytes(&place, "read", "read");
    // Other programs read a new disk, too.
    assert!(read < application / 100, "{application} bytes were read, from memory, and {read} from the disk");
    let (application, _, written) = bytes(&place, "write", "write");
    assert!(written < application, "{application} bytes were written, {written} to the disk");
}

#[test]
fn a_raw_disk_moves_what_the_application_does() {
    let rows = "row read -w0 -Su $disk; row write -w100 -Zr -Su $disk; row through -w100 -Zr -Sh $disk";
    let Some(place) = rows_on_a_disk_of_our_own(rows) else { return };
    for (row, direction) in [("read", "read"), ("write", "write"), ("through", "write")] {
        let (application, read, written) = bytes(&place, row, direction);
        let moved = if direction == "read" { (read, written) } else { (written, read) };
        assert!(
            moved.0.abs_diff(application) <= edges(application) && moved.1 == 0,
            "{row}: {application}, {moved:?}"
        );
    }
}
