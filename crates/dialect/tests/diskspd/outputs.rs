//! Output: the positions that existing parsers rely on, and consistent figures.

use plumb_block::Nanos;
use plumb_dialect::Machine;
use plumb_dialect::diskspd::{text, xml};
use plumb_dialect::imported::read;
use plumb_load::SpanResult;
use plumb_measure::Histogram;
use plumb_report::document::FlushMethod;
use plumb_workload::Caching;
use roxmltree::{Document, Node};

use super::results::{self, MIXED, Operations, READS};
use super::{invocation, machine};

fn printed(typed: &str, results: &[SpanResult]) -> String {
    text(&invocation(typed).unwrap().profile, results, &machine())
}

/// Imports the durability of a result from both output formats. The text is that of DiskSpd
/// (ResultParser.cpp, `_PrintTarget`).
#[test]
fn what_makes_writes_durable_is_read_back() {
    let writes = Operations { count: 100, bytes: 4096, interval: Nanos::millis(1) };
    let mut written = [results::span(&["t"], 1, (Operations { count: 0, ..writes }, writes))];
    let msync = Some(FlushMethod::Msync);
    let cases = [
        ("-Sb", Caching::Cached, None, None),
        ("-Sw", Caching::Cached, Some(1), None),
        ("-Srw", Caching::Direct, Some(1), None),
        ("-Su", Caching::Direct, None, None),
        ("-Sh", Caching::Direct, Some(1), None),
        ("-Sm", Caching::Mapped, None, None),
        ("-Smw", Caching::Mapped, None, msync),
        ("-Sm -Nv", Caching::Mapped, None, msync),
        ("-Smw -Nv", Caching::Mapped, None, msync),
    ];
    for (typed, caching, durable_write_every, flush) in cases {
        for _ in 0..if flush.is_some() { 100 } else { 0 } {
            written[0].threads[0].parts[0].outcome.durable.record(Nanos::millis(6));
        }
        let typed = format!("-b4k -w100 -L {typed} t");
        let profile = invocation(&typed).unwrap().profile;
        for output in [text(&profile, &written, &machine()), xml(&profile, &written, &machine())] {
            let document = read(&output, "d", None).unwrap();
            let job = &document.spans[0].jobs[0];
            assert_eq!((job.durable_write_every, job.flush), (durable_write_every, flush), "{typed}");
            assert_eq!(job.caching, caching, "{typed}");
            let (sides, syncs) = (&document.total, if flush.is_some() { 100 } else { 0 });
            assert_eq!((sides.write.ios, sides.sync.ios), (100, syncs), "{typed}");
            let mean = sides.operation_latency().unwrap().mean;
            let expected = if flush.is_some() { 6e-3 } else { 50.5e-6 };
            assert!((mean - expected).abs() < 1e-6, "{typed}: {mean}");
        }
        written[0].threads[0].parts[0].outcome.durable = Histogram::new();
    }
    // Early versions print both in one line.
    let old = text(&invocation("-w100 -L t").unwrap().profile, &written, &machine())
        .replace("using hardware write cache, writethrough off", "")
        .replace("using software cache", "software and hardware write cache disabled");
    let job = read(&old, "d", None).unwrap().spans.remove(0).jobs.remove(0);
    assert_eq!((job.caching, job.durable_write_every), (Caching::Direct, Some(1)));
}

