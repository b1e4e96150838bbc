//! Power switches: what takes the power from the machine or the drive under test and gives it back, each labelled as what it is.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use plumb_report::printable::shell_line;
use plumb_serve::named::control::{Order, give};
use plumb_target::served_drive::{DriveOrder, DriveStatus};

use super::WitnessError;

/// How long a switch may take.
const SWITCH_TIMEOUT: Duration = Duration::from_secs(120);
/// How long to wait for a machine that is told to reset itself: no answer comes.
const RESET_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a killed process may take to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Where the writer and the verification run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The words before a command that is run there, such as `ssh host`, which takes the command as one shell word; none here.
    pub launcher: Vec<String>,
    /// Where plumb is there.
    pub program: String,
}

impl Machine {
    /// This command there.
    pub fn command(&self, program: &str, arguments: &[String]) -> Command {
        let Some((first, rest)) = self.launcher.split_first() else {
            let mut command = Command::new(program);
            command.args(arguments);
            return command;
        };
        let words = [&[program.to_owned()], arguments].concat();
        let mut command = Command::new(first);
        command.args(rest).arg(shell_line(&words));
        command
    }
}

/// A power switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerSwitch {
    /// The user's own commands, run by the shell on this machine; the second gives the power back, if that takes one.
    Command {
        /// Cuts the power.
        cut: String,
        /// Gives it back.
        power_on: Option<String>,
    },
    /// The machine's management controller, through ipmitool(1); the password is in `IPMI_PASSWORD`.
    Ipmi {
        /// Who logs in, and where.
        user: String,
        /// The controller.
        host: String,
    },
    /// The kernel of the machine under test is told to reboot at once (sysrq b).
    Sysrq,
    /// A simulated drive that is served.
    Drive {
        /// The directory of control sockets.
        directory: PathBuf,
        /// Its name.
        name: String,
    },
    /// The human monitor of QEMU at a unix socket.
    Qemu(PathBuf),
}

impl PowerSwitch {
    /// What was typed: `ipmi:USER@HOST`, `sysrq`, `drive:NAME`, `qemu:SOCKET`. Drives have their sockets in `directory`.
    ///
    /// # Errors
    /// What was expected.
    pub fn typed(typed: &str, directory: PathBuf) -> Result<Self, String> {
        let expected = || format!("`{typed}`: expected ipmi:USER@HOST, sysrq, drive:NAME or qemu:SOCKET");
        match typed.split_once(':').unwrap_or((typed, "")) {
            ("sysrq", "") => Ok(Self::Sysrq),
            ("ipmi", rest) => {
                let (user, host) = rest.split_once('@').ok_or_else(expected)?;
                Ok(Self::Ipmi { user: user.to_owned(), host: host.to_owned() })
            }
            ("drive", name) if !name.is_empty() => Ok(Self::Drive { directory, name: name.to_owned() }),
            ("qemu", socket) if !socket.is_empty() => Ok(Self::Qemu(socket.into())),
            _ => Err(expected()),
        }
    }

