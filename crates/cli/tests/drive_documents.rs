//! Tests that the documents of `plumb drive` match their schemas, and have no other fields.

use std::process::Output;

use crate::common::{document, exited, holds, plumb, said, valid_document};
use crate::drive_support::Server;

fn drive(arguments: &[&str]) -> Output {
    plumb().arg("drive").args(arguments).output().unwrap()
}

#[test]
fn models_are_listed_and_shown_as_documents() {
    let list = valid_document("drive-list", &drive(&["list", "--json"]));
    let models = list["models"].as_array().unwrap();
    assert!(models.len() >= 10, "{list}");
    for model in models {
        let shown =
            valid_document("drive-model", &drive(&["show", model["name"].as_str().unwrap(), "--json"]));
        assert_eq!(shown["kind"], model["kind"]);
        for parameter in shown["parameters"].as_array().unwrap() {
            assert!(parameter["source"].is_string(), "a shipped figure without a source: {parameter}");
        }
    }
    let with_figures = valid_document("drive-model", &drive(&["show", "null", "--figures", "--json"]));
    assert!(with_figures["figures"].is_array(), "{with_figures}");
}

#[test]
fn a_drive_is_told_of_in_one_way_whatever_was_ordered() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nbd");
    let server = Server::start(&["consumer-nvme-ssd", "--size", "16M", "--nbd", socket.to_str().unwrap()]);
    holds("drive-serve", &server.document);
    assert_eq!(server.document["schema"], "plumb/drive-serve/1");
    for (order, arguments) in [
        ("status", &[][..]),
        ("set", &["--wce", "off"]),
        ("fault", &["write:eio:nth=3"]),
        ("fault", &["--clear"]),
        ("cut", &["--at-flush", "2"]),
        ("cut", &["--disarm"]),
        ("cut", &[]),
        ("power-on", &[]),
    ] {
        let status = server.order(order, arguments);
        holds("drive-status", &status);
        assert_eq!(status["schema"], "plumb/drive-status/1", "{order}");
        let armed = arguments.contains(&"--at-flush").then_some("flush=2");
        assert_eq!(status["cut_armed"].as_str(), armed, "{order} {arguments:?}");
    }
    let all = drive(&["status", "--json"]);
    let drives = document(&all);
    let name = server.name.as_str();
    assert!(drives["drives"].as_array().unwrap().iter().any(|drive| drive["name"] == name), "{}", said(&all));
    let last = server.order("detach", &[]);
    holds("drive-status", &last);
    assert_eq!(server.wait().0, Some(0));
}

#[test]
fn the_list_is_a_line_for_each_model_whatever_the_width() {
    for width in ["40", "80", "200"] {
        let output = plumb().args(["drive", "list"]).env("COLUMNS", width).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let is_model = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
        let models = text.lines().filter(is_model).count();
        let listed = document(&drive(&["list", "--json"]))["models"].as_array().unwrap().len();
        assert_eq!(models, listed + 1, "a head and the models, {width} wide: {text}");
        let hung = text.lines().filter(|line| line.starts_with("      ") && !line.contains("write cache"));
        for line in hung {
            assert!(line.chars().count() <= width.parse().unwrap(), "{width} wide: {line}");
        }
    }
}

#[test]
fn what_a_model_file_says_steers_no_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let model = include_str!("../../sim/models/memory.toml");
    let evil: String = model
        .lines()
        .map(|line| {
            if line.starts_with("description") {
                "description = \"x\\u001b[2Jy\"\n".to_owned()
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    let path = directory.path().join("evil.toml");
    std::fs::write(&path, evil).unwrap();
    let output = exited(drive(&["show", path.to_str().unwrap()]), 0);
    assert!(!output.stdout.contains(&0x1b), "{}", said(&output));
}
