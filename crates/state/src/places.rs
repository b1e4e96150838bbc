//! Every directory and file that plumb uses on a machine beside those that a user names.
//!
//! ```text
//! /run/plumb/                  control sockets of served drives: NAME.control; of a user: see [`run`]
//!   cache/NAME.control         control sockets of served caches
//!   proof/NAME.control         control sockets of programs that are recorded for a proof
//!   attach/NAME/               attachments: the record `server`, the mount point `mount`
//!   ublk/N                     the record of /dev/ublkbN
//! /var/lib/plumb/              kept over restarts; of a user: see [`state`]
//!   cache/NAME.json            configuration of a cache
//!   cache/NAME.making          files that are being made for its log
//!   restore/PID-N              settings that a comparison must restore
//!   held/DEVICE                locked while a comparison changes the device
//!   policy/journals/           changes made when policies were applied
//!   policy/persistence.json    confidence that each persisted policy lasts
//! /etc/plumb/                  statements of the administrator
//!   claims.toml                claims of power loss protection
//!   policy.d/IDENTITY.toml     persisted policies
//! /etc/udev/rules.d, /etc/systemd/system   files that reapply them
//! ./plumb-runs/                recorded runs; if it cannot be written: see [`runs`]
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Root's directory for control sockets.
pub const RUN: &str = "/run/plumb";
/// Directory of attachments.
pub const ATTACHMENTS: &str = "/run/plumb/attach";
/// Directory of the records of ublk devices.
pub const UBLK_RECORDS: &str = "/run/plumb/ublk";
/// Root's directory for state that survives a restart.
pub const STATE: &str = "/var/lib/plumb";
/// Directory of policy journals.
pub const JOURNALS: &str = "/var/lib/plumb/policy/journals";
/// File with the confidence that each persisted policy lasts.
pub const PERSISTENCE: &str = "/var/lib/plumb/policy/persistence.json";
/// File of the claims of power loss protection.
pub const CLAIMS: &str = "/etc/plumb/claims.toml";
/// Directory of persisted policies.
pub const DESIRED_STATES: &str = "/etc/plumb/policy.d";
/// File of the udev rules that persist policies.
pub const UDEV_RULES: &str = "/etc/udev/rules.d/99-plumb-policy.rules";
/// Directory of systemd units.
pub const SYSTEMD_UNITS: &str = "/etc/systemd/system";

/// Returns this user's directory for control sockets: [`RUN`] for root, else `$XDG_RUNTIME_DIR/plumb`, else
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

/// Returns the directory of cache control sockets below the directory `run`.
pub fn cache_sockets(run: &Path) -> PathBuf {
    run.join("cache")
}

/// Returns the directory below `run` of the control sockets of recordings for proofs.
pub fn proof_sockets(run: &Path) -> PathBuf {
    run.join("proof")
}

/// Returns the directory of attachments for users without access to [`ATTACHMENTS`].
pub fn attachments_of_this_user() -> PathBuf {
    std::env::temp_dir().join(format!("plumb-attach-{}", rustix::process::geteuid().as_raw()))
}

/// Returns this user's directory for state that survives a restart: `$STATE_DIRECTORY` if a service manager
/// set it, [`STATE`] for root, else `plumb` below `$XDG_STATE_HOME` or `~/.local/state`.
pub fn state() -> PathBuf {
    let root = || rustix::process::geteuid().is_root().then(|| PathBuf::from(STATE));
    // A user without a home has no persistent place. Writing to this path fails, and the error is reported.
    let user = || user_state().unwrap_or_else(|| PathBuf::from("/.local/state/plumb"));
    variable("STATE_DIRECTORY").or_else(root).unwrap_or_else(user)
}

/// Returns the directory of cache configurations below the directory `state`.
pub fn cache_configurations(state: &Path) -> PathBuf {
    state.join("cache")
}

/// Returns the path of the configuration of the cache `name` in `directory`.
pub fn cache_configuration(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.json"))
}

/// Returns the candidate directories for recorded runs, of which the first writable one is used: `plumb-runs`
/// in the current directory, else below the user's state, else below the temporary directory.
pub fn runs() -> Vec<PathBuf> {
    let all = [Some(PathBuf::from("plumb-runs")), user_state(), Some(std::env::temp_dir())];
    all.into_iter().flatten().collect()
}

/// Returns true if `directory`, an absolute path without links, is for device nodes. A regular file there
/// would fill memory and be mistaken for the intended device. /dev/shm is meant for files.
pub fn is_among_devices(directory: &Path) -> bool {
    directory.starts_with("/dev") && !directory.starts_with("/dev/shm")
}

/// Pseudo file systems of the kernel: linux/magic.h and the sources of each.
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

/// Returns the name of the kernel's pseudo file system that contains `path`, if any.
pub fn kernel_file_system(path: &Path) -> Option<&'static str> {
    let kind = rustix::fs::statfs(path).ok()?.f_type as u32;
    KERNEL_FILE_SYSTEMS.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
}

/// Returns the state directory of a user, from the environment; `None` without a home.
fn user_state() -> Option<PathBuf> {
    let home = || Some(std::env::home_dir()?.join(".local/state"));
    Some(variable("XDG_STATE_HOME").or_else(home)?.join("plumb"))
}

/// Returns an environment variable that holds an absolute path. Relative paths must be ignored (XDG Base
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
