//! Laboratory: the parts of one boot, and QEMU's command line for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::disk::Disk;
use super::kernel::Kernel;
use super::modules::Modules;
use super::nvme_trace;
use super::scenario::Scenario;

/// Boot: a kernel, its drives, the contents of its root, and its scenarios.
#[derive(Debug)]
pub(crate) struct Lab<'a> {
    /// Name of the log.
    pub name: &'static str,
    /// Kernel that boots.
    pub kernel: &'a Kernel,
    /// Modules of the kernel.
    pub modules: &'a Modules,
    /// plumb to survey with, if there is one.
    pub plumb: Option<&'a Path>,
    /// Directory whose files are added to the root, if there is one.
    pub root: Option<&'a Path>,
    /// Scenarios, run one after another.
    pub scenarios: Vec<&'static Scenario>,
    /// True for a shell on this terminal instead of the scenarios.
    pub interactive: bool,
}

/// On a busy host the emulated timer may be late when the kernel tests it, which is a panic without
/// `no_timer_check`. A program that starts at the same addresses each time (`norandmaps`) is translated once
/// by QEMU, which takes a third off the processor time of a guest. Ciphers that do not test themselves
/// (`cryptomgr.notests`) take a fifth off that of a boot.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 panic=-1 mitigations=off nokaslr norandmaps audit=0 no_timer_check cryptomgr.notests quiet loglevel=6 scsi_mod.scan=sync rdinit=/init";

/// Files of a boot outside the guest.
#[derive(Debug)]
pub(crate) struct Files {
    /// Root of the guest.
    pub initramfs: PathBuf,
    /// Socket on which the guest reports.
    pub channel: PathBuf,
    /// Log of the kernel's console.
    pub console: PathBuf,
    /// Log of QEMU's stderr.
    pub complaints: PathBuf,
    /// QEMU's trace of events that it does not count.
    pub trace: PathBuf,
    /// After a power cycle: the scenario to continue, and the number of this start.
    pub resumed: Option<(&'static str, u32)>,
}

impl Files {
    /// Returns the kernel parameters that tell the guest to continue a scenario.
    fn go_on(&self) -> String {
        self.resumed.map_or_else(String::new, |(scenario, life)| {
            format!(" plumb.scenario={scenario} plumb.life={life}")
        })
    }
}

impl Lab<'_> {
    /// Returns the drives of all scenarios, each once.
    pub(crate) fn disks(&self) -> Vec<Disk> {
        let mut disks: Vec<Disk> = Vec::new();
        for disk in self.scenarios.iter().flat_map(|scenario| &scenario.disks) {
            if !disks.iter().any(|known| known.name == disk.name) {
                disks.push(disk.clone());
            }
        }
        disks
    }

    /// Returns the command that boots this laboratory with `drives`, QEMU's arguments for the disks.
    ///
    /// QEMU runs in its own process group, so that Ctrl-C reaches only this process, and under setpriv, which
    /// makes the kernel kill QEMU if this process dies without having ended it.
    pub(crate) fn command(&self, files: &Files, drives: &[String]) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--", "qemu-system-x86_64"])
            .args(["-machine", "q35", "-accel", "tcg,thread=multi", "-smp", "1", "-m", "1024"])
            // With an instruction for random numbers nothing in the guest waits for entropy. SSE 4.2 is left
            // out, since QEMU emulates its CRC-32C bit by bit, which takes longer than the tables used
            // instead.
            .args(["-cpu", "qemu64,+rdrand,+ssse3,+sse4.1,+popcnt"])
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
            .arg("-kernel")
            .arg(&self.kernel.image)
            .arg("-initrd")
            .arg(&files.initramfs)
            .args(["-append", &format!("{KERNEL_ARGUMENTS}{}", files.go_on())]);
        if self.interactive {
            command.args(["-serial", "mon:stdio"]);
        } else {
            use std::os::unix::process::CommandExt;
            command.process_group(0);
            let console = files.console.display();
            command.arg("-chardev").arg(format!("file,id=console,append=on,path={console}"));
            command.args(["-serial", "chardev:console"]);
            command.args(["-qmp", "stdio", "-device", "virtio-serial-pci"]);
            command.arg("-chardev").arg(format!("socket,id=channel,path={}", files.channel.display()));
            command.args(["-trace", nvme_trace::EVENT, "-D"]).arg(&files.trace);
            command.args(["-device", "virtserialport,chardev=channel,name=plumb"]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        }
        command.args(drives);
        command
    }
}