    /// What it does, in words for reports.
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Command { .. } => {
                "power cut by a command, of which plumb does not see whether the drive lost its power"
            }
            Self::Ipmi { .. } => "chassis power off and on through IPMI",
            Self::Sysrq => {
                "reboot through sysrq, which is no power cut: the drive keeps its power and its cache"
            }
            Self::Drive { .. } => "power cut of a simulated drive",
            Self::Qemu(_) => {
                "reset of a virtual machine, which is no power cut: the host keeps what it was given"
            }
        }
    }

    /// Whether drives lose their power by it; not known of a command, which is taken at its word.
    pub const fn is_power_cut(&self) -> bool {
        !matches!(self, Self::Sysrq | Self::Qemu(_))
    }

    /// Whether the cut may be aimed at a command of the drive.
    pub const fn can_aim(&self) -> bool {
        matches!(self, Self::Drive { .. })
    }

    /// Cuts the power; of a simulated drive when `aim` says, else now.
    ///
    /// # Errors
    /// If the switch fails: then nobody knows whether there is power.
    pub fn cut(&self, machine: &Machine, aim: Option<&str>) -> Result<(), WitnessError> {
        match self {
            Self::Command { cut, .. } => shell(cut),
            Self::Ipmi { user, host } => ipmi(user, host, "off"),
            Self::Sysrq => {
                let script = "echo 1 > /proc/sys/kernel/sysrq && echo b > /proc/sysrq-trigger".to_owned();
                // It is over when the machine is gone, whatever became of the connection.
                finish(machine.command("sh", &["-c".to_owned(), script]), RESET_TIMEOUT).map(drop)
            }
            Self::Drive { .. } => {
                self.order(DriveOrder::Cut { when: aim.unwrap_or("now").to_owned() }).map(drop)
            }
            Self::Qemu(socket) => {
                let failed = |error| WitnessError::io("reset the machine at", socket.display())(error);
                let mut monitor = UnixStream::connect(socket).map_err(failed)?;
                monitor.set_read_timeout(Some(RESET_TIMEOUT)).map_err(failed)?;
                monitor.write_all(b"system_reset\n").map_err(failed)?;
                // The monitor answers with its prompt once it has read the line.
                monitor.read(&mut [0; 256]).map(drop).map_err(failed)
            }
        }
    }

    /// Gives the power back, where that is not part of the cut. Done also where there is power already.
    ///
    /// # Errors
    /// If the switch fails.
    pub fn power_on(&self) -> Result<(), WitnessError> {
        match self {
            Self::Command { power_on: Some(command), .. } => shell(command),
            Self::Ipmi { user, host } => ipmi(user, host, "on"),
            Self::Drive { .. } if self.status()?.power => Ok(()),
            Self::Drive { .. } => self.order(DriveOrder::PowerOn).map(drop),
            Self::Command { .. } | Self::Sysrq | Self::Qemu(_) => Ok(()),
        }
    }

    /// Takes back a cut that waits for its moment.
    ///
    /// # Errors
    /// If the drive does not answer.
    pub fn disarm(&self) -> Result<(), WitnessError> {
        if self.can_aim() { self.order(DriveOrder::Disarm).map(drop) } else { Ok(()) }
    }

    /// Whether the power is off, where the switch tells; else it is taken at its word.
    ///
    /// # Errors
    /// If the drive does not answer.
    pub fn is_off(&self) -> Result<bool, WitnessError> {
        if self.can_aim() { self.status().map(|status| !status.power) } else { Ok(true) }
    }

    fn status(&self) -> Result<DriveStatus, WitnessError> {
        self.give(&Order::Status)
    }

    fn order(&self, order: DriveOrder) -> Result<DriveStatus, WitnessError> {
        self.give(&Order::Own(order))
    }

    fn give(&self, order: &Order<DriveOrder>) -> Result<DriveStatus, WitnessError> {
        let Self::Drive { directory, name } = self else {
            return Err(WitnessError::Other("it is no simulated drive".to_owned()));
        };
        give(directory, name, order).map_err(|error| WitnessError::Other(plumb_block::in_one_line(&error)))
    }
}

fn shell(command: &str) -> Result<(), WitnessError> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    done(shell, command)
}

fn ipmi(user: &str, host: &str, power: &str) -> Result<(), WitnessError> {
    let mut command = Command::new("ipmitool");
    command.args(["-I", "lanplus", "-H", host, "-U", user, "-E", "chassis", "power", power]);
    done(command, &format!("ipmitool chassis power {power}"))
}

fn done(command: Command, shown: &str) -> Result<(), WitnessError> {
    match finish(command, SWITCH_TIMEOUT) {
        Ok(true) => Ok(()),
        Ok(false) => Err(WitnessError::Other(format!("the power switch failed: `{shown}`"))),
        Err(error) => Err(error),
    }
}

/// Runs a command to its end; whether it succeeded in time.
fn finish(mut command: Command, within: Duration) -> Result<bool, WitnessError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let mut child = spawned.map_err(WitnessError::io("run", program))?;
    let end = Instant::now() + within;
    loop {
        match child.try_wait().map_err(WitnessError::io("wait for", "the power switch"))? {
            Some(status) => return Ok(status.success()),
            None if Instant::now() >= end => {
                killed(&mut child);
                return Ok(false);
            }
            None => thread::sleep(LOOK_EVERY),
        }
    }
}

/// Kills a process. One that the kernel holds in a request to a dead drive is left to it.
pub(super) fn killed(child: &mut Child) {
    child.kill().unwrap_or_default();
    let end = Instant::now() + KILL_TIMEOUT;
    while child.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < end {
        thread::sleep(LOOK_EVERY);
    }
}
