//! Tests of `plumb sqlio` as users run it.

use crate::common::{entries, has_run, said};
use crate::load_support::{Place, stderr};

#[test]
fn text_has_the_figures_that_scripts_cut_out() {
    let place = Place::new();
    place.json("load f --size 4M --count 1", 0);
    let output = place.run("sqlio -kW -s1 -b8 -frandom -o8 -LS f");
    assert!(has_run(&output), "{}", said(&output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    for word in ["CUMULATIVE DATA:", "IOs/sec:", "MBs/sec:", "latency metrics:", "Storage:"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let figure = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].trim().parse().unwrap()
    };
    let (ios, megabytes) = (figure("IOs/sec:"), figure("MBs/sec:"));
    assert!(
        ios > 0.0 && (megabytes - ios * 8.0 / 1024.0).abs() < 0.02,
        "{ios} of 8 KiB are not {megabytes} MiB"
    );
    assert_eq!(stderr(&output), "", "there is no terminal");
}

#[test]
fn a_parameter_file_makes_its_files() {
    let place = Place::new();
    std::fs::write(place.path("param.txt"), "a 2 0x0 4\nb 1 0x1 2 # the second\n").unwrap();
    let document = place.json("sqlio -kW -s1 -b64 -fsequential -Fparam.txt", 0);
    let targets = document["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 2);
    assert_eq!(document["spans"][0]["jobs"][0]["threads"], 2);
    let mut left = entries(place.here.path());
    left.sort();
    assert_eq!(left, ["a", "b", "param.txt"]);
    let sizes = ["a", "b"].map(|name| std::fs::metadata(place.path(name)).unwrap().len());
    assert_eq!(sizes, [4 << 20, 2 << 20]);
}
