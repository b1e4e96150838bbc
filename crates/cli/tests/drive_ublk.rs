//! Tests of `plumb drive serve --ublk` without the driver: refusals with exit code and remedy. Its function
//! is tested in a guest whose kernel has the driver.

use std::path::Path;
use std::process::Output;

use crate::common::bounded;

fn serve(arguments: &[&str]) -> Output {
    // A drive that is served by mistake must not hang the test.
    let mut command = bounded(env!("CARGO_BIN_EXE_plumb"));
    command.args(["drive", "serve", "null", "--size", "1M"]).args(arguments).output().expect("timeout runs")
}

fn refused(arguments: &[&str], code: i32, words: &[&str]) {
    let output = serve(arguments);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments:?}: {text}");
    }
    assert!(output.stdout.is_empty(), "{arguments:?} said something on stdout");
}

#[test]
fn a_kernel_without_the_driver_is_refused_with_what_to_do() {
    if Path::new("/dev/ublk-control").exists() {
        return plumb_testkit::skip("the driver is here");
    }
    refused(&["--ublk"], 5, &["modprobe ublk_drv", "Linux 6.0 or later"]);
    refused(&["--ublk", "--recover", "3"], 5, &["modprobe ublk_drv"]);
}

#[test]
fn nonsense_is_a_matter_of_the_command_line() {
    refused(&["--ublk", "--attach"], 2, &["--attach"]);
    refused(&["--recover", "3"], 2, &["--ublk"]);
    refused(&["--ublk", "--recover", "x"], 2, &["--recover"]);
}
