//! A scenario: a stack or a trap that a guest builds, and what must then have reached its drives.

use super::disk::Disk;

/// How many writes are synced between the two samples, unless a scenario says otherwise.
pub(crate) const SYNCS: u32 = 4;

/// What the drives' own counters must say after the synced writes. The scenario fails otherwise: a trap that does not
/// catch is no use as a fixture. Drives that are not named may do as they like, as the slow half of a cache does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    /// At least one flush reached each of these drives.
    pub arrived: &'static [&'static str],
    /// No flush reached any of these drives.
    pub none: &'static [&'static str],
    /// At least one flush reached each of these drives, and exactly as many as the guest's block layer counts for it.
    pub exactly: &'static [&'static str],
}

impl Expected {
    /// There is no emulated drive below, so there is nothing to count.
    pub(crate) const NO_DRIVE: Self = Self { arrived: &[], none: &[], exactly: &[] };

    /// Flushes reach all these drives.
    pub(crate) const fn arrived(names: &'static [&'static str]) -> Self {
        Self { arrived: names, ..Self::NO_DRIVE }
    }

    /// Flushes reach none of these drives.
    pub(crate) const fn none(names: &'static [&'static str]) -> Self {
        Self { none: names, ..Self::NO_DRIVE }
    }

    /// As many flushes as the guest counts reach all these drives.
    pub(crate) const fn exactly(names: &'static [&'static str]) -> Self {
        Self { exactly: names, ..Self::NO_DRIVE }
    }
}

/// One scenario; a guest runs its parts as shell scripts, see `script/scenario.sh` for what these may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    /// Unique; names its directory among the recordings.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// The drives, `$D1`, `$D2` and so on. Scenarios of one boot that name the same drive use it one after the other.
    pub disks: &'static [Disk],
    /// Kernel modules beyond those of the drives' buses, each with its parameters if it has any.
    pub modules: &'static [&'static str],
    /// Builds the stack.
    pub setup: &'static str,
    /// What take-down cannot know; empty for most.
    pub after: &'static str,
    /// What plumb is asked about and what is written to: a directory, or a device (shell text, expanded after setup).
    pub target: &'static str,
    /// How many writes are synced.
    pub syncs: u32,
    /// What must have arrived.
    pub expected: Expected,
    /// Instead of a setup and synced writes: what the guest runs and checks by itself, see `script/policy.sh`. It needs
    /// plumb. Empty for most.
    pub program: &'static str,
}

impl Scenario {
    /// Whether plumb must serve drives for it.
    pub(crate) fn needs_plumb(&self) -> bool {
        self.has_program() || self.disks.iter().any(Disk::is_simulated)
    }

    /// Whether the guest checks by itself.
    pub(crate) const fn has_program(&self) -> bool {
        !self.program.is_empty()
    }

    /// What most scenarios have: a file system on `/mnt/t`.
    pub(crate) const PLAIN: Self = Self {
        name: "",
        about: "",
        disks: &[],
        modules: &["ext4"],
        setup: "",
        after: "",
        target: "/mnt/t",
        syncs: SYNCS,
        expected: Expected::NO_DRIVE,
        program: "",
    };

    /// One that runs a program of its own in the guest.
    pub(crate) const fn running(
        name: &'static str,
        about: &'static str,
        disks: &'static [Disk],
        program: &'static str,
    ) -> Self {
        Self { name, about, disks, program, ..Self::PLAIN }
    }
}

/// Scenarios that share a boot because they do not disturb one another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// Names the boot, its log and its temporary files.
    pub name: &'static str,
    /// Run in this order.
    pub scenarios: &'static [Scenario],
}
