//! A scenario: a stack or a trap that a guest builds, and what must then have reached its drives. All of them
//! are data, in `scenarios/`.

use serde::Deserialize;

use super::disk::Disk;

/// Counts that the drives' own counters must show after the synced writes. The scenario fails otherwise: a
/// trap that does not catch is no use as a fixture. Drives that are not named may do as they like, as the
/// slow half of a cache does; with none named there is no emulated drive below, and so nothing to count.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ExpectedCounts {
    /// At least one flush reached each of these drives.
    pub arrived: Vec<String>,
    /// No flush reached any of these drives.
    pub none: Vec<String>,
    /// At least one flush reached each of these drives, and exactly as many as the guest's block layer counts
    /// for it.
    pub exactly: Vec<String>,
}

/// One scenario; a guest runs its parts as shell scripts, see `script/scenario.sh` for what these may use.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Scenario {
    /// Unique; names its directory among the recordings.
    pub name: String,
    /// One line for people.
    pub about: String,
    /// The drives, `$D1`, `$D2` and so on. Scenarios of one boot that name the same drive use it one after
    /// the other.
    pub disks: Vec<Disk>,
    /// Kernel modules beyond those of the drives' buses, each with its parameters if it has any.
    pub modules: Vec<String>,
    /// Builds the stack.
    pub setup: String,
    /// Commands for what take-down cannot know; empty for most.
    pub after: String,
    /// Target about which plumb is asked, and to which is written: a directory, or a device (shell text,
    /// expanded after setup).
    pub target: String,
    /// Number of writes that are synced between the two samples.
    pub syncs: u32,
    /// Counts of what must have arrived.
    pub expected: ExpectedCounts,
    /// Instead of a setup and synced writes: what the guest runs and checks by itself, see
    /// `script/policy.sh`. It needs plumb. Empty for most.
    pub program: String,
}

impl Default for Scenario {
    /// Returns the values that most scenarios have: a file system on `/mnt/t`.
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
    /// Returns true if plumb must serve drives for it.
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
    /// Names the boot, its log and its temporary files.
    #[serde(skip)]
    pub name: &'static str,
    /// Text with which each setup begins.
    #[serde(default)]
    prelude: String,
    /// Run in this order.
    #[serde(rename = "scenario")]
    pub scenarios: Vec<Scenario>,
}

impl Group {
    /// Reads the scenarios of a boot.
    ///
    /// # Panics
    /// If the text, which is built in, is not a group: every test of the scenarios reads them all.
    pub(crate) fn read(name: &'static str, text: &str) -> Self {
        Self::parse(name, text).unwrap_or_else(|error| panic!("{name}.toml: {error}"))
    }

    /// Reads the scenarios of a boot from a text that may be anything.
    ///
    /// # Errors
    /// When the text is not a group.
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
