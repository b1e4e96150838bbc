//! Commands about devices to the driver, with the types of this module.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use plumb_block::{Nanos, retry_until};
use plumb_linux::ublk::{Control, ControlOp};
use rustix::io::Errno as Os;

use super::wire::{INFO_BYTES, Info, PARAMETERS_BYTES, Parameters, UPDATE_SIZE};
use crate::error::{ExportError, Result, at};

/// Mark of this program's devices, which the driver does not interpret: "plumb" and a version.
pub(super) const MARK: u64 = 0x0001_706c_756d_6200;
/// Timeout for the last requests of a device being stopped.
const STOP_WITHIN: Duration = Duration::from_secs(60);
/// Timeout for programs that only probe a disappearing block device (udev).
const DELETE_WITHIN: Duration = Duration::from_secs(5);
/// Maximum time for the kernel to notice a dead server: it checks every 30 s if all requests were in flight.
const DEAD_WITHIN: Nanos = Nanos::secs(90);

/// The driver.
pub(super) struct Driver(pub(super) Control);

impl Driver {
    /// Opens the driver.
    pub(super) fn open() -> Result<Self> {
        match Control::open() {
            Ok(control) => Ok(Self(control)),
            Err(error) if is(&error, &[Os::NOENT, Os::NODEV, Os::NXIO]) => Err(ExportError::NoDriver(error)),
            Err(error) => Err(at("use", "/dev/ublk-control".as_ref())(error)),
        }
    }

    /// Returns the driver's information about device `number`; `None` if it does not exist.
    pub(super) fn info(&mut self, number: u32) -> Result<Option<Info>> {
        let mut bytes = [0; INFO_BYTES];
        match self.0.command(ControlOp::GetInfo, number, 0, &mut bytes) {
            Err(error) if is(&error, &[Os::NODEV]) => Ok(None),
            outcome => {
                outcome.map(|()| Some(Info::parse(&bytes))).map_err(at("ask about", &char_path(number)))
            }
        }
    }

    /// Returns the parameters of device `number`.
    pub(super) fn parameters(&mut self, number: u32) -> Result<Parameters> {
        let mut bytes = Parameters::question();
        let asked: &mut [u8; PARAMETERS_BYTES] = &mut bytes;
        self.0
            .command(ControlOp::GetParameters, number, 0, asked)
            .map_err(at("ask for the parameters of", &char_path(number)))?;
        Ok(Parameters::parse(&bytes))
    }

    /// Adds a device. Returns the accepted version of `wanted`, with its number.
    pub(super) fn add(&mut self, wanted: &Info) -> Result<Info> {
        let mut bytes = wanted.bytes();
        self.0
            .command(ControlOp::AddDevice, wanted.number, 0, &mut bytes)
            .map_err(at("add a device through", "/dev/ublk-control".as_ref()))?;
        Ok(Info::parse(&bytes))
    }

    pub(super) fn set_parameters(&mut self, number: u32, parameters: &Parameters) -> Result<()> {
        let mut bytes = parameters.bytes();
        self.0
            .command(ControlOp::SetParameters, number, 0, &mut bytes)
            .map_err(at("set the parameters of", &char_path(number)))
    }

    /// Resizes the block device to this many units of 512 bytes.
    pub(super) fn update_size(&mut self, number: u32, sectors: u64) -> Result<()> {
        let updated = match self.0.features() & UPDATE_SIZE {
            0 => Err(io::Error::new(io::ErrorKind::Unsupported, "that takes Linux 6.16")),
            _ => self.0.command(ControlOp::UpdateSize, number, sectors, &mut []),
        };
        updated.map_err(at("give its new size to", &block_path(number)))
    }

    /// Creates the block device. All queues must have been offered.
    pub(super) fn start(&mut self, number: u32) -> Result<()> {
        let server = std::process::id().into();
        self.0
            .command(ControlOp::StartDevice, number, server, &mut [])
            .map_err(at("start", &block_path(number)))
    }

    /// Removes the block device after requests in flight were answered; remaining users get EIO.
    pub(super) fn stop(&mut self, number: u32) -> Result<()> {
        match self.0.command_within(ControlOp::StopDevice, number, STOP_WITHIN) {
            Ok(true) => Ok(()),
            Ok(false) => Err(at("stop", &block_path(number))(io::Error::from(io::ErrorKind::TimedOut))),
            Err(error) if is(&error, &[Os::NODEV]) => Ok(()),
            Err(error) => Err(at("stop", &block_path(number))(error)),
        }
    }

    /// Deletes the device completely.
    pub(super) fn delete(&mut self, number: u32) -> Result<()> {
        match self.0.command_within(ControlOp::DeleteDevice, number, DELETE_WITHIN) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ExportError::Lingers { device: block_path(number) }),
            Err(error) if is(&error, &[Os::NODEV]) => Ok(()),
            Err(error) => Err(at("delete", &block_path(number))(error)),
        }
    }

    /// Starts taking over, after the kernel has noticed that the previous server is dead.
    pub(super) fn begin_recovery(&mut self, number: u32) -> Result<()> {
        let outcome = patiently(|| self.0.command(ControlOp::StartRecovery, number, 0, &mut []));
        outcome.map_err(at("begin to take over", &block_path(number)))
    }

    /// Completes taking over: waiting requests are reissued. All queues must have been offered.
    pub(super) fn end_recovery(&mut self, number: u32) -> Result<()> {
        let server = std::process::id().into();
        self.0
            .command(ControlOp::EndRecovery, number, server, &mut [])
            .map_err(at("take over", &block_path(number)))
    }
}

/// Retries on EBUSY for as long as the kernel may take to notice a dead server.
pub(super) fn patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let outcome = retry_until(DEAD_WITHIN, || match attempt() {
        Err(error) if is(&error, &[Os::BUSY]) => None,
        outcome => Some(outcome),
    });
    outcome.unwrap_or_else(|| Err(Os::BUSY.into()))
}

/// Returns `/dev/ublkbN`, the block device.
pub(super) fn block_path(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/ublkb{number}"))
}

/// Returns `/dev/ublkcN`, the server's side.
pub(super) fn char_path(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/ublkc{number}"))
}

/// Returns true if `error` is one of `errnos`.
pub(super) fn is(error: &io::Error, errnos: &[Os]) -> bool {
    errnos.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
