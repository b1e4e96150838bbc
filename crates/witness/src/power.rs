//! Power switches, which take the power from the machine or the drive under test and restore it. Each is
//! labelled with the kind of cut that it makes.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_block::in_one_line;
use plumb_linux::child::{self, EndedBy, Limits};
use plumb_report::printable::shell_line;
use plumb_serve::named::control::{Order, give};
use plumb_targets::served_drive::{DriveOrder, DriveStatus};

use crate::error::{Error, Result, cannot};

/// Time limit of a switch, in seconds.
const SWITCH_SECONDS: u32 = 120;
/// Time limit of a command that resets its own machine, in seconds: no answer comes.
const RESET_SECONDS: u32 = 5;
const SYSRQ: &str = "echo 1 > /proc/sys/kernel/sysrq && echo b > /proc/sysrq-trigger";

/// Machine on which the writer and the verification run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Words before a command that is run there, such as `ssh host`, which takes the command as one shell
    /// word. Empty for this machine.
    pub launcher: Vec<String>,
    /// Path of plumb on that machine.
    pub program: String,
}

impl Machine {
    /// Returns the words that run a command on the machine.
    pub fn command(&self, words: &[String]) -> Vec<String> {
        if self.launcher.is_empty() {
            return words.to_vec();
        }
        [&self.launcher[..], &[shell_line(words)]].concat()
    }
}

/// Switch that takes the power from a drive or its machine, and restores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerSwitch {
    /// Description of the switch for reports.
    pub words: &'static str,
    /// True if drives lose their power. For the user's commands this is assumed.
    pub is_power_cut: bool,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// Commands run on this machine: one that cuts, and one that restores the power if that needs a command.
    Commands(Vec<String>, Option<Vec<String>>),
    /// Command that does not return, since its machine resets.
    Reset(Vec<String>),
    /// Served simulated drive: the directory of control sockets, and the name of the drive.
    Drive(PathBuf, String),
    /// Human monitor of QEMU at a unix socket.
    Qemu(PathBuf),
}

impl PowerSwitch {
    /// Creates a switch from the user's commands, which the shell runs on this machine.
    pub fn commands(cut: &str, power_on: Option<&str>) -> Self {
        let shell = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
        Self {
            words: "power cut by a command; plumb does not see whether the drive lost its power",
            is_power_cut: true,
            kind: Kind::Commands(shell(cut), power_on.map(shell)),
        }
    }

    /// Parses a switch as the user types it: `ipmi:USER@HOST` (with the password in `IPMI_PASSWORD`),
    /// `sysrq`, `drive:NAME`, `qemu:SOCKET`. The control sockets of drives are in `directory`.
    ///
    /// # Errors
    /// The expected form; also a switch that would take the power from this machine, which is the witness.
    pub fn typed(typed: &str, machine: &Machine, directory: PathBuf) -> Result<Self> {
        let ipmi = |user: &str, host: &str, power: &str| {
            let words =
                ["ipmitool", "-I", "lanplus", "-H", host, "-U", user, "-E", "chassis", "power", power];
            words.map(str::to_owned).to_vec()
        };
        let (kind, rest) = typed.split_once(':').unwrap_or((typed, ""));
        let (words, is_power_cut, kind) = match (kind, rest, rest.split_once('@')) {
            ("ipmi", _, Some((user, host))) => (
                "chassis power off and on through IPMI",
                true,
                Kind::Commands(ipmi(user, host, "off"), Some(ipmi(user, host, "on"))),
            ),
            ("drive", name, _) if !name.is_empty() => {
                ("power cut of a simulated drive", true, Kind::Drive(directory, name.to_owned()))
            }
            ("sysrq", "", _) => (
                "reboot through sysrq, not a power cut: the drive keeps its power and its cache",
                false,
                Kind::Reset(machine.command(&["sh", "-c", SYSRQ].map(str::to_owned))),
            ),
            ("qemu", socket, _) if !socket.is_empty() => (
                "reset of a virtual machine, not a power cut: the host keeps what it was given",
                false,
                Kind::Qemu(socket.into()),
            ),
            _ => {
                let expected = "expected ipmi:USER@HOST, sysrq, drive:NAME or qemu:SOCKET";
                return Err(Error::usage(format!("--power `{typed}`: {expected}")));
            }
        };
        let switch = Self { words, is_power_cut, kind };
        if machine.launcher.is_empty() && !switch.can_aim() {
            return Err(Error::usage(
                "--power: this would cut the power of a machine, and this machine is the witness; --on says \
                 how to start a command on the machine under test",
            ));
        }
        Ok(switch)
    }

