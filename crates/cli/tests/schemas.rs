//! Tests that every document has a published schema: each schema name in the sources has a file, and output
//! on simulated drives matches its schema and has no other fields. They guard against a document without a
//! schema.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plumb_testkit::schema::Schema;
use serde_json::Value;

use crate::common::{document, plumb};

/// Names of plumb's internal files, which docs/ON_DISK_FORMAT.md describes and no command prints.
const ON_DISK: [&str; 6] = ["cache-config", "checks", "probe", "recorded-subject", "recording", "tree"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            // Names in unit tests do not belong to documents.
            found.push(text.split("#[cfg(test)]").next().unwrap_or_default().to_owned());
        }
    }
}

/// Returns the names in `"plumb/NAME/VERSION"`.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let texts = text.split("\"plumb/").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0));
    texts.filter_map(|text| text.split_once('/')).filter_map(|(name, version)| {
        let is_name = name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
        let is_version = version.chars().all(|digit| digit.is_ascii_digit());
        (is_name && is_version && !name.is_empty() && !version.is_empty()).then_some(name)
    })
}

#[test]
fn every_name_of_a_document_has_a_schema_that_says_it() {
    let mut texts = Vec::new();
    for of in std::fs::read_dir(crates()).unwrap() {
        let of = of.unwrap().path().join("src");
        if of.is_dir() {
            sources(&of, &mut texts);
        }
    }
    let names: BTreeSet<&str> = texts.iter().flat_map(|text| named(text)).collect();
    assert!(names.len() > 35, "{names:?}");
    let missing: Vec<&&str> = names
        .iter()
        .filter(|name| !ON_DISK.contains(name))
        .filter(|name| !crates().join(format!("report/schemas/{name}.schema.json")).is_file())
        .collect();
    assert!(missing.is_empty(), "no schema: {missing:?}");
    for name in names.iter().filter(|name| !ON_DISK.contains(name)) {
        // The schema rejects a document with another name.
        let other = serde_json::json!({"schema": "plumb/other/1"});
        let complaints = Schema::open(name).complaints(&other);
        let says = complaints.iter().any(|complaint| complaint.starts_with("$.schema:"));
        assert!(says, "{name}: {complaints:?}");
        // The schema accepts a document with its own name.
        let own = serde_json::json!({"schema": format!("plumb/{name}/1")});
        let complaints = Schema::open(name).complaints(&own);
        let refuses = complaints.iter().any(|complaint| complaint.starts_with("$.schema:"));
        assert!(!refuses, "{name}: {complaints:?}");
    }
}

#[test]
fn every_schema_has_an_id_that_is_its_name() {
    for schema in std::fs::read_dir(crates().join("report/schemas")).unwrap() {
        let file = schema.unwrap().file_name().into_string().unwrap();
        let name = file.strip_suffix(".schema.json").unwrap();
        let id = format!("https://plumb.invalid/schema/{name}/1");
        assert_eq!(Schema::open(name).id(), id, "{file}");
    }
}

/// Collects the descriptions of nullable values in a schema.
fn descriptions<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    match schema {
        Value::Object(members) => {
            let forms = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
            let types = forms.map(|form| &form["type"]).chain([&schema["type"]]);
            let is_null = |kind: &Value| {
                kind == "null" || kind.as_array().is_some_and(|kinds| kinds.contains(&"null".into()))
            };
            let is_nullable = types.into_iter().any(is_null);
            found.extend(members.get("description").filter(|_| is_nullable).and_then(Value::as_str));
            members.values().for_each(|member| descriptions(member, found));
        }
        Value::Array(members) => members.iter().for_each(|member| descriptions(member, found)),
        _ => {}
    }
}