/// Only the mapped target has a flush after each write.
#[test]
fn writes_to_a_target_without_a_mapping_are_no_syncs() {
    let target = |path: &str, more: &str| {
        format!(
            "<Target><Path>{path}</Path><BlockSize>4096</BlockSize><WriteRatio>100</WriteRatio>{more}\
             </Target>"
        )
    };
    let done = |path: &str, count: u64| {
        let bytes = 4096 * count;
        format!(
            "<Target><Path>{path}</Path><WriteBytes>{bytes}</WriteBytes><WriteCount>{count}</WriteCount>\
             </Target>"
        )
    };
    let mapping = "<MemoryMappedIo>true</MemoryMappedIo><FlushType>ViewOfFile</FlushType>";
    let result = format!(
        "<Results><Profile><TimeSpans><TimeSpan><Targets>{}{}</Targets></TimeSpan></TimeSpans></Profile>\
         <TimeSpan><TestTimeSeconds>10</TestTimeSeconds><Thread>{}{}</Thread><Latency>\
         <AverageWriteMilliseconds>5</AverageWriteMilliseconds>\
         <Bucket><Percentile>0</Percentile><WriteMilliseconds>1</WriteMilliseconds></Bucket>\
         <Bucket><Percentile>100</Percentile><WriteMilliseconds>9</WriteMilliseconds></Bucket>\
         </Latency></TimeSpan></Results>",
        target("m", mapping),
        target("d", ""),
        done("m", 100),
        done("d", 900)
    );
    let document = read(&result, "d.xml", None).unwrap();
    let syncs: Vec<u64> = document.targets.iter().map(|target| target.sides.sync.ios).collect();
    assert_eq!((syncs, document.total.sync.ios), (vec![100, 0], 100));
    assert!(document.total.write.latency.is_some() && document.total.durable_latency.is_none());
}

/// Returns the lines from the one that begins with `heading` to the next empty line.
fn section<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| !line.starts_with(heading));
    let section: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    assert!(!section.is_empty(), "no {heading} in\n{text}");
    section
}

/// Returns the columns of a row, trimmed.
fn columns(row: &str) -> Vec<String> {
    row.trim_start_matches("total:").split('|').map(|column| column.trim().to_owned()).collect()
}

fn numbers(rows: &[&str], column: usize) -> Vec<f64> {
    rows.iter().map(|row| columns(row)[column].parse().unwrap_or_else(|_| panic!("{row}"))).collect()
}

