//! Tests of devices that `plumb policy` must not change: everything that is not a disk with its own write
//! cache is refused with exit code 4, a reason and a remedy. Invalid input ends with 2, and without root
//! nothing is changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{document, exited, plumb, said, scratch};
use crate::load_support::{LoopDevice, Zram};
use crate::policy_documents::policy;
use serde_json::Value;

/// Loop device, and the directory of its file.
struct Loop {
    device: LoopDevice,
    _directory: tempfile::TempDir,
}

impl Loop {
    /// Creates one over a file of 8 MiB with one partition; `None` if this machine does not permit that.
    fn with_a_partition() -> Option<Self> {
        let directory = scratch();
        let file = directory.path().join("image");
        let mut image = vec![0_u8; 8 << 20];
        // DOS partition table with one entry of type 83h from sector 2048, 4096 sectors long.
        image[450] = 0x83;
        image[454..458].copy_from_slice(&2048_u32.to_le_bytes());
        image[458..462].copy_from_slice(&4096_u32.to_le_bytes());
        image[510..512].copy_from_slice(&[0x55, 0xaa]);
        fs::write(&file, image).unwrap();
        let device = LoopDevice::over(&file, &["--partscan"])?;
        Some(Self { device, _directory: directory })
    }
}

/// Returns the single refusal for `name` in a plan.
fn refusal<'a>(plan: &'a Value, name: &str) -> &'a Value {
    let refused = plan["refused"].as_array().unwrap();
    refused
        .iter()
        .find(|disk| disk["name"] == name)
        .unwrap_or_else(|| panic!("{name} is not refused: {plan}"))
}

/// Returns a plan for `targets`, which must refuse each of them.
fn all_refused(targets: &[&str]) -> Value {
    for state in ["on", "protected", "off"] {
        let output = exited(policy(&[&["plan", state, "--json"], targets].concat()), 4);
        let plan = document(&output);
        assert_eq!(plan["changes"].as_array().unwrap().len(), 0, "{plan}");
        for disk in plan["refused"].as_array().unwrap() {
            for key in ["reason", "remedy"] {
                assert!(disk[key].as_str().is_some_and(|text| text.len() > 10), "{disk}");
            }
        }
        if state == "off" {
            return plan;
        }
    }
    Value::Null
}

#[test]
fn what_is_no_disk_is_refused_with_a_reason_and_a_remedy() {
    let directory = scratch();
    let path = directory.path().to_str().unwrap();
    let plan = all_refused(&[path]);
    assert!(refusal(&plan, path)["reason"].as_str().unwrap().contains("not a disk"));
    for command in ["heal", "persist"] {
        let output = policy(&[command, path]);
        assert_eq!(output.status.code(), Some(4), "{command}: {}", said(&output));
    }
}

#[test]
fn loop_devices_and_partitions_are_refused() {
    let Some(looped) = Loop::with_a_partition() else { return };
    let name = &*looped.device.name;
    let before = write_cache(name);
    let plan = all_refused(&[&looped.device.path]);
    assert!(refusal(&plan, name)["remedy"].as_str().unwrap().contains("file system"), "{plan}");
    let claim = ["claim", name, "--by", "a", "--until", "2099-01-01", "--reason", "b"];
    exited(policy(&[&claim[..], &["--claims", "/nonexistent/c"]].concat()), 4);
    let partition = format!("{name}p1");
    if Path::new("/sys/class/block").join(&partition).exists() {
        let plan = all_refused(&[&partition]);
        assert_eq!(refusal(&plan, &partition)["remedy"], format!("name the disk: {name}"));
    } else {
        plumb_testkit::skip("this kernel reads no partitions of loop devices");
    }
    assert_eq!(write_cache(name), before);
}

fn write_cache(name: &str) -> String {
    fs::read_to_string(format!("/sys/class/block/{name}/queue/write_cache")).unwrap_or_default()
}

#[test]
fn memory_is_refused() {
    // A disk of the test, because that of another test may disappear at any moment.
    let Some(zram) = Zram::new(1 << 20) else { return plumb_testkit::skip("there is no zram device here") };
    let plan = all_refused(&[&zram.path]);
    let name = zram.path.trim_start_matches("/dev/");
    assert!(refusal(&plan, name)["reason"].as_str().unwrap().contains("memory"), "{plan}");
}

