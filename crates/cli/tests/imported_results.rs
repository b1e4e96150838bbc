//! Tests that results printed by other programs are reported and compared like runs. They guard against
//! figures read from the wrong place: plumb's own output in these formats must be read back unchanged.

use serde_json::Value;

use crate::common::{document, holds, plumb, said, valid_document, verdict_ids};
use crate::load_support::Place;

/// Runs a command line, and saves its output in a file.
fn printed(place: &Place, typed: &str, file: &str) {
    let output = plumb().args(typed.split(' ')).current_dir(place.here.path()).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code < 2), "{typed}: {}", said(&output));
    std::fs::write(place.here.path().join(file), output.stdout).unwrap();
}

fn imported(place: &Place, file: &str) -> Value {
    let output = plumb().args(["report", file, "--json"]).current_dir(place.here.path()).output().unwrap();
    let document = valid_document("load", &output);
    assert!(document["imported_from"].as_str().unwrap().starts_with(file), "{document:#}");
    document
}

fn number(document: &Value, pointer: &str) -> f64 {
    document.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} in {document:#}"))
}

#[test]
fn of_several_results_in_a_file_one_is_chosen() {
    let place = Place::new();
    let fio = "fio --name=one --filename=sim\\:sas-15k --rw=randwrite --bs=8k --number_ios=10 --output-format=json --no-record";
    printed(&place, fio, "one.json");
    printed(&place, &fio.replace("=10", "=20"), "two.json");
    let read = |name: &str| std::fs::read_to_string(place.here.path().join(name)).unwrap();
    std::fs::write(place.here.path().join("both.json"), read("one.json") + &read("two.json")).unwrap();
    let run = |words: &[&str]| plumb().args(words).current_dir(place.here.path()).output().unwrap();
    let listed = run(&["report", "both.json"]);
    assert_eq!(listed.status.code(), Some(2));
    assert!(
        said(&listed).contains("10 operations") && said(&listed).contains("20 operations"),
        "{}",
        said(&listed)
    );
    let second = document(&run(&["report", "both.json", "--result", "2", "--json"]));
    assert_eq!(number(&second, "/total/write/ios"), 20.0);
    // One run of each, of the same workload, gives a ratio without an interval.
    let compared = document(&run(&["compare", "both.json#1", "both.json#2", "--json", "--no-record"]));
    assert_eq!(compared["outcome"], "not-judged");
    holds("compare", &compared);
    assert!(compared["headline"].as_str().unwrap().contains("record 4 runs of each"), "{compared:#}");
}

#[test]
fn what_is_printed_in_a_language_is_read_back_and_compared() {
    let place = Place::new();
    let diskspd = "diskspd -b8K -r -w30 -o4 -t1 -d2 -W0 -L --no-record";
    printed(&place, &format!("{diskspd} -Rxml sim:sas-15k"), "one.xml");
    printed(&place, &format!("{diskspd} -Rtext sim:sas-15k"), "one.txt");
    printed(&place, &format!("{diskspd} -Rxml sim:sas-15k?seed=2"), "other.xml");
    printed(
        &place,
        "fio --name=one --filename=sim\\:sas-15k --rw=randwrite --bs=8k --iodepth=4 --ioengine=libaio --direct=1 --runtime=2 --time_based \
         --output-format=json --no-record",
        "one.json",
    );
    let diskspd = diskspd.replace(" -L", "");
    for language in ["xml", "text"] {
        printed(&place, &format!("{diskspd} -R{language} sim:sas-15k"), "without-latency");
        let shown =
            plumb().args(["report", "without-latency"]).current_dir(place.here.path()).output().unwrap();
        for words in ["latencies were not recorded", "no rule could judge latencies"] {
            let text = said(&shown).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(words), "{language}: {text}");
        }
    }
    let (xml, text, fio) =
        (imported(&place, "one.xml"), imported(&place, "one.txt"), imported(&place, "one.json"));
    for pointer in ["/total/read/ios", "/total/write/ios", "/total/write/bytes", "/total/depth"] {
        assert_eq!(number(&xml, pointer), number(&text, pointer), "{pointer}");
    }
    for name in ["mean", "min", "p25", "p50", "p99", "p999", "max"] {
        for side in ["application", "read", "write"] {
            let pointer = format!("/total/{side}/latency/{name}");
            assert!((number(&xml, &pointer) - number(&text, &pointer)).abs() < 1.1e-6, "{pointer}");
        }
    }
    assert_eq!(number(&xml, "/total/depth"), 4.0);
    // Little's law: the number in flight is the requested one.
    for document in [&xml, &text, &fio] {
        let in_flight = number(document, "/total/application/in_flight_mean");
        assert!((3.5..4.1).contains(&in_flight), "{in_flight}");
        assert_eq!(document["spans"][0]["jobs"][0]["block_bytes"], 8192);
    }
    assert_eq!(number(&fio, "/total/read/ios"), 0.0);
    let compared = plumb()
        .args(["compare", "one.xml", "other.xml", "--json", "--no-record"])
        .current_dir(place.here.path())
        .output();
    // An error in one of two results is reported, in either position.
    for (name, text) in
        [("bad.xml", "<Results><TimeSpan>"), ("empty.json", ""), ("none.json", "{}"), ("missing.xml", "")]
    {
        if name != "missing.xml" {
            std::fs::write(place.here.path().join(name), text).unwrap();
        }
        for typed in [["one.xml", name], [name, "one.xml"]] {
            let output = plumb().arg("compare").args(typed).current_dir(place.here.path()).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{typed:?}: {}", said(&output));
            assert!(said(&output).contains(name), "{typed:?}: {}", said(&output));
        }
    }
    let compared = document(&compared.unwrap());
    assert_eq!(compared["design"]["interleaved"], false);
    assert!(
        number(&compared, "/ratios/iops/median") > 0.5
            && compared["notes"].to_string().contains("one.xml, a result of DiskSpd")
    );
}

