//! Loop devices: a file as a block device of the kernel, by the ioctls of `loop(4)`
//! (include/uapi/linux/loop.h).
//!
//! A device created here uses direct I/O and vanishes with its last opener (`LO_FLAGS_AUTOCLEAR`). The owner
//! of a [`LoopDevice`] is such an opener, so a killed process leaves no loop device behind, unless another
//! user (a mounted file system) still has it open.
//!
//! The settings are read back, because the kernel may silently leave direct I/O off.
//!
//! Calls that may wait for the file run on an [isolated thread](crate::isolated_thread), since this process
//! may be the one that serves the file.

#![expect(unsafe_code, reason = "ioctl passes untyped pointers to the kernel")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use plumb_block::Bytes;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};
use rustix::io::DupFlags;

use crate::block_ioctl::forget_cache;
use crate::isolated_thread::{self, IsolatedThread};

const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
const LOOP_SET_CAPACITY: libc::Ioctl = 0x4C07;
/// Request to set file, block size and flags in one step, since Linux 5.8.
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const BLKROSET: libc::Ioctl = 0x125D;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;

const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// Maximum number of times that another process may take the free device first.
const RACES_MAX: u32 = 64;
const NAME_BYTES: usize = 64;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; NAME_BYTES],
    crypt_name: [u8; NAME_BYTES],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopInfo64>() == 232 && size_of::<LoopConfig>() == 304);

impl LoopInfo64 {
    const EMPTY: Self = Self {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: 0,
        file_name: [0; NAME_BYTES],
        crypt_name: [0; NAME_BYTES],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
}

/// An open loop device.
#[derive(Debug)]
pub struct LoopDevice {
    number: u32,
    file: OwnedFd,
}

impl LoopDevice {
    /// Binds a free loop device to the file `backing`, with direct I/O, logical blocks of `block`, and
    /// automatic removal after the last close. losetup(8) shows `label`, cut to 63 bytes, as the file name.
    /// The descriptor gets the number of `place`.
    ///
    /// # Errors
    /// Fails as open(2) and ioctl(2) do; [`Unsupported`](io::ErrorKind::Unsupported) if the kernel left
    /// direct I/O off, since it would then cache and merge writes; EBUSY if no device stayed free for long
    /// enough.
    pub fn bind(backing: PathBuf, block: Bytes, label: String, place: OwnedFd) -> io::Result<Self> {
        let (keep, kept) = sync_channel::<()>(0);
        let bound = isolated_thread::start(move |answer| {
            let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
            let backing = rustix::fs::open(&backing, flags, Mode::empty())?;
            let device = Self::bind_free(backing.as_fd(), block, &label)?;
            answer(device.number);
            // Stay open until the device is open on the other side, or has failed there: the last close
            // unbinds it.
            kept.recv().unwrap_or_default();
            Ok(())
        })?;
        let device = Self::open(bound.wait()?).and_then(|device| device.moved_to(place));
        drop(keep);
        device
    }

    fn bind_free(backing: BorrowedFd<'_>, block: Bytes, label: &str) -> io::Result<Self> {
        let control = rustix::fs::open("/dev/loop-control", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        for _ in 0..RACES_MAX {
            let device = Self::open(free_number(control.as_fd())?)?;
            match device.configure(backing, block, label) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    device.check_flags()?;
                    return Ok(device);
                }
            }
        }
        Err(io::Error::from_raw_os_error(libc::EBUSY))
    }

    /// Opens `/dev/loopN`, whatever file it is bound to.
    ///
    /// # Errors
    /// Fails as open(2) does.
    pub fn open(number: u32) -> io::Result<Self> {
        let file = rustix::fs::open(path_of(number), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { number, file })
    }

    /// Returns the N of `/dev/loopN`.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns `/dev/loopN`.
    pub fn path(&self) -> PathBuf {
        path_of(self.number)
    }

    /// Moves the device to the descriptor `place`, whose number it takes.
    fn moved_to(self, mut place: OwnedFd) -> io::Result<Self> {
        rustix::io::dup3(&self.file, &mut place, DupFlags::CLOEXEC)?;
        Ok(Self { number: self.number, file: place })
    }