#[test]
fn the_tables_add_up() {
    let text = printed("-t2 -L -D a b", &[results::span(&["a", "b"], 2, MIXED)]);
    for (heading, per_thread) in [("Total IO", 1001.0), ("Read IO", 1000.0), ("Write IO", 1.0)] {
        let table = section(&text, heading);
        assert_eq!(
            table[1],
            "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | IopsStdDev | LatStdDev |  file"
        );
        assert_eq!((table[2], table[7]), ("-".repeat(114).as_str(), table[2]), "borders");
        let rows = &table[3..7];
        assert_eq!(numbers(rows, 0), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(numbers(rows, 2), [per_thread; 4]);
        assert!(rows[0].ends_with("| a (10MiB)") && rows[3].ends_with("| b (10MiB)"), "{rows:?}");
        let total = columns(table[8]);
        assert!(table[8].starts_with("total:   "));
        let sum = |column| numbers(rows, column).iter().sum::<f64>();
        assert_eq!(total[0].parse::<f64>().unwrap(), sum(1), "bytes");
        assert_eq!(total[1].parse::<f64>().unwrap(), sum(2), "I/Os");
        assert!((total[2].parse::<f64>().unwrap() - sum(3)).abs() < 0.05, "MiB/s");
        assert!((total[3].parse::<f64>().unwrap() - sum(4)).abs() < 0.05, "I/O per s");
        assert_eq!(total[3], format!("{:.2}", per_thread * 4.0 / 2.0));
    }
}

#[test]
fn the_layout_is_that_of_diskspd() {
    let text = printed("-b4k -w1 -L -D t", &[results::span(&["t"], 1, MIXED)]);
    let expected = [
        "Command Line: plumb diskspd t",
        "Input parameters:",
        "\ttimespan:   1",
        "\t-------------",
        "\tduration: 10s",
        "\twarm up time: 5s",
        "\tcool down time: 0s",
        "\tmeasuring latency",
        "\tgathering IOPS at intervals of 1000ms",
        "\trandom seed: 0",
        "\tpath: 't'",
        "\t\tthink time: 0ms",
        "\t\tburst size: 0",
        "\t\tusing software cache",
        "\t\tusing hardware write cache, writethrough off",
        "\t\tperforming mix test (read/write ratio: 99/1)",
        "\t\tblock size: 4KiB",
        "\t\tusing sequential I/O (stride: 4KiB)",
        "\t\tnumber of outstanding I/O operations per thread: 2",
        "\t\tthreads per file: 1",
        "\t\tusing I/O Completion Ports",
        "\t\tIO priority: normal",
        "System information:",
        "\tcomputer name: box",
        "\tstart time: 2026/01/31 12:00:05 UTC",
        "\tcpu count:\t\t4",
        "Results for timespan 1:",
        "*******************************************************************************",
        "actual test time:\t2.00s",
        "thread count:\t\t1",
        "CPU |  Usage |  User  | Kernel |  Idle",
        "----------------------------------------",
        "   0|  25.00%|  25.00%|   0.00%|  75.00%",
        "   1|  37.50%|  25.00%|  12.50%|  62.50%",
        "----------------------------------------",
        "avg.|  31.25%|  25.00%|   6.25%|  68.75%",
        "Total IO",
        "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | IopsStdDev | LatStdDev |  file",
        "------------------------------------------------------------------------------------------------------------------",
        "     0 |         4100096 |         1001 |       1.96 |     500.50 |    0.500 |     500.50 |     0.289 | t (10MiB)",
        "total:           4100096 |         1001 |       1.96 |     500.50 |    0.500 |     500.50 |     0.289",
        "Read IO",
        "     0 |         4096000 |         1000 |       1.95 |     500.00 |    0.500 |     500.00 |     0.289 | t (10MiB)",
        "Write IO",
        "     0 |            4096 |            1 |       0.00 |       0.50 |    0.001 |       0.50 |     0.000 | t (10MiB)",
        "Total latency distribution:",
        "  %-ile |  Read (ms) | Write (ms) | Total (ms)",
        "----------------------------------------------",
        "    min |      0.001 |      0.001 |      0.001",
        "   25th |      0.250 |      0.001 |      0.250",
        "   50th |      0.500 |      0.001 |      0.500",
        "   99th |      0.990 |      0.001 |      0.990",
        "9-nines |      1.000 |      0.001 |      1.000",
        "    max |      1.000 |      0.001 |      1.000",
        "Storage: what the devices beneath were handed",
        "timespan 1",
    ];
    let mut lines = text.lines();
    for line in expected {
        assert!(lines.any(|printed| printed == line), "no '{line}' where it should be in\n{text}");
    }
}

#[test]
fn columns_come_with_their_switches() {
    let results = [results::span(&["t"], 1, READS)];
    let heading = |typed| section(&printed(typed, &results), "thread |")[0].to_owned();
    assert_eq!(heading("t"), "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  file");
    assert!(heading("-L t").contains("|  AvgLat  | LatStdDev |  file"));
    assert!(heading("-D t").contains("| IopsStdDev |  file"));
    assert!(!printed("t", &results).contains("%-ile"));
    for typed in ["t", "-L t", "-D t", "-L -D t"] {
        let text = printed(typed, &results);
        let table = section(&text, "Total IO");
        let separators = |line: &str| line.matches('|').count();
        assert_eq!(separators(table[1]), separators(table[3]), "{typed}");
        assert_eq!(
            separators(table[3]),
            separators(table[5]) + 2,
            "{typed}: the total has no thread and no file"
        );
    }
}

#[test]
fn nothing_written_has_no_latency() {
    let text = printed("-L t", &[results::span(&["t"], 1, READS)]);
    assert!(section(&text, "Write IO").last().unwrap().ends_with("|    0.000 |       N/A"));
    let chart = section(&text, "  %-ile");
    assert_eq!(chart.len(), 17);
    assert!(chart[2..].iter().all(|row| columns(row)[2] == "N/A" && columns(row)[1] == columns(row)[3]));
}

#[test]
fn several_targets_have_a_chart_each() {
    let text = printed("-L a b", &[results::span(&["a", "b"], 1, MIXED)]);
    for heading in ["Latency distribution: a", "Latency distribution: b", "Total latency distribution:"] {
        assert_eq!(section(&text, heading).len(), 18, "{heading}");
    }
}

#[test]
fn several_spans_are_summed_up() {
    let spans = [results::span(&["t"], 1, MIXED), results::span(&["t"], 3, READS)];
    let mut invocation = invocation("t").unwrap();
    let span = invocation.profile.time_spans[0].clone();
    invocation.profile.time_spans.push(span);
    let text = text(&invocation.profile, &spans, &machine());
    assert!(text.contains("\nResults for timespan 1:\n") && text.contains("\nResults for timespan 2:\n"));
    let totals: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("type   |")).take(6).collect();
    assert_eq!(totals[0], "type   |       bytes     |     I/Os     |    MiB/s   |  I/O per s");
    assert_eq!(columns(totals[2])[1..3], ["4096", "1"]);
    assert_eq!(columns(totals[3])[2], "4000");
    assert_eq!(columns(totals[5])[2..], ["4001", "3.91", "1000.25"]);
    assert!(text.contains("total test time:\t4.00s"));
    assert!(!printed("t", &spans[..1]).contains("Totals:"), "one span needs no totals");
}