#[test]
fn an_imported_result_from_memory_is_told_as_one() {
    let place = Place::new();
    let fio = "fio --name=one --filename=f --size=8m --rw=randread --bs=512 --ioengine=psync --direct=0 --runtime=1 --time_based \
               --output-format=json --no-record";
    printed(&place, fio, "cached.json");
    // Versions that print no sectors still have the time per operation.
    let document = imported(&place, "cached.json");
    assert_eq!(document["total"]["storage"], Value::Null);
    assert!(verdict_ids(&document).contains(&"page-cache"), "{document:#}");
    let mut newer: Value =
        serde_json::from_slice(&std::fs::read(place.here.path().join("cached.json")).unwrap()).unwrap();
    newer["disk_util"] = serde_json::json!([
        {"name": "sda", "read_ios": 3, "write_ios": 2, "read_sectors": 24, "write_sectors": 16, "read_merges": 0}
    ]);
    std::fs::write(place.here.path().join("newer.json"), newer.to_string()).unwrap();
    let document = imported(&place, "newer.json");
    let storage = &document["total"]["storage"];
    assert_eq!((&storage["reads"], &storage["read_bytes"]), (&Value::from(3), &Value::from(24 * 512)));
    let found = document["verdicts"].as_array().unwrap().iter().find(|one| one["id"] == "page-cache");
    assert!(found.unwrap()["sentence"].as_str().unwrap().contains("devices served"), "{document:#}");
}

#[test]
fn clones_of_a_job_of_fio_are_counted_whether_they_have_one_entry_or_several() {
    // Two clones of `a` have an entry each, those of `b` one together.
    let entry = |name: &str, operations: u64| {
        serde_json::json!({
            "jobname": name, "groupid": 0, "job_start": 1_683_195_072_000_u64,
            "job options": {"iodepth": "4", "numjobs": "2"},
            "read": {"total_ios": operations, "io_bytes": operations * 4096, "runtime": 1000,
                     "clat_ns": {"N": operations, "mean": 1000, "max": 9000}},
        })
    };
    let jobs = [entry("a", 5), entry("a", 5), entry("b", 10)];
    let two = serde_json::json!({"fio version": "fio-3.42", "timestamp": 1_683_195_082, "jobs": jobs});
    let place = Place::new();
    std::fs::write(place.here.path().join("two.json"), two.to_string()).unwrap();
    let two = imported(&place, "two.json");
    assert_eq!(number(&two, "/total/depth"), 16.0);
    // Means and extremes of jobs can be combined, but not percentiles.
    let latency = &two["total"]["read"]["latency"];
    assert_eq!(
        (&latency["mean"], &latency["max"], &latency["p99"]),
        (&1e-6.into(), &9e-6.into(), &Value::Null)
    );
    assert!(two["total"]["percentiles_unknown_because"].is_string(), "{two:#}");
    assert_eq!(two["environment"]["started_at"], "2023-05-04T10:11:12Z");
}

