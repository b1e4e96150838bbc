//! Tests of `plumb report` on runs of each dialect, in each format, from the recording alone.

use crate::common::{document, has_run, plumb, said, valid_document};
use crate::load_support::Place;

#[test]
fn every_format_is_made_from_every_dialects_run() {
    for (typed, named) in [
        ("load f --size 4M --write 50 --count 200 --sync-every 10", "load"),
        ("diskspd -c4M -n -b4k -r -w30 -W0 -d1 f g", "diskspd"),
        ("sqlio -kW -s1 -b8 -frandom f", "sqlio"),
        ("fio --name=x --filename=f --size=4m --rw=randrw --fdatasync=4", "fio"),
    ] {
        let place = Place::new();
        place.json("load f --size 4M --count 1", 0);
        let run = place.run(typed);
        assert!(has_run(&run), "{typed}: {}", said(&run));
        std::fs::remove_file(place.path("f")).unwrap();
        for (format, expected) in [
            ("terminal", "application beside storage"),
            ("html", "<!doctype html>"),
            ("json", "\"plumb/load/1\""),
            ("csv", "section,name"),
            ("prometheus", "# type plumb_"),
            ("fio", "\"jobs\""),
        ] {
            let report = plumb()
                .args(["report", "-v", "--format", format])
                .arg(place.run_directory())
                .output()
                .unwrap();
            assert_eq!(report.status.code(), run.status.code(), "{typed}, {format}: {}", said(&report));
            let text = String::from_utf8(report.stdout.clone()).unwrap();
            assert!(
                text.to_lowercase().contains(expected),
                "{typed}, {format}: {}",
                &text[..text.len().min(400)]
            );
            match format {
                "json" => {
                    let document = valid_document("load", &report);
                    assert!(document["environment"].to_string().contains(named), "{typed}: {document:#}");
                }
                "fio" => assert!(document(&report)["jobs"].is_array(), "{typed}"),
                "html" => {
                    let kept = std::fs::read_to_string(place.run_directory().join("report.html")).unwrap();
                    // The recorded page ends with the checksum of the text before.
                    assert!(kept.starts_with(&text), "{typed}: the page cannot be made again");
                }
                _ => {}
            }
        }
    }
}
