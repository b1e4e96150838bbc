//! Every directory and file that plumb uses on a machine beside those that a user names.
//!
//! ```text
//! /run/plumb/                  control sockets of served drives: NAME.control; of one user: see [`run`]
//!   cache/NAME.control         control sockets of served caches
//!   proof/NAME.control         control sockets of programs that are recorded for a proof
//!   attach/NAME/               attachments: the record `server`, the mount point `mount`
//!   ublk/N                     the record of /dev/ublkbN
//! /var/lib/plumb/              kept over restarts; of one user: see [`state`]
//!   cache/NAME.json            the configuration of a cache
//!   cache/NAME.making          files that are being made for its log
//!   restore/PID-N              what a comparison puts back
//!   held/DEVICE                locked while a comparison changes the device
//!   policy/journals/           what applies of policies changed
//!   policy/persistence.json    how sure each persisted policy is
//! /etc/plumb/                  what an administrator says
//!   claims.toml                claims of power loss protection
//!   policy.d/IDENTITY.toml     policies that are to last
//! /etc/udev/rules.d, /etc/systemd/system   what makes them last
//! ./plumb-runs/                recorded runs; where that cannot be written: see [`runs`]
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Root's directory of control sockets.
pub const RUN: &str = "/run/plumb";
/// The directory of attachments.
pub const ATTACHMENTS: &str = "/run/plumb/attach";
/// The directory of the records of ublk devices.
pub const UBLK_RECORDS: &str = "/run/plumb/ublk";
/// Root's directory of what is kept over restarts.
pub const STATE: &str = "/var/lib/plumb";
/// The directory of the journals of policies.
pub const JOURNALS: &str = "/var/lib/plumb/policy/journals";
/// The file that says how sure each persisted policy is.
pub const PERSISTENCE: &str = "/var/lib/plumb/policy/persistence.json";
/// The file of the claims of power loss protection.
pub const CLAIMS: &str = "/etc/plumb/claims.toml";
/// The directory of the policies that are to last.
pub const DESIRED_STATES: &str = "/etc/plumb/policy.d";
/// The file of the udev rules that make policies last.
pub const UDEV_RULES: &str = "/etc/udev/rules.d/99-plumb-policy.rules";
/// The directory of systemd's units.
pub const SYSTEMD_UNITS: &str = "/etc/systemd/system";

/// Returns this user's directory of control sockets: [`RUN`] for root, else `$XDG_RUNTIME_DIR/plumb`, else
/// one below /tmp.
pub fn run() -> PathBuf {
    run_below(variable("XDG_RUNTIME_DIR"))
}

fn run_below(runtime: Option<PathBuf>) -> PathBuf {
    let user = rustix::process::geteuid();
    match runtime {
        _ if user.is_root() => PathBuf::from(RUN),
        Some(runtime) => runtime.join("plumb"),
        None => PathBuf::from(format!("/tmp/plumb-{}", user.as_raw())),
    }
}

/// Returns the control socket of the drive `name` in the directory `run`.
pub fn control_socket(run: &Path, name: &str) -> PathBuf {
    run.join(format!("{name}.control"))
}

/// Returns the directory of the control sockets of caches below the directory `run`.
pub fn cache_sockets(run: &Path) -> PathBuf {
    run.join("cache")
}

/// Returns the directory of the control sockets of recordings for proofs below the directory `run`.
pub fn proof_sockets(run: &Path) -> PathBuf {
    run.join("proof")
}

/// Returns the directory of attachments of those who may not have [`ATTACHMENTS`].
pub fn attachments_of_this_user() -> PathBuf {
    std::env::temp_dir().join(format!("plumb-attach-{}", rustix::process::geteuid().as_raw()))
}

/// Returns the directory of what this user keeps over restarts: `$STATE_DIRECTORY` if a service manager set
/// that, [`STATE`] for root, else `plumb` below `$XDG_STATE_HOME` or `~/.local/state`.
pub fn state() -> PathBuf {
    let root = || rustix::process::geteuid().is_root().then(|| PathBuf::from(STATE));
    // Without a home there is no place that lasts: this one cannot be written, which is told.
    let user = || user_state().unwrap_or_else(|| PathBuf::from("/.local/state/plumb"));
    variable("STATE_DIRECTORY").or_else(root).unwrap_or_else(user)
}

/// Returns the directory of the configurations of caches below the directory `state`.
pub fn cache_configurations(state: &Path) -> PathBuf {
    state.join("cache")
}

/// Returns the configuration of the cache `name` in `directory`.
pub fn cache_configuration(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.json"))
}

/// Returns the directories in which runs are recorded, the first that can be written: `plumb-runs` here,
/// else with the user's state, else with temporary files.
pub fn runs() -> Vec<PathBuf> {
    let all = [Some(PathBuf::from("plumb-runs")), user_state(), Some(std::env::temp_dir())];
    all.into_iter().flatten().collect()
}

/// Returns whether `directory`, which is absolute and without links, is one of device nodes: a regular file
/// there fills memory, and is taken for the device that was meant. /dev/shm is for files.
pub fn is_among_devices(directory: &Path) -> bool {
    directory.starts_with("/dev") && !directory.starts_with("/dev/shm")
}

/// File systems in which the kernel shows itself: linux/magic.h and the sources of each.
const KERNEL_FILE_SYSTEMS: [(u32, &str); 14] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6265_6570, "configfs"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x7363_6673, "securityfs"),
    (0xf97c_ff8c, "selinuxfs"),
    (0xcafe_4a11, "bpf"),
    (0xde5e_81e4, "efivarfs"),
    (0x6165_676c, "pstore"),
    (0x4249_4e4d, "binfmt_misc"),
    (0x6573_5543, "fusectl"),
];

/// Returns the file system of the kernel that `path` is in, if it is in one.
pub fn kernel_file_system(path: &Path) -> Option<&'static str> {
    let kind = rustix::fs::statfs(path).ok()?.f_type as u32;
    KERNEL_FILE_SYSTEMS.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
}

/// Returns the directory of the state of a user, by the home in the environment; `None` without one.
fn user_state() -> Option<PathBuf> {
    let home = || Some(std::env::home_dir()?.join(".local/state"));
    Some(variable("XDG_STATE_HOME").or_else(home)?.join("plumb"))
}

/// Returns a variable of the environment that is an absolute path. A relative one is to be ignored (XDG Base
/// Directory Specification).
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(OsString::into).filter(|path: &PathBuf| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_sockets_of_a_user_are_in_a_directory_of_that_user() {
        let (with, without) = (run_below(Some("/run/user/7".into())), run_below(None));
        if rustix::process::geteuid().is_root() {
            assert_eq!([with, without], [Path::new("/run/plumb"); 2]);
        } else {
            assert_eq!(with, Path::new("/run/user/7/plumb"));
            assert!(without.starts_with("/tmp"), "{without:?}");
        }
    }
}