#[test]
fn a_result_of_windows_is_judged_and_what_is_no_result_refused() {
    let place = Place::new();
    let file = |name: &str, text: &str| std::fs::write(place.here.path().join(name), text).unwrap();
    file(
        "windows.txt",
        "\r\nCommand Line: diskspd.exe -c1G -b8K -d30 -r -w100 -o32 -t2 -Su -L C:\\test.dat\r\n\r\nInput parameters:\r\n\r\n\ttimespan:   1\r\n\
         \t-------------\r\n\tduration: 30s\r\n\tpath: 'C:\\test.dat'\r\n\t\tsoftware cache disabled\r\n\t\tperforming write test\r\n\
         \t\tblock size: 8KiB\r\n\t\tusing random I/O (alignment: 8KiB)\r\n\t\tnumber of outstanding I/O operations per thread: 32\r\n\
         \t\tthreads per file: 2\r\n\r\nSystem information:\r\n\r\n\tcomputer name: NODE1\r\n\tstart time: 2023/05/04 10:11:12 UTC\r\n\r\n\
         Results for timespan 1:\r\n*****\r\n\r\nactual test time:\t30.00s\r\nthread count:\t\t2\r\nproc count:\t\t8\r\n\r\nTotal IO\r\n\
         thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file\r\n----\r\n\
         \x20    0 |      3686400000 |       450000 |     117.19 |   15000.00 |    2.133 |     1.000 | C:\\test.dat (1GiB)\r\n\
         \x20    1 |      3686400000 |       450000 |     117.19 |   15000.00 |    2.133 |     1.000 | C:\\test.dat (1GiB)\r\n----\r\n\
         total:        7372800000 |       900000 |     234.38 |   30000.00 |    2.133 |     1.000\r\n\r\nRead IO\r\n\
         thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file\r\n----\r\n\
         total:                 0 |            0 |       0.00 |       0.00 |    0.000 |       N/A\r\n\r\nWrite IO\r\n\
         thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file\r\n----\r\n\
         \x20    0 |      3686400000 |       450000 |     117.19 |   15000.00 |    2.133 |     1.000 | C:\\test.dat (1GiB)\r\n\
         \x20    1 |      3686400000 |       450000 |     117.19 |   15000.00 |    2.133 |     1.000 | C:\\test.dat (1GiB)\r\n----\r\n\
         total:        7372800000 |       900000 |     234.38 |   30000.00 |    2.133 |     1.000\r\n\r\n\r\n\
         \x20 %-ile |  Read (ms) | Write (ms) | Total (ms)\r\n----\r\n    min |        N/A |      0.100 |      0.100\r\n\
         \x20  25th |        N/A |      1.500 |      1.500\r\n   50th |        N/A |      2.000 |      2.000\r\n   75th |        N/A |      2.500 |      2.500\r\n\
         \x20  99th |        N/A |      5.000 |      5.000\r\n3-nines |        N/A |      9.000 |      9.000\r\n    max |        N/A |     40.000 |     40.000\r\n",
    );
    let document = imported(&place, "windows.txt");
    assert_eq!(number(&document, "/total/application/iops"), 30_000.0);
    assert_eq!(number(&document, "/total/write/latency/p99"), 0.005);
    assert_eq!(
        (number(&document, "/total/depth"), &document["environment"]["host"]),
        (64.0, &Value::from("NODE1"))
    );
    assert_eq!(document["spans"][0]["jobs"][0]["caching"], "direct");
    assert_eq!(document["environment"]["started_at"], "2023-05-04T10:11:12Z");
    // Results of a guest and of its host from the same minutes.
    let joined = plumb()
        .args(["report", "windows.txt", "--beneath", "windows.txt"])
        .current_dir(place.here.path())
        .output();
    assert_eq!(joined.as_ref().unwrap().status.code(), Some(0), "{}", said(&joined.unwrap()));
    let shown =
        plumb().args(["report", "-v", "windows.txt"]).current_dir(place.here.path()).output().unwrap();
    assert!(said(&shown).contains("Imported from windows.txt"), "{}", said(&shown));
    for (name, text, problem) in [
        ("profile.xml", "<Profile></Profile>", "expected <Results>"),
        ("empty.xml", "<Results></Results>", "nothing was measured"),
        ("other.json", "{\"a\": 1}", "not of fio"),
        ("own.json", "{\"schema\": \"plumb/load/1\"}", "name the directory of the run"),
        ("torn.json", "{\"fio version\": \"fio-3\", ", "not JSON"),
        ("notes.txt", "a shopping list", "DiskSpd"),
    ] {
        file(name, text);
        let output = plumb().args(["report", name]).current_dir(place.here.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(said(&output).contains(problem), "{name}: {}", said(&output));
    }
}
