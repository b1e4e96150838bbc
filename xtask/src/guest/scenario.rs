//! Scenario: a stack or a trap that a guest builds, and the expected counts at its drives. All scenarios are
//! data, in `scenarios/`.

use serde::Deserialize;

use super::disk::Disk;

/// Expected counts of the drives after the synced writes. The scenario fails otherwise, since a trap that
/// does not catch is useless as a fixture. Drives that are not named may have any count, like the slow half
/// of a cache. If none is named there is no emulated drive below, so nothing is counted.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ExpectedCounts {
    /// At least one flush reached each of these drives.
    pub arrived: Vec<String>,
    /// No flush reached any of these drives.
    pub none: Vec<String>,
    /// At least one flush reached each of these drives, and exactly as many as the guest's block layer
    /// counts.
    pub exactly: Vec<String>,
}

/// Scenario. A guest runs its parts as shell scripts; see `script/scenario.sh` for their environment.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Scenario {
    /// Unique name, also of its directory among the recordings.
    pub name: String,
    /// Description in one line.
    pub about: String,
    /// Drives, `$D1`, `$D2` and so on. Scenarios of one boot that name the same drive use it one after
    /// another.
    pub disks: Vec<Disk>,
    /// Kernel modules in addition to those of the drives' buses, with their parameters.
    pub modules: Vec<String>,
    /// Commands that build the stack.
    pub setup: String,
    /// Additional commands for take-down; usually empty.
    pub after: String,
    /// Target that plumb surveys and the guest writes: a directory, or a device (shell text, expanded after
    /// setup).
    pub target: String,
    /// Number of synced writes between the two samples.
    pub syncs: u32,
    /// Expected counts.
    pub expected: ExpectedCounts,
    /// Program that the guest runs instead of a setup and synced writes, and that checks by itself (see
    /// `script/policy.sh`). It needs plumb. Usually empty.
    pub program: String,
}

impl Default for Scenario {
    /// Returns the values of most scenarios: a file system on `/mnt/t`.
    fn default() -> Self {
        Self {
            name: String::new(),
            about: String::new(),
            disks: Vec::new(),
            modules: vec!["ext4".to_owned()],
            setup: String::new(),
            after: String::new(),
            target: "/mnt/t".to_owned(),
            syncs: 4,
            expected: ExpectedCounts::default(),
            program: String::new(),
        }
    }
}

impl Scenario {
    /// Returns true if plumb must serve drives for the scenario.
    pub(crate) fn needs_plumb(&self) -> bool {
        self.has_program() || self.disks.iter().any(Disk::is_simulated)
    }

    /// Returns true if the guest checks by itself.
    pub(crate) fn has_program(&self) -> bool {
        !self.program.is_empty()
    }
}

/// Scenarios that share a boot because they do not disturb one another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    /// Name of the boot, its log and its temporary files.
    #[serde(skip)]
    pub name: &'static str,
    /// Common beginning of each setup.
    #[serde(default)]
    prelude: String,
    /// Scenarios in the order in which they run.
    #[serde(rename = "scenario")]
    pub scenarios: Vec<Scenario>,
}

impl Group {
    /// Reads the built-in scenarios of a boot.
    ///
    /// # Panics
    /// If the text is not a group. Every test of the scenarios reads all of them.
    pub(crate) fn read(name: &'static str, text: &str) -> Self {
        Self::parse(name, text).unwrap_or_else(|error| panic!("{name}.toml: {error}"))
    }

    /// Reads the scenarios of a boot from any text.
    ///
    /// # Errors
    /// If the text is not a group.
    pub(crate) fn parse(name: &'static str, text: &str) -> Result<Self, toml::de::Error> {
        let mut group: Self = toml::from_str(text)?;
        group.name = name;
        for scenario in &mut group.scenarios {
            let of = if scenario.has_program() { &mut scenario.program } else { &mut scenario.setup };
            of.insert_str(0, &group.prelude);
        }
        Ok(group)
    }
}
