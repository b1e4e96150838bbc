//! Scenarios, by the boot that they share.
//!
//! Each boot is a data file. Within a boot they run in order. A scenario whose state outlives its take-down
//! (a trap in the kernel's view of a drive) has its own drive, the others share a few.

use std::sync::LazyLock;

use super::scenario::{Group, Scenario};

macro_rules! groups {
    ($($name:literal),* $(,)?) => {
        vec![$(Group::read($name, include_str!(concat!($name, ".toml")))),*]
    };
}

/// All boots, the longest first, so that they occupy two processors.
pub(crate) static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
    groups![
        "policy-changes",
        "policy-crash",
        "power-cuts",
        "ublk",
        "policy-traps",
        "cache",
        "stacks",
        "traps",
        "buses",
        "filesystems",
        "observe",
        "policy-company",
        "simulated",
    ]
});

/// Group that is measured instead of judged, separate from the tests.
pub(crate) static CACHE_SPEED: LazyLock<Group> =
    LazyLock::new(|| Group::read("cache-speed", include_str!("cache-speed.toml")));

/// Returns the list of all scenarios, a line each under the name of their boot.
pub(crate) fn list() -> String {
    let line = |scenario: &Scenario| format!("\n  {:28} {}", scenario.name, scenario.about);
    let group =
        |group: &Group| format!("{}:{}", group.name, group.scenarios.iter().map(line).collect::<String>());
    GROUPS.iter().map(group).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> impl Iterator<Item = &'static Scenario> {
        GROUPS.iter().chain([&*CACHE_SPEED]).flat_map(|group| &group.scenarios)
    }

    #[test]
    fn names_are_unique_and_fit_for_directories() {
        let mut seen = BTreeSet::new();
        for scenario in all() {
            assert!(seen.insert(&scenario.name), "{} twice", scenario.name);
            assert!(
                scenario.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'),
                "{}",
                scenario.name
            );
            assert!(!scenario.about.is_empty(), "{}", scenario.name);
        }
    }

    #[test]
    fn expectations_name_drives_of_the_scenario() {
        for Scenario { name, disks, expected, .. } in all().filter(|scenario| !scenario.has_program()) {
            let named: Vec<_> =
                expected.arrived.iter().chain(&expected.none).chain(&expected.exactly).collect();
            assert_eq!(named.is_empty(), disks.is_empty(), "{name}");
            for drive in named {
                assert!(disks.iter().any(|disk| disk.name == *drive), "{name}: {drive}");
            }
        }
    }

    /// Scenarios may share a drive only if they define it equally; and AHCI has six ports.
    #[test]
    fn shared_drives_are_the_same() {
        for group in &*GROUPS {
            let mut disks: Vec<_> = group.scenarios.iter().flat_map(|scenario| &scenario.disks).collect();
            disks.sort_by_key(|disk| &disk.name);
            disks.dedup();
            assert!(disks.windows(2).all(|pair| pair[0].name != pair[1].name), "{}", group.name);
        }
    }
}