    /// Returns true if the switch cuts a drive alone, so that the cut may be aimed at a command.
    pub const fn can_aim(&self) -> bool {
        matches!(self.kind, Kind::Drive(..))
    }

    /// Cuts the power: now, or for a simulated drive at the moment `aim`.
    ///
    /// # Errors
    /// If the switch fails. The state of the power is unknown then.
    pub fn cut(&self, aim: Option<&str>) -> Result<()> {
        match &self.kind {
            Kind::Commands(cut, _) => succeeds(cut),
            // The reset is complete when the machine is gone; how the connection ends does not matter.
            Kind::Reset(command) => runs(command, RESET_SECONDS).map(drop),
            Kind::Drive(..) => {
                self.order(DriveOrder::Cut { when: aim.unwrap_or("now").to_owned() }).map(drop)
            }
            Kind::Qemu(socket) => {
                let failed = cannot(format!("reset the machine at {}", socket.display()));
                let mut monitor = UnixStream::connect(socket).map_err(&failed)?;
                let timeout = Duration::from_secs(RESET_SECONDS.into());
                monitor.set_read_timeout(Some(timeout)).map_err(&failed)?;
                monitor.write_all(b"system_reset\n").map_err(&failed)?;
                // The monitor answers with its prompt once it has read the line.
                monitor.read(&mut [0; 256]).map(drop).map_err(&failed)
            }
        }
    }

    /// Cancels a pending cut, and restores the power where that is not part of the cut. Also called while the
    /// power is on.
    ///
    /// # Errors
    /// If the switch fails.
    pub fn power_on(&self) -> Result<()> {
        match &self.kind {
            Kind::Commands(_, Some(power_on)) => succeeds(power_on),
            Kind::Drive(..) if self.order(DriveOrder::Disarm)?.power => Ok(()),
            Kind::Drive(..) => self.order(DriveOrder::PowerOn).map(drop),
            _ => Ok(()),
        }
    }

    /// Returns true if the power is off according to the switch. A switch that cannot tell is assumed to have
    /// worked.
    ///
    /// # Errors
    /// If the drive does not answer.
    pub fn is_off(&self) -> Result<bool> {
        Ok(!self.can_aim() || !self.give(&Order::Status)?.power)
    }

    fn order(&self, order: DriveOrder) -> Result<DriveStatus> {
        self.give(&Order::Own(order))
    }

    fn give(&self, order: &Order<DriveOrder>) -> Result<DriveStatus> {
        let Kind::Drive(directory, name) = &self.kind else {
            return Err(Error::not_measured("it is not a simulated drive"));
        };
        give(directory, name, order).map_err(|error| Error::not_measured(in_one_line(&error)))
    }
}

fn succeeds(words: &[String]) -> Result<()> {
    match runs(words, SWITCH_SECONDS)? {
        true => Ok(()),
        false => Err(Error::not_measured(format!("the power switch failed: `{}`", shell_line(words)))),
    }
}

/// Runs a command. Returns true if it succeeded in time.
fn runs(words: &[String], seconds: u32) -> Result<bool> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
    let timeout = Some(Duration::from_secs(seconds.into()));
    // The command is never interrupted, since that would leave the power in an unknown state. Processes that
    // it starts, such as a machine, may remain.
    let (never, grace) = (AtomicBool::new(false), Duration::from_secs(1));
    let limits = Limits { timeout, stop: &[&never], grace, kills_leftovers: false };
    let ended = child::run(command, Vec::new(), limits).map_err(cannot(format!("run {}", words[0])))?;
    Ok(ended.by == EndedBy::Itself && ended.status.success())
}