#[test]
fn an_interrupted_span_has_no_figures() {
    let mut result = results::span(&["t"], 1, MIXED);
    result.window = Nanos::ZERO;
    let text = printed("-L -D t", std::slice::from_ref(&result));
    assert!(text.contains("The test was interrupted before the measurements began."), "{text}");
    assert!(!text.contains("Total IO") && !text.contains("NaN"));
    assert!(
        xml(&invocation("-L t").unwrap().profile, &[result], &machine())
            .contains("<Error>The test was interrupted")
    );
    let nothing = printed("t", &[]);
    assert!(!nothing.contains("Results for timespan"), "{nothing}");
}

#[test]
fn storage_stands_beside_the_application() {
    let text = printed("a b", &[results::span(&["a", "b"], 1, MIXED)]);
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("side ")).skip(2).collect();
    assert_eq!(columns(rows[0])[..4], ["application", "1000", "1", "0"]);
    assert_eq!(columns(rows[1])[..4], ["storage", "100", "0", "7"]);
    assert_eq!(columns(rows[1])[4..8], ["0.20", "50.00", "4KiB", "a"]);
    assert_eq!(rows[3], "storage     | not known: a <test> & no device | b");
    let last_table = text.find("Write IO").unwrap();
    assert!(text.find("\nStorage:").unwrap() > last_table, "it follows what DiskSpd prints");
}

#[test]
fn what_a_throttle_held_back_is_said() {
    let mut result = results::span(&["t"], 1, READS);
    assert!(!printed("-g1i t", std::slice::from_ref(&result)).contains("later than the throttle"));
    let outcome = &mut result.threads[0].parts[0].outcome;
    (outcome.late_starts, outcome.backlog_max, outcome.unstarted) = (3, Nanos::millis(12), 4);
    let text = printed("-g1i t", &[result]);
    assert!(text.contains(
        "| 3 I/Os started later than the throttle meant them to, by 12.000 ms at most; 4 never did"
    ));
}

#[test]
fn distributions_are_those_of_the_real_size() {
    let tables = |typed: &str| printed(typed, &[results::span(&["t"], 3, READS)]);
    let text = tables("-t3 -r -rdpct90/10:0/10:5/20 t");
    let effective = section(&text, "Effective IO Distributions");
    assert_eq!(effective[2], "target: t [thread: 0 - 2]");
    assert_eq!(effective[3], "    90% of IO => [        0 -      1MiB)");
    assert_eq!(effective.len(), 6, "the hole is left out");
    assert!(text.contains("\t\t    90% of IO => [ 0% -  10%) of target"), "{text}");
    // The target ends at 10 MiB, so all I/O goes to the part of the distribution before that.
    let text = tables("-t3 -r -rdabs20/5M:20/1G t");
    let effective = section(&text, "Effective IO Distributions");
    assert_eq!(effective[3], "    50.0% of IO => [        0 -      5MiB)");
    assert_eq!(effective[4], "    50.0% of IO => [     5MiB -     10MiB)");
}

#[test]
fn waits_are_printed_when_asked_for() {
    let text = printed("-vs t", &[results::span(&["t"], 2, READS)]);
    let table = section(&text, "Wait Statistics");
    assert_eq!(columns(table[3]), ["0", "2", "0", "0.000", "0", "10.0", "20.0"]);
    assert_eq!(table.len(), 5);
}

