//! `/dev/ublk-control`: commands on a ring that add, start, stop, take over and delete devices.

#![expect(unsafe_code, reason = "commands carry the addresses of buffers")]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use plumb_block::{Bytes, Clock as _, Nanos, RealClock};
use rustix::fs::{Mode, OFlags};

use super::command::{self, ControlOp, Numbering};

/// Size of `struct ublksrv_ctrl_dev_info` in bytes.
const INFO_BYTES: usize = 64;
/// Entries of the ring. Commands are sent one at a time, but abandoned ones may still occupy entries.
const ENTRIES: u32 = 8;

/// The control device.
pub struct Control {
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    file: OwnedFd,
    numbering: Numbering,
    features: u64,
    /// Number of the last command.
    sent: u64,
}

impl Control {
    /// Opens `/dev/ublk-control`.
    ///
    /// # Errors
    /// Fails as open(2) does: ENOENT without the driver; or as io_uring_setup(2) does: EPERM if io_uring is
    /// forbidden.
    pub fn open() -> io::Result<Self> {
        let file = rustix::fs::open("/dev/ublk-control", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let ring = IoUring::builder().dontfork().build(ENTRIES)?;
        let mut control = Self { ring, file, numbering: Numbering::Ioctl, features: 0, sent: 0 };
        let mut features = [0; 8];
        // A driver without this command (new in Linux 6.5) supports the plain command numbers.
        match control.command(ControlOp::GetFeatures, 0, 0, &mut features) {
            Ok(()) => control.features = u64::from_ne_bytes(features),
            Err(_) => control.numbering = Numbering::Plain,
        }
        Ok(control)
    }

    /// Returns the features that the driver reports (`UBLK_F_`); none before Linux 6.5, which has no such
    /// query.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// Sends a command for device `number` with `argument`, and waits for its end. `buffer` is sent, and
    /// updated by the driver.
    ///
    /// # Errors
    /// Fails as the driver does; EINVAL for a buffer of more than 65535 bytes.
    pub fn command(
        &mut self,
        op: ControlOp,
        number: u32,
        argument: u64,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        let answered = self.send(op, number, argument, buffer, None)?;
        if answered { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    }

    /// Sends a command for device `number` without argument or buffer, and waits at most `patience`; returns
    /// true if it has ended. Otherwise it continues in the kernel.
    ///
    /// # Errors
    /// Fails as the driver does.
    pub fn command_within(&mut self, op: ControlOp, number: u32, patience: Duration) -> io::Result<bool> {
        self.send(op, number, 0, &mut [], Some(patience.into()))
    }

    fn send(
        &mut self,
        op: ControlOp,
        number: u32,
        argument: u64,
        buffer: &mut [u8],
        patience: Option<Nanos>,
    ) -> io::Result<bool> {
        let invalid = |_| io::Error::from_raw_os_error(libc::EINVAL);
        let length = u16::try_from(buffer.len()).map_err(invalid)?;
        // Separate memory, so that the kernel never writes into the caller's buffer after the wait was
        // abandoned.
        let mut memory: Box<[u8]> = Box::from(&*buffer);
        let address = if memory.is_empty() { 0 } else { memory.as_mut_ptr().expose_provenance() as u64 };
        self.sent += 1;
        let bytes = command::control(number, address, length, argument);
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), op.number(self.numbering))
            .cmd(bytes)
            .build()
            .user_data(self.sent);
        // SAFETY: the command refers only to `memory`, which is as long as the command says and lives until
        // the command has ended, or for ever.
        unsafe { self.ring.submission().push(&entry) }.map_err(|full| io::Error::other(full.to_string()))?;
        match self.wait(patience) {
            Ok(Some(result)) => {
                buffer.copy_from_slice(&memory);
                if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(true) }
            }
            unanswered => {
                std::mem::forget(memory);
                unanswered.map(|_| false)
            }
        }
    }

    /// Waits for the command that was sent last; none if it takes longer.
    fn wait(&mut self, patience: Option<Nanos>) -> io::Result<Option<i32>> {
        let clock = RealClock::start();
        loop {
            let answer = self.ring.completion().find(|answer| answer.user_data() == self.sent);
            if let Some(answer) = answer {
                return Ok(Some(answer.result()));
            }
            let left = patience.map(|patience| patience.since(clock.now()));
            if left == Some(Nanos::ZERO) {
                return Ok(None);
            }
            let entered = match left.map(|left| Timespec::from(Duration::from(left))) {
                Some(left) => self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&left)),
                None => self.ring.submit_and_wait(1),
            };
            match entered.map_err(|error| (error.raw_os_error(), error)) {
                Ok(_) | Err((Some(libc::EINTR | libc::ETIME | libc::EAGAIN), _)) => {}
                Err((_, error)) => return Err(error),
            }
        }
    }
}

/// `/dev/ublkcN`, which only one process at a time may have open, with the device's shape as accepted by the
/// driver.
#[derive(Debug)]
pub struct CharDevice {
    file: OwnedFd,
    pub(super) numbering: Numbering,
    number: u32,
    queues: u16,
    depth: u16,
    request_max: u32,
}

impl CharDevice {
    /// Opens the character device of device `number`.
    ///
    /// # Errors
    /// Fails as open(2) does: EBUSY while another process has it open; or as the driver's query of the device
    /// does.
    pub fn open(control: &mut Control, number: u32) -> io::Result<Self> {
        let mut info = [0; INFO_BYTES];
        control.command(ControlOp::GetInfo, number, 0, &mut info)?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(format!("/dev/ublkc{number}"), flags, Mode::empty())?;
        Ok(Self {
            file,
            numbering: control.numbering,
            number,
            queues: u16::from_ne_bytes([info[0], info[1]]),
            depth: u16::from_ne_bytes([info[2], info[3]]),
            request_max: u32::from_ne_bytes([info[8], info[9], info[10], info[11]]),
        })
    }

    /// Returns the number of the device.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the number of queues.
    pub fn queues(&self) -> u16 {
        self.queues
    }

    /// Returns the number of tags of each queue.
    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// Returns the maximum data of a request, which memory lent to a queue must hold.
    pub fn request_max(&self) -> Bytes {
        Bytes(self.request_max.into())
    }
}

impl AsFd for CharDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_the_driver_has_no_control_device() {
        if std::path::Path::new("/dev/ublk-control").exists() {
            return plumb_testkit::skip("the driver is here");
        }
        let refused = Control::open().err().map(|error| error.kind());
        assert_eq!(refused, Some(io::ErrorKind::NotFound));
    }
}