#[test]
fn nonsense_is_told_from_refusals() {
    for (typed, expected) in [
        (&["plan", "write-back", "--all"][..], "is not a state of a write cache"),
        (&["plan", "off"], "no disk is named"),
        (&["plan", "off", "--where", "sise > 4TB"], "Did you mean `size`?"),
        (&["plan", "off", "--where", "size >"], "^"),
        (&["plan", "off", "--where", ""], ""),
        (&["plan", "off", "sda", "--all"], "--all"),
        (&["plan", "off", "--all", "--wave-size", "0"], "from 1 to 1000"),
        (&["show", "none-such"], "not a block device"),
        (&["plan", "off", "/dev/none-such"], "not a block device"),
        (&["show", "--where", "model ~"], "^"),
        (&["show", "--json", "--prometheus"], "--prometheus"),
        (&["apply"], "PLAN"),
        (&["apply", "/nonexistent/plan.json"], "/nonexistent/plan.json"),
        (&["apply", "--resume", "/nonexistent"], "it changed nothing"),
        (&["rollback", "/nonexistent"], "it changed nothing"),
        (&["verify", "/nonexistent/plan.json"], "/nonexistent/plan.json"),
        (&["watch", "--interval", "soon"], "500ms"),
        (&["claim", "sda", "--by", "x", "--until", "soon", "--reason", "y"], "2027-06-30"),
        (&["claim", "sda", "--by", "x"], "--until"),
    ] {
        if !is_root() && matches!(typed[0], "apply" | "rollback") {
            continue;
        }
        let output = policy(typed);
        assert_eq!(output.status.code(), Some(2), "{typed:?}: {}", said(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{typed:?}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{typed:?}: {}", said(&output));
    }
}

/// Writes a plan without changes to a file.
fn plan_file(directory: &Path) -> PathBuf {
    let path = directory.join("plan.json");
    let output = policy(&["plan", "off", "--where", "name = none-such", "--out", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("it has nothing to apply"), "{}", said(&output));
    path
}

#[test]
fn a_plan_that_was_altered_is_refused_and_one_that_is_none_is_nonsense() {
    if !is_root() {
        return plumb_testkit::skip("only root may apply");
    }
    let directory = scratch();
    let path = plan_file(directory.path());
    let journals = directory.path().join("journals");
    let apply =
        || plumb().args(["policy", "apply"]).arg(&path).arg("--journal").arg(&journals).output().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    for (from, to) in [("\"off\"", "\"on\""), ("\"boot_id\": \"", "\"boot_id\": \"0")] {
        fs::write(&path, text.replace(from, to)).unwrap();
        let output = exited(apply(), 4);
        assert!(String::from_utf8_lossy(&output.stderr).contains("altered"), "{}", said(&output));
    }
    for nonsense in ["", "{}", "[1]", "\u{0}", "{\"schema\":\"plumb/policy-plan/1\""] {
        fs::write(&path, nonsense).unwrap();
        let output = apply();
        assert_eq!(output.status.code(), Some(2), "{nonsense:?}: {}", said(&output));
    }
    assert!(!journals.exists(), "a plan that is refused leaves nothing");
    fs::write(&path, &text).unwrap();
    exited(apply(), 0);
}

fn is_root() -> bool {
    effective_user() == Some(0)
}

/// Returns the effective user of this process according to the kernel.
fn effective_user() -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("Uid:"))?;
    line.split_whitespace().nth(2)?.parse().ok()
}

#[test]
fn without_root_what_changes_is_refused_and_what_shows_says_what_is_missing() {
    if !is_root() {
        return plumb_testkit::skip("only root can become somebody else");
    }
    // A directory that everyone can access; the build directory may belong to root alone.
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("plumb");
    plumb_testkit::program::copy(Path::new(env!("CARGO_BIN_EXE_plumb")), &program);
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(directory.path(), everybody).unwrap();
    let plan = plan_file(directory.path());
    // Files readable only by root, on this machine or below another root, are not a failure.
    let root = directory.path().join("root");
    let state = root.join("var/lib/plumb/policy");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("persistence.json"), "{\"kept\":[]}").unwrap();
    let nobody_else = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&state, nobody_else).unwrap();
    let root = root.to_str().unwrap();
    let journal = state.to_str().unwrap();
    let as_nobody = |arguments: &[&str]| {
        Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(&program)
            .arg("policy")
            .args(arguments)
            .args(
                ["--claims", "/nonexistent/claims.toml"]
                    .iter()
                    .filter(|_| !arguments.contains(&"--claims") && arguments[0] != "claim"),
            )
            .output()
    };
    let Ok(shown) = as_nobody(&["show"]) else { return plumb_testkit::skip("there is no setpriv here") };
    assert!(matches!(shown.status.code(), Some(0 | 1)), "{}", said(&shown));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("Seen without root"), "{}", said(&shown));
    let plan = plan.to_str().unwrap();
    for arguments in [
        &["apply", plan][..],
        &["apply", "--resume", "/nonexistent"],
        &["rollback", "/nonexistent"],
        &["enforce"],
        &["claim", "none-such", "--by", "a", "--until", "2099-01-01", "--reason", "b"],
        &["persist", "none-such"],
        &["persist", "--root", root],
        &["persist", "none-such", "--remove", "--root", root],
        &["show", "--claims", &format!("{journal}/claims.toml")],
    ] {
        let output = as_nobody(arguments).unwrap();
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {}", said(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains("only root"), "{}", said(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}: {}", said(&output));
    }
    exited(as_nobody(&["verify", plan]).unwrap(), 3);
}
