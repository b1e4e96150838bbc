//! Power switches: what takes the power from the machine or the drive under test and gives it back, each
//! labelled as what it is.

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

/// Number of seconds that a switch may take.
const SWITCH_SECONDS: u32 = 120;
/// How many to wait for a machine that is told to reset itself: no answer comes.
const RESET_SECONDS: u32 = 5;
const SYSRQ: &str = "echo 1 > /proc/sys/kernel/sysrq && echo b > /proc/sysrq-trigger";

/// Where the writer and the verification run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The words before a command that is run there, such as `ssh host`, which takes the command as one shell
    /// word; none here.
    pub launcher: Vec<String>,
    /// Where plumb is there.
    pub program: String,
}

impl Machine {
    /// Returns the words that run a command there.
    pub fn command(&self, words: &[String]) -> Vec<String> {
        if self.launcher.is_empty() {
            return words.to_vec();
        }
        [&self.launcher[..], &[shell_line(words)]].concat()
    }
}

/// Switch that takes the power from a drive or its machine, and gives it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerSwitch {
    /// Description of what the switch does, in words for reports.
    pub words: &'static str,
    /// True if drives lose their power by it; not known of a command, which is taken at its word.
    pub is_power_cut: bool,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// Commands on this machine: one that cuts, and one that gives the power back if that takes one.
    Commands(Vec<String>, Option<Vec<String>>),
    /// A command that does not return, for its machine is gone.
    Reset(Vec<String>),
    /// A simulated drive that is served: the directory of control sockets, and its name.
    Drive(PathBuf, String),
    /// The human monitor of QEMU at a unix socket.
    Qemu(PathBuf),
}

impl PowerSwitch {
    /// The user's own commands, run by the shell on this machine.
    pub fn commands(cut: &str, power_on: Option<&str>) -> Self {
        let shell = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
        Self {
            words: "power cut by a command; plumb does not see whether the drive lost its power",
            is_power_cut: true,
            kind: Kind::Commands(shell(cut), power_on.map(shell)),
        }
    }

    /// Parses the switch as it was typed: `ipmi:USER@HOST` (the password is in `IPMI_PASSWORD`), `sysrq`,
    /// `drive:NAME`, `qemu:SOCKET`. Drives have their sockets in `directory`.
    ///
    /// # Errors
    /// Expected form; and if this machine, which is the witness, would lose its power.
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

    /// Returns true if it is of a drive alone, and the cut may be aimed at a command of it.
    pub const fn can_aim(&self) -> bool {
        matches!(self.kind, Kind::Drive(..))
    }

    /// Cuts the power; of a simulated drive when `aim` says, else now.
    ///
    /// # Errors
    /// If the switch fails: then nobody knows whether there is power.
    pub fn cut(&self, aim: Option<&str>) -> Result<()> {
        match &self.kind {
            Kind::Commands(cut, _) => succeeds(cut),
            // The reset is over when the machine is gone, whatever became of the connection.
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

    /// Takes back a cut that waits for its moment, and gives the power back where that is not part of the
    /// cut. Done also where there is power already.
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

    /// Returns true if the power is off, where the switch tells; otherwise the switch is taken at its word.
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

/// Runs a command. Returns whether it succeeded in time.
fn runs(words: &[String], seconds: u32) -> Result<bool> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
    let timeout = Some(Duration::from_secs(seconds.into()));
    // A switch that is interrupted would leave the power as nobody knows. What it starts may stay, such as a
    // machine.
    let (never, grace) = (AtomicBool::new(false), Duration::from_secs(1));
    let limits = Limits { timeout, stop: &[&never], grace, kills_leftovers: false };
    let ended = child::run(command, Vec::new(), limits).map_err(cannot(format!("run {}", words[0])))?;
    Ok(ended.by == EndedBy::Itself && ended.status.success())
}