/// Returns the elements by path, in order, with their text.
fn elements(xml: &str) -> Vec<(String, String)> {
    let document = Document::parse(xml).unwrap();
    let path = |node: Node<'_, '_>| {
        let mut names: Vec<&str> =
            node.ancestors().filter(Node::is_element).map(|node| node.tag_name().name()).collect();
        names.reverse();
        names.join("/")
    };
    let text = |node: Node<'_, '_>| match node.has_children() {
        true => node.text().unwrap_or_default().trim().to_owned(),
        false => {
            let attributes = node.attributes().map(|each| format!("{}=\"{}\"", each.name(), each.value()));
            attributes.collect::<Vec<_>>().join(" ")
        }
    };
    document.descendants().filter(Node::is_element).map(|node| (path(node), text(node))).collect()
}

fn values<'a>(elements: &'a [(String, String)], path: &str) -> Vec<&'a str> {
    elements.iter().filter(|(known, _)| known == path).map(|(_, text)| text.as_str()).collect()
}

#[test]
fn the_xml_has_diskspds_structure() {
    let invocation = invocation("-t2 -L -D -w1 -r -rdpct90/10 a b").unwrap();
    let xml = xml(&invocation.profile, &[results::span(&["a", "b"], 2, MIXED)], &machine());
    let all = elements(&xml);
    let one = |path: &str| match values(&all, path)[..] {
        [text] => text.to_owned(),
        ref found => panic!("{path}: {found:?}\n{xml}"),
    };
    assert_eq!(one("Results/System/ComputerName"), "box");
    assert_eq!(one("Results/System/Tool/Version"), "0.1.0");
    assert_eq!(one("Results/System/RunTime"), "2026/01/31 12:00:05 UTC");
    assert!(one("Results/System/ProcessorTopology/Group").contains("ActiveProcessorMask=\"0xf\""));
    assert_eq!(values(&all, "Results/Profile/TimeSpans/TimeSpan/Targets/Target/Path"), ["a", "b"]);
    assert_eq!(one("Results/TimeSpan/TestTimeSeconds"), "2.00");
    assert_eq!(one("Results/TimeSpan/ThreadCount"), "4");
    assert_eq!(one("Results/TimeSpan/ProcCount"), "4");
    assert_eq!(values(&all, "Results/TimeSpan/CpuUtilization/CPU/Id"), ["0", "1"]);
    assert_eq!(one("Results/TimeSpan/CpuUtilization/Average/UsagePercent"), "31.25");
    assert_eq!(one("Results/TimeSpan/Latency/AverageReadMilliseconds"), "0.500");
    let percentiles = values(&all, "Results/TimeSpan/Latency/Bucket/Percentile");
    assert_eq!(percentiles.len(), 108);
    assert_eq!((percentiles[0], percentiles[100], percentiles[107]), ("0", "99.9", "100"));
    let reads = values(&all, "Results/TimeSpan/Latency/Bucket/ReadMilliseconds");
    assert_eq!((reads[0], reads[50], reads[107]), ("0.001", "0.500", "1.000"));
    let iops = values(&all, "Results/TimeSpan/Iops/Bucket");
    assert_eq!(iops.len(), 2, "two whole seconds");
    assert!(
        iops[0].starts_with("SampleMillisecond=\"1000\" Read=\"4000\" Write=\"4\" Total=\"4004\""),
        "{iops:?}"
    );
    assert_eq!(one("Results/TimeSpan/Iops/IopsStdDev"), "2002.000");
    assert_eq!(values(&all, "Results/TimeSpan/Thread/Id"), ["0", "1", "2", "3"]);
    let sums = |name: &str| -> u64 {
        values(&all, &format!("Results/TimeSpan/Thread/Target/{name}"))
            .iter()
            .map(|n| n.parse::<u64>().unwrap())
            .sum()
    };
    assert_eq!((sums("IOCount"), sums("ReadCount"), sums("WriteCount")), (4004, 4000, 4));
    assert_eq!(sums("BytesCount"), sums("ReadBytes") + sums("WriteBytes"));
    assert_eq!(values(&all, "Results/TimeSpan/Thread/Target/Distribution/Absolute/Range").len(), 8);
    assert_eq!(values(&all, "Results/TimeSpan/Storage/StorageTarget/ReadCount"), ["100"]);
    assert_eq!(values(&all, "Results/TimeSpan/Storage/StorageTarget/FlushCount"), ["7"]);
    assert!(xml.contains("<UnknownBecause>a &lt;test&gt; &amp; no device</UnknownBecause>"));
    let last = all.iter().rposition(|(path, _)| path.starts_with("Results/TimeSpan/Thread")).unwrap();
    assert!(all[last + 1..].iter().all(|(path, _)| path.starts_with("Results/TimeSpan/Storage")));
}

