//! `plumb diskspd` as people run it: its outputs, profiles, and the rows of a field report on caches between a test and
//! the disk.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;
mod load_support;

use std::collections::BTreeMap;

use common::{can_mount, document, entries, in_own_mounts, said};
use load_support::{LoopDevice, Place, assert_is_valid, stderr};
use serde_json::Value;

/// Whether it is one XML element with all elements within closed, and no text that is no XML.
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
    let output = place.run("diskspd -c4M -b4k -r -w30 -o4 -t2 -W0 -d1 -L -D f");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
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
    let output = place.run("diskspd -c4M -b4k -r -w30 -W0 -d1 -L -D -Rxml f");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_is_xml(&text);
    for element in
        ["<Results>", "<Profile>", "<TimeSpan>", "<TestTimeSeconds>", "<IOCount>", "<Latency>", "<Iops>"]
    {
        assert!(text.contains(element), "{element}: {text}");
    }
}

#[test]
fn text_and_xml_come_one_after_the_other() {
    let place = Place::new();
    let output = place.run("diskspd -c4M -b4k -W0 -d1 -Rtext -Rxml f");
    let text = String::from_utf8(output.stdout).unwrap();
    let (tables, xml) = text.split_at(text.find("<Results>").unwrap());
    assert!(tables.contains("Total IO") && tables.contains("Results for timespan 1:"), "{tables}");
    assert_is_xml(xml);
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let place = Place::new();
    let output = place.run("diskspd -c4M --json -b4k -w20 -W0 -d1 -Rxml -Zr f");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let document = document(&output);
    assert_is_valid(&document);
    assert_eq!(document["targets"][0]["application"]["io_bytes_mean"], 4096.0);
}

#[test]
fn a_profile_is_printed_without_a_run_and_runs_when_given() {
    let place = Place::new();
    let printed = place.run("diskspd -c4M -b8k -r -w40 -W0 -d1 -t2 -Rpxml f");
    assert_eq!(printed.status.code(), Some(0), "{}", said(&printed));
    assert_is_xml(&String::from_utf8_lossy(&printed.stdout));
    assert_eq!(entries(place.here.path()), Vec::<String>::new(), "it was run");
    std::fs::write(place.path("p.xml"), &printed.stdout).unwrap();
    let from_file = place.json("diskspd -Xp.xml -Rtext", 0);
    assert_eq!(from_file["targets"][0]["application"]["io_bytes_mean"], 8192.0);
    assert_eq!(from_file["spans"][0]["jobs"][0]["threads"], 2);
    let both = place.run("diskspd -Xp.xml -b4k");
    assert_eq!(both.status.code(), Some(2), "{}", said(&both));
}

#[test]
fn notes_go_to_stderr() {
    let place = Place::new();
    let output = place.run("diskspd -c4M -b4k -W0 -d1 -x -Zr f");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    for named in ["-x (", "-Z ("] {
        assert_eq!(stderr(&output).matches(named).count(), 1, "{}", said(&output));
        assert!(!String::from_utf8_lossy(&output.stdout).contains(named));
    }
}

/// Bytes of a row at the application, and read from and written to the storage.
fn bytes(document: &Value, direction: &str) -> (u64, u64, u64) {
    let target = &document["targets"][0];
    let of = |pointer: &str| {
        target.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{target:#}"))
    };
    (of(&format!("/{direction}/bytes")), of("/storage/read_bytes"), of("/storage/write_bytes"))
}

#[test]
fn past_the_cache_the_disk_sees_what_the_application_does_and_through_it_not() {
    let place = Place::new();
    if !can_mount() || LoopDevice::over(&place.run_image()).is_none() {
        return plumb_testkit::skip("cannot mount a disk of our own");
    }
    let file = "diskspd --json -b8k -r -o32 -W0 -d1 -Zr";
    let script = format!(
        "out=$(mktemp -d); cd $place; truncate -s 64M image; mkfs.ext4 -q -F image; mkdir m; mount -o loop image m; \
         trap 'umount $place/m; rm -r $out' EXIT; \
         row() {{ name=$1; shift; $plumb {file} --out $out/run \"$@\" m/f > $name.json; }}; \
         $plumb load m/f --size 8M --sequential --cached --bytes 8M --out $out/run > made; sync -f m; \
         row read-uncached -w0 -Su; \
         $plumb load m/f --sequential --cached --bytes 8M --out $out/run > warm; \
         row read-cached -w0; \
         row write-uncached -w100 -Su; \
         row write-through -w100 -Sh; \
         row write-cached -w100"
    );
    let output = in_own_mounts(&script, place.here.path());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let row = |name: &str| -> Value {
        let text = std::fs::read(place.path(&format!("{name}.json"))).unwrap();
        let document = serde_json::from_slice(&text).unwrap();
        assert_is_valid(&document);
        document
    };
    let (application, read, _) = bytes(&row("read-uncached"), "read");
    assert!(
        application > 0 && read.abs_diff(application) <= 64 * 8192 + application / 50,
        "{application} {read}"
    );
    let (application, read, _) = bytes(&row("read-cached"), "read");
    assert!(application > 0 && read == 0, "cached, {read} of {application} bytes came from the disk");
    for name in ["write-uncached", "write-through"] {
        let (application, _, written) = bytes(&row(name), "write");
        assert!(application > 0 && written + 64 * 8192 >= application, "{name}: {application} {written}");
    }
    let (application, _, written) = bytes(&row("write-cached"), "write");
    assert!(
        application > 0 && written < application,
        "cached, {written} of {application} bytes went to the disk"
    );
    let through = row("write-through");
    assert_eq!(through["spans"][0]["jobs"][0]["durable_write_every"], 1);
}

#[test]
fn a_raw_disk_is_the_same_with_and_without_a_cache_switch() {
    let place = Place::new();
    let image = place.path("image");
    std::fs::write(&image, vec![1; 8 << 20]).unwrap();
    let Some(device) = LoopDevice::over(&image) else { return };
    let mut rows = BTreeMap::new();
    for (direction, write) in [("read", 0), ("write", 100)] {
        for switch in ["-Su", "-Sh"] {
            let typed =
                format!("diskspd -b8k -r -o32 -W0 -d1 -Zr -w{write} {switch} --overwrite {}", device.path);
            let document = place.json(&typed, 0);
            let (application, read, written) = bytes(&document, direction);
            let storage = if direction == "read" { read } else { written };
            assert!(storage.abs_diff(application) <= 64 * 8192, "{typed}: {application} {storage}");
            assert_eq!(document["spans"][0]["jobs"][0]["caching"], "direct", "{typed}");
            rows.insert((direction, switch), application);
        }
    }
    assert!(rows.values().all(|bytes| *bytes > 0), "{rows:?}");
}