/// The doc comment of a field and the description in its schema are separate texts.
#[test]
fn a_schema_says_when_a_value_is_null_where_the_comment_of_its_field_does() {
    let mut texts = Vec::new();
    sources(&crates(), &mut texts);
    let (mut known, mut comment) = (BTreeSet::new(), String::new());
    for line in texts.iter().flat_map(|text| text.lines()) {
        match line.trim().strip_prefix("///") {
            Some(more) => comment.push_str(more),
            None => {
                let head = comment.split_once("; null ").or_else(|| comment.split_once(". Null "));
                known.extend(head.map(|(head, _)| head.trim().to_owned()));
                comment.clear();
            }
        }
    }
    assert!(known.len() > 100, "{known:?}");
    for schema in std::fs::read_dir(crates().join("report/schemas")).unwrap() {
        let path = schema.unwrap().path();
        let schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let mut said = Vec::new();
        descriptions(&schema, &mut said);
        let silent: Vec<_> = said.iter().filter(|text| known.contains(text.trim_end_matches('.'))).collect();
        assert!(silent.is_empty(), "{}: {silent:?} are silent about null", path.display());
    }
}

#[test]
fn what_commands_print_on_simulated_drives_is_as_its_schema_says() {
    let root = tempfile::tempdir().unwrap();
    let drive = "sim:consumer-nvme-ssd";
    let load = ["--size", "16M", "--random", "--write", "100", "--duration", "100ms", "--no-record"];
    let commands: [(&str, &[&str]); 12] = [
        ("survey", &["survey", drive]),
        ("check", &["check", drive, "--seconds", "1", "--no-record"]),
        ("load", &[&["load", drive], &load[..]].concat()),
        (
            "compare",
            &[&["compare", "--factor", "buffering=direct,dsync", "--budget", "5s", drive], &load[..]]
                .concat(),
        ),
        ("study", &["study", "d", "--no-record"]),
        ("drive-list", &["drive", "list"]),
        ("drive-model", &["drive", "show", "consumer-nvme-ssd"]),
        ("drives", &["drive", "status"]),
        ("caches", &["cache", "status"]),
        ("policy", &["policy", "show", drive]),
        ("restore", &["restore", "--dry-run"]),
        ("diskspd", &["diskspd", "-b4K", "-d1", "-w100", "-c16M", drive, "--no-record"]),
    ];
    for (name, words) in commands {
        let output = plumb().args(words).arg("--json").env("XDG_RUNTIME_DIR", root.path()).output().unwrap();
        let printed: Value = document(&output);
        Schema::of_document(&printed).assert_holds(&printed);
        let said = printed["schema"].as_str().unwrap();
        let expected = if name == "diskspd" { "load" } else { name };
        assert_eq!(said, format!("plumb/{expected}/1"), "{words:?}");
    }
}

#[test]
fn each_form_of_a_status_is_printed_and_one_that_there_is_not_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let printed = |words: &[&str], format: &str| {
        let mut command = plumb();
        command.args(words).args(["--format", format]).env("XDG_RUNTIME_DIR", root.path());
        command.env("PLUMB_STATE_DIR", root.path());
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), text, String::from_utf8(output.stderr).unwrap())
    };
    for (words, says) in [
        (&["drive", "list"][..], "consumer-nvme-ssd"),
        (&["drive", "show", "nearline-4tb"], "parameter"),
        (&["cache", "status"], "there is no cache"),
        (&["policy", "show", "sim:nearline-4tb"], "nearline-4tb"),
        (&["survey", "sim:nearline-4tb"], "nearline-4tb"),
    ] {
        for (format, begins) in [("text", ""), ("html", "<!doctype html>"), ("markdown", "# plumb ")] {
            let (code, text, error) = printed(words, format);
            assert!(code <= 1 && text.starts_with(begins) && text.contains(says), "{words:?}: {text}{error}");
        }
        let (_, csv, _) = printed(words, "csv");
        assert!(csv.starts_with("section,name,at_seconds,metric,value,unit\n"), "{csv}");
        assert!(csv.lines().any(|row| row.contains("plumb/")), "{csv}");
        let (code, _, error) = printed(words, "junit");
        assert!(code == 2 && error.contains("expected text, html, markdown, json"), "{words:?}: {error}");
    }
    let (code, text, _) = printed(&["cache", "status"], "prometheus");
    assert!(code == 0 && text.contains("# TYPE plumb_cache_served gauge"), "{text}");
    let (code, _, error) = printed(&["drive", "list"], "prometheus");
    assert!(code == 2 && error.contains("`prometheus` is not a format of a status"), "{error}");
}