    /// Unbinds the file: at once, or, if others have the device open, after their last close.
    ///
    /// # Errors
    /// Fails as ioctl(2) does; ENXIO if no file is bound.
    pub fn clear(&self) -> io::Result<()> {
        // SAFETY: LOOP_CLR_FD takes no argument.
        let answer = unsafe { libc::ioctl(self.file.as_raw_fd(), LOOP_CLR_FD, 0) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Sets the device to the current size of its file `backing`. A file system that caches sizes is made to
    /// refresh it.
    ///
    /// # Errors
    /// Fails as statx(2) and ioctl(2) do.
    pub fn follow_size(&self, backing: PathBuf) -> io::Result<()> {
        let number = self.number;
        let followed = isolated_thread::start(move |answer| {
            rustix::fs::statx(CWD, &backing, AtFlags::STATX_FORCE_SYNC, StatxFlags::SIZE)?;
            let device = Self::open(number)?;
            // SAFETY: LOOP_SET_CAPACITY takes no argument.
            let done = unsafe { libc::ioctl(device.file.as_raw_fd(), LOOP_SET_CAPACITY, 0) };
            if done < 0 {
                return Err(io::Error::last_os_error());
            }
            answer(());
            Ok(())
        })?;
        followed.wait()
    }

    /// Starts to write back the block device's dirty cached data and to flush it, as fsync(2) does.
    ///
    /// # Errors
    /// If the thread cannot be created.
    pub fn sync(&self) -> io::Result<IsolatedThread<()>> {
        let number = self.number;
        isolated_thread::start(move |answer| {
            rustix::fs::fsync(Self::open(number)?.file)?;
            answer(());
            Ok(())
        })
    }

    /// Closes the device on another thread, because the last close writes dirty data and waits for it.
    ///
    /// # Errors
    /// If the thread cannot be created or cannot open the device; the device is closed all the same.
    pub fn close(self) -> io::Result<()> {
        let number = self.number;
        let (go, gone) = sync_channel::<()>(0);
        let opened = isolated_thread::start(move |answer| {
            let device = Self::open(number)?;
            answer(());
            gone.recv().unwrap_or_default();
            drop(device);
            Ok(())
        })?;
        let outcome = opened.wait();
        drop(self);
        drop(go);
        outcome
    }

    /// Writes the block device's dirty cached data, as far as it can be written, then drops the cache and any
    /// pending write error.
    ///
    /// # Errors
    /// Fails as ioctl(2) does.
    pub fn drop_cache(&self) -> io::Result<()> {
        let number = self.number;
        let dropped = isolated_thread::start(move |answer| {
            let device = Self::open(number)?;
            forget_cache(&device.file)?;
            // Data that could not be written is dropped, but the kernel keeps the error for the next caller
            // of fsync. The error is consumed here, where it is expected, so that it does not reach a caller
            // that has lost nothing.
            rustix::fs::fsync(&device.file).unwrap_or_default();
            answer(());
            Ok(())
        })?;
        dropped.wait()
    }

    fn configure(&self, backing: BorrowedFd<'_>, block: Bytes, label: &str) -> io::Result<()> {
        let invalid = |_| io::Error::from_raw_os_error(libc::EINVAL);
        let mut info = LoopInfo64 { flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO, ..LoopInfo64::EMPTY };
        let label = &label.as_bytes()[..label.len().min(NAME_BYTES - 1)];
        info.file_name[..label.len()].copy_from_slice(label);
        let config = LoopConfig {
            fd: u32::try_from(backing.as_raw_fd()).map_err(invalid)?,
            block_size: u32::try_from(block.0).map_err(invalid)?,
            info,
            reserved: [0; 8],
        };
        // SAFETY: LOOP_CONFIGURE reads one loop_config through the pointer, which is valid for the call.
        let answer = unsafe { libc::ioctl(self.file.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        // A device that was set read-only stays so after it is unbound.
        let writable: libc::c_int = 0;
        // SAFETY: BLKROSET reads one int through the pointer, which is valid for the call.
        let answer = unsafe { libc::ioctl(self.file.as_raw_fd(), BLKROSET, &raw const writable) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn check_flags(&self) -> io::Result<()> {
        let mut info = LoopInfo64::EMPTY;
        // SAFETY: LOOP_GET_STATUS64 writes one loop_info64 through the pointer, which is valid for the call.
        let answer = unsafe { libc::ioctl(self.file.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        let wanted = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
        if info.flags & wanted == wanted {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the kernel set the flags {:#x}, but {wanted:#x} were requested", info.flags),
        ))
    }
}

impl AsFd for LoopDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn path_of(number: u32) -> PathBuf {
    Path::new("/dev").join(format!("loop{number}"))
}

fn free_number(control: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: LOOP_CTL_GET_FREE takes no argument and returns a number.
    let answer = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE, 0) };
    u32::try_from(answer).map_err(|_| io::Error::last_os_error())
}