#[test]
fn the_xml_has_no_latency_that_was_not_asked_for() {
    let xml = xml(&invocation("t").unwrap().profile, &[results::span(&["t"], 1, READS)], &machine());
    let all = elements(&xml);
    assert!(all.iter().all(|(path, _)| !path.contains("Latency/") && !path.contains("Iops/")), "{xml}");
}

#[test]
fn intervals_are_whole_tenths_of_a_second() {
    let result = results::span(&["t"], 1, READS);
    let count = |typed| {
        let xml = xml(&invocation(typed).unwrap().profile, std::slice::from_ref(&result), &machine());
        let all = elements(&xml);
        let buckets: Vec<String> =
            values(&all, "Results/TimeSpan/Iops/Bucket").iter().map(|b| (*b).to_owned()).collect();
        (buckets.len(), buckets[0].clone())
    };
    let (buckets, first) = count("-D500 t");
    assert_eq!(buckets, 4);
    assert!(first.starts_with("SampleMillisecond=\"500\" Read=\"1000\""), "{first}");
    for side in ["Read", "Write"] {
        assert!(first.contains(&format!("{side}MinLatencyMilliseconds=\"")), "{first}");
        assert!(first.contains(&format!("{side}LatencyStdDev=\"")), "{first}");
    }
    let (buckets, first) = count("-D250 t");
    assert_eq!(buckets, 6, "300 ms in 2 s");
    assert!(first.starts_with("SampleMillisecond=\"300\" Read=\"1000\""), "{first}");
    let notes = super::meaning("-D250 t").unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("300 ms")), "{notes:?}");
}

#[test]
fn one_output_is_printed_the_last_that_was_asked_for() {
    let results = [results::span(&["t"], 1, READS)];
    let output = |typed: &str| invocation(typed).unwrap().output(&results, &machine());
    for typed in ["-Rtext -Rxml t", "-Rxml t"] {
        assert!(roxmltree::Document::parse(&output(typed)).is_ok(), "{typed}");
    }
    for typed in ["-Rxml -Rtext t", "-Rtext t", "t"] {
        assert!(output(typed).contains("Total IO") && !output(typed).contains("<Results>"), "{typed}");
    }
}

#[test]
fn the_machine_is_described_in_both_outputs() {
    let results = [results::span(&["t"], 1, READS)];
    let output = |typed: &str| invocation(typed).unwrap().output(&results, &machine());
    let text = output("-v -Zr -w50 -r t");
    for line in [
        "core count:\t\t2",
        "group count:\t\t1",
        "node count:\t\t1",
        "socket count:\t\t1",
        "active power scheme:\tperformance",
        "thread 0 starting: file 't' relative thread 0, 100% random pattern",
        "WARNING: this takes more of the processor",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!output("t").contains(" starting: "));
    let xml = output("-Rxml t");
    for element in [
        "<VersionDate>2026/01/30</VersionDate>",
        "<Node Node=\"0\" Group=\"0\" Processors=\"0xf\"/>",
        "<Core Group=\"0\" Core=\"1\" Processors=\"0xc\"/>",
        "<PowerScheme Name=\"performance\"",
    ] {
        assert!(xml.contains(element), "{element}: {xml}");
    }
}

#[test]
fn a_profile_is_printed_without_a_run() {
    let machine: Machine = machine();
    let text = invocation("-Rp -t2 t").unwrap().profile_output(&machine);
    assert!(text.contains("threads per file: 2") && !text.contains("System information"), "{text}");
    let odd = invocation("-Rpxml a\u{1}<b").unwrap().profile_output(&machine);
    assert!(odd.contains("<Path>a\u{fffd}&lt;b</Path>"), "XML cannot say U+0001: {odd}");
    let xml = invocation("-Rpxml -t2 *1").unwrap().profile_output(&machine);
    assert!(xml.starts_with("<Profile>") && xml.contains("<ThreadsPerFile>2</ThreadsPerFile>"));
    assert!(!invocation("t").unwrap().profile_only && invocation("-Rptext t").unwrap().profile_only);
}
