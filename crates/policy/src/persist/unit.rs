//! systemd units that check and correct every desired state at boot and after sleep.

/// The unit at boot.
pub const BOOT_UNIT: &str = "plumb-policy.service";
/// Unit after sleep: many drives lose their cache setting with their power.
pub const RESUME_UNIT: &str = "plumb-policy-resume.service";

/// systemd targets for sleep. systemd.special(7).
pub(super) const SLEEPS: [&str; 4] =
    ["suspend.target", "hibernate.target", "hybrid-sleep.target", "suspend-then-hibernate.target"];

/// Returns the text of [`BOOT_UNIT`].
pub fn boot_unit(program: &str, directory: &str) -> String {
    unit("Write-cache policy of disks", "local-fs.target", program, directory, "multi-user.target")
}

/// Returns the text of [`RESUME_UNIT`].
pub fn resume_unit(program: &str, directory: &str) -> String {
    let sleeps = SLEEPS.join(" ");
    unit("Write-cache policy of disks after sleep", &sleeps, program, directory, &sleeps)
}

fn unit(what: &str, after: &str, program: &str, directory: &str, wanted_by: &str) -> String {
    format!(
        "# Made by plumb: `plumb policy persist` overwrites this file.\n\
         [Unit]\n\
         Description={what} (plumb)\n\
         After={after}\n\
         ConditionDirectoryNotEmpty={directory}\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={program} policy enforce --from {directory}\n\
         \n\
         [Install]\n\
         WantedBy={wanted_by}\n"
    )
}
