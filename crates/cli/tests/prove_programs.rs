//! Tests that `plumb prove app` has the same verdict with and without a checker, on a text editor, tar and
//! pip.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{PYTHON, document, exited, said};
use crate::prove_posix::{as_nobody, classes, place};

const EDITOR: &str = include_str!("prove_editor.py");

/// Program that creates a package for `pip install`.
const WHEEL: &str = "import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    put = lambda name, text: wheel.writestr(name, text)
    put('demo/__init__.py', 'answer = 42\\n' * 500)
    put('demo-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: demo\\nVersion: 1\\n')
    put('demo-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    files = ['demo/__init__.py'] + ['demo-1.dist-info/' + name for name in ('METADATA', 'WHEEL', 'RECORD')]
    put('demo-1.dist-info/RECORD', ''.join(name + ',,\\n' for name in files))
";

/// Program with its initial state and a checker of its results.
struct Work<'a> {
    setup: &'a str,
    run: &'a str,
    check: &'a str,
}

impl Work<'_> {
    /// Proves the program with the checker and without, and asserts that both exit with `code`.
    fn ends_both_ways(&self, place: &Path, code: i32) {
        let run = format!("{} && echo 1 > $PLUMB_ACK", self.run);
        let line = ["app", "--json", "--no-record", "--no-change", "--fs", "posix", "--states", "300"];
        let line = [&line[..], &["--seed", "7", "--setup", self.setup, "--run", &run]].concat();
        for check in [&["--check", self.check][..], &[]] {
            let output = as_nobody(place, &[&line[..], check].concat());
            assert_eq!(output.status.code(), Some(code), "{run}, {check:?}: {}", said(&output));
            let document = document(&output);
            assert_eq!(document["incomplete_because"], Value::Null, "{run}, {check:?}: {document:#}");
            let is_lost = classes(&document).contains(&"lost-acknowledged");
            assert_eq!(is_lost, code == 1, "{run}, {check:?}: {document:#}");
        }
    }
}

/// Writes a file that everyone can read.
fn put(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
}

#[test]
fn a_text_editor_that_saves_is_judged_as_by_its_checker() {
    let Some(place) = place() else { return };
    let editor = place.path().join("editor.py");
    put(&editor, EDITOR);
    for way in ["backup", "rename"] {
        for (how, code) in [("bad", 1), ("good", 0)] {
            let step = |step: &str| format!("{PYTHON} -IS {} {way} {how} {step}", editor.display());
            let [setup, run, check] = ["setup", "run", "check"].map(step);
            Work { setup: &setup, run: &run, check: &check }.ends_both_ways(place.path(), code);
        }
    }
}

#[test]
fn an_archive_that_is_unpacked_is_judged_as_by_its_checker() {
    let Some(place) = place() else { return };
    let packed = "mkdir -p source/d && for n in 1 2 3; do seq $((900 * n)) > source/d/$n; done && tar cf a.tar -C source d";
    let packed = Command::new("sh").args(["-euc", packed]).current_dir(place.path()).status();
    if !packed.is_ok_and(|status| status.success()) {
        return plumb_testkit::skip("tar is missing");
    }
    let here = place.path().display();
    let check = format!("[ -z \"$PLUMB_REQUIRED\" ] || diff -r d {here}/source/d >&2 || exit 1");
    let run = format!("tar xf {here}/a.tar");
    for (run, code) in [(run.clone(), 1), (format!("{run} && sync -f ."), 0)] {
        Work { setup: "true", run: &run, check: &check }.ends_both_ways(place.path(), code);
    }
}

/// pip creates its files elsewhere and renames them, before any name has been promised.
#[test]
fn a_package_that_pip_installs_is_judged_as_by_its_checker() {
    let Some(place) = place() else { return };
    let python = |arguments: &[&str]| Command::new(PYTHON).args(arguments).output().unwrap();
    if !python(&["-m", "pip", "--version"]).status.success() {
        return plumb_testkit::skip("pip is missing");
    }
    let wheel = place.path().join("demo-1-py3-none-any.whl").display().to_string();
    exited(python(&["-c", WHEEL, &wheel]), 0);
    let install = format!(
        "{PYTHON} -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --disable-pip-version-check \
         --root-user-action=ignore --target lib {wheel}"
    );
    let check = "[ -z \"$PLUMB_REQUIRED\" ] || { [ \"$(grep -c 42 lib/demo/__init__.py)\" = 500 ] \
                 && grep -q 'Name: demo' lib/demo-1.dist-info/METADATA; } || exit 1";
    for (run, code) in [(install.clone(), 1), (format!("{install} && sync -f ."), 0)] {
        Work { setup: "true", run: &run, check }.ends_both_ways(place.path(), code);
    }
}
