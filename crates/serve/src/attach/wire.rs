//! The part of the FUSE protocol that serves a device's file and a control file (include/uapi/linux/fuse.h,
//! version 7): requests in the kernel's format, with all lengths checked, and replies.
//!
//! ```text
//! request  0 length u32 | 4 opcode u32 | 8 unique u64 | 16 node u64 | 24 uid, gid, pid u32 | 36 extensions, 0 u16
//!          40 arguments of the opcode, up to 40 bytes | 80 the rest of the arguments, or the payload of a write
//! reply    0 length u32 | 4 error i32, 0 or -errno | 8 unique u64 | 16 answer
//! ```
//! Numbers are in native byte order. With rings, the parts have separate locations.

use plumb_block::Errno;
use plumb_linux::fuse_ring::RingRequest;

/// Length of the request header and arguments; a write's payload follows.
pub(super) const HEAD_BYTES: usize = 80;
const HEADER_BYTES: usize = 40;
/// Protocol version used here; the kernel may support a newer one.
pub(super) const MAJOR: u32 = 7;
/// Minor version of Linux 6.2, the first with parallel direct writes.
pub(super) const MINOR: u32 = 38;

pub(super) const ROOT: u64 = 1;
pub(super) const DISK: u64 = 2;
pub(super) const CONTROL: u64 = 3;
/// The name of the device's file.
pub(super) const DISK_NAME: &str = "disk";
/// Name of the control file.
pub(super) const CONTROL_NAME: &str = "control";

/// `FUSE_ASYNC_READ`: reads need not be serialized.
pub(super) const ASYNC_READ: u64 = 1;
/// `FUSE_BIG_WRITES`: writes of more than a page.
pub(super) const BIG_WRITES: u64 = 1 << 5;
/// `FUSE_ASYNC_DIO`: asynchronous direct I/O is asynchronous.
pub(super) const ASYNC_DIO: u64 = 1 << 15;
/// `FUSE_MAX_PAGES`: requests of more than 32 pages.
pub(super) const MAX_PAGES: u64 = 1 << 22;
/// `FUSE_INIT_EXT | FUSE_OVER_IO_URING`: requests arrive through rings.
pub(super) const OVER_RING: u64 = 1 << 30 | 1 << 41;
/// `FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES`: no page cache, and parallel writes.
const OPEN_FLAGS: u32 = 1 | 1 << 6;
/// `FOPEN_DIRECT_IO | FOPEN_NONSEEKABLE`: each write(2) arrives separately, before it returns.
const OPEN_FLAGS_CONTROL: u32 = 1 | 1 << 2;

/// `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`: the range reads as zeroes and need not keep its space.
pub(super) const PUNCH: u32 = 0x3;
/// `FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE`: the range reads as zeroes and keeps its space.
pub(super) const ZERO: u32 = 0x11;
pub(super) const SEEK_DATA: u32 = 3;
pub(super) const SEEK_HOLE: u32 = 4;

/// Byte range in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// Request of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call<'a> {
    Init {
        major: u32,
        minor: u32,
        /// Flags; those from bit 32 on are announced by `FUSE_INIT_EXT`.
        flags: u64,
    },
    Lookup {
        name: &'a [u8],
    },
    /// No reply is expected.
    Forget,
    Getattr,
    Setattr,
    Open,
    Read(Span),
    Write(Span),
    Statfs,
    Release,
    Fsync,
    Readdir {
        offset: u64,
        size: u32,
    },
    Fallocate {
        span: Span,
        mode: u32,
    },
    Lseek {
        offset: u64,
        whence: u32,
    },
    /// Unsupported operation.
    Other,
}

/// A request with its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// Number of the request, to repeat in the reply.
    pub(super) unique: u64,
    pub(super) node: u64,
    /// Operation; `None` if the arguments have a wrong length.
    pub(super) call: Option<Call<'a>>,
}

/// Parses a request of `received` bytes, which starts in `head`. `None` if the header is incomplete or states
/// another length.
pub(super) fn parse(head: &[u8; HEAD_BYTES], received: usize) -> Option<Frame<'_>> {
    let length = u32_at(head, 0)? as usize;
    if received < HEADER_BYTES || length != received {
        return None;
    }
    let call = call(u32_at(head, 4)?, &head[HEADER_BYTES..received.min(HEAD_BYTES)], received);
    Some(Frame { unique: u64_at(head, 8)?, node: u64_at(head, 16)?, call })
}

fn call(opcode: u32, arguments: &[u8], received: usize) -> Option<Call<'_>> {
    let call = match opcode {
        1 => Call::Lookup { name: arguments.split(|byte| *byte == 0).next()? },
        2 | 42 => Call::Forget,
        3 => Call::Getattr,
        4 => Call::Setattr,
        14 => Call::Open,
        15 => Call::Read(Span { offset: u64_at(arguments, 8)?, length: u32_at(arguments, 16)?.into() }),
        16 => Call::Write(payload(arguments, received)?),
        17 => Call::Statfs,
        18 => Call::Release,
        20 => Call::Fsync,
        26 => Call::Init {
            major: u32_at(arguments, 0)?,
            minor: u32_at(arguments, 4)?,
            flags: u64::from(u32_at(arguments, 12)?) | u64::from(u32_at(arguments, 16).unwrap_or(0)) << 32,
        },
        28 => Call::Readdir { offset: u64_at(arguments, 8)?, size: u32_at(arguments, 16)? },
        43 => Call::Fallocate {
            span: Span { offset: u64_at(arguments, 8)?, length: u64_at(arguments, 16)? },
            mode: u32_at(arguments, 24)?,
        },
        46 => Call::Lseek { offset: u64_at(arguments, 8)?, whence: u32_at(arguments, 16)? },
        _ => Call::Other,
    };
    Some(call)
}

/// Returns the range of a write; its payload must be complete.
fn payload(arguments: &[u8], received: usize) -> Option<Span> {
    let length = u32_at(arguments, 16)?;
    (received.checked_sub(HEAD_BYTES)? == length as usize)
        .then_some(Span { offset: u64_at(arguments, 8)?, length: length.into() })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

/// Returns the header and body of a reply.
pub(super) fn reply(unique: u64, answer: Result<&[u8], Errno>) -> ([u8; 16], &[u8]) {
    let (error, body) = answer.map_or_else(|errno| (errno.0, &[][..]), |body| (0, body));
    let mut header = [0; 16];
    header[..4].copy_from_slice(&(body.len() as u32 + 16).to_ne_bytes());
    header[4..8].copy_from_slice(&(-error).to_ne_bytes());
    header[8..].copy_from_slice(&unique.to_ne_bytes());
    (header, body)
}

/// Copies a request from a ring to `head` in the format of `/dev/fuse`. Returns its length. If the lengths of
/// the parts contradict the header, the result is not a valid [request](parse).
pub(super) fn gather(request: &RingRequest<'_>, head: &mut [u8; HEAD_BYTES]) -> usize {
    let RingRequest { header, argument, payload } = request;
    let stated = u32_at(header, 0).unwrap_or(0) as usize;
    let argument_bytes = stated.saturating_sub(HEADER_BYTES + payload.len()).min(argument.len());
    let arguments = argument[..argument_bytes].iter().chain(*payload);
    for (to, from) in head.iter_mut().zip(header[..HEADER_BYTES].iter().chain(arguments)) {
        *to = *from;
    }
    HEADER_BYTES + argument_bytes + payload.len()
}

/// The body of a reply, field by field.
#[derive(Debug, Default)]
pub(super) struct Answer(Vec<u8>);

impl Answer {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    #[must_use]
    fn u16(mut self, value: u16) -> Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    #[must_use]
    fn u32(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    #[must_use]
    fn u64(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    #[must_use]
    fn zeroes(mut self, count: usize) -> Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }

    /// Encodes `struct fuse_init_out`: the server's capabilities. Never a write-back cache, which would merge
    /// writes.
    pub(super) fn init(flags: u64, limits: InitLimits) -> Self {
        Self::default()
            .u32(MAJOR)
            .u32(MINOR)
            .u32(0)
            .u32(flags as u32)
            .u16(limits.background)
            .u16(limits.background - limits.background / 4)
            .u32(limits.write_bytes)
            .u32(1)
            .u16(limits.pages)
            .u16(0)
            .u32((flags >> 32) as u32)
            .zeroes(64 - 36)
    }

    /// Returns `struct fuse_entry_out` of a file.
    pub(super) fn entry(file: &Attributes) -> Self {
        let answer =
            Self::default().u64(file.node).u64(0).u64(VALID_SECONDS).u64(VALID_SECONDS).u32(0).u32(0);
        file.append(answer)
    }

    /// Returns `struct fuse_attr_out`.
    pub(super) fn attributes(of: &Attributes) -> Self {
        of.append(Self::default().u64(VALID_SECONDS).u32(0).u32(0))
    }

    /// Returns `struct fuse_open_out`.
    pub(super) fn open(node: u64) -> Self {
        let flags = if node == CONTROL { OPEN_FLAGS_CONTROL } else { OPEN_FLAGS };
        Self::default().u64(0).u32(flags).u32(0)
    }

    /// Returns `struct fuse_write_out`.
    pub(super) fn written(bytes: u32) -> Self {
        Self::default().u32(bytes).u32(0)
    }

    /// Returns `struct fuse_lseek_out`.
    pub(super) fn position(offset: u64) -> Self {
        Self::default().u64(offset)
    }

    /// Encodes `struct fuse_statfs_out`. The block size becomes the granularity of discards.
    pub(super) fn statfs(size: u64, block: u32) -> Self {
        let name_max = DISK_NAME.len().max(CONTROL_NAME.len()) as u32;
        let counts = Self::default().u64(size / u64::from(block)).u64(0).u64(0).u64(1).u64(0);
        counts.u32(block).u32(name_max).u32(block).zeroes(28)
    }

    /// Encodes the directory entries from `offset` on that fit into `size` bytes, each a `struct
    /// fuse_dirent`.
    pub(super) fn directory(offset: u64, size: u32, has_control: bool) -> Self {
        const KIND_DIRECTORY: u32 = 4;
        const KIND_FILE: u32 = 8;
        let all = [
            (ROOT, ".", KIND_DIRECTORY),
            (ROOT, "..", KIND_DIRECTORY),
            (DISK, DISK_NAME, KIND_FILE),
            (CONTROL, CONTROL_NAME, KIND_FILE),
        ];
        let mut answer = Self::default();
        for (index, (node, name, kind)) in (1..).zip(all.into_iter().take(3 + usize::from(has_control))) {
            if index <= offset {
                continue;
            }
            let padded = name.len().next_multiple_of(8);
            if answer.0.len() + 24 + padded > size as usize {
                break;
            }
            answer = answer.u64(node).u64(index).u32(name.len() as u32).u32(kind);
            answer.0.extend_from_slice(name.as_bytes());
            answer = answer.zeroes(padded - name.len());
        }
        answer
    }
}

/// Validity of cached names and attributes: only the size changes, and the kernel is notified of that.
const VALID_SECONDS: u64 = 1 << 30;

/// Limits agreed on in `FUSE_INIT`.
#[derive(Debug, Clone, Copy)]
pub(super) struct InitLimits {
    /// Number of asynchronous requests that may be in flight.
    pub(super) background: u16,
    /// The largest write.
    pub(super) write_bytes: u32,
    /// The most pages that a request may touch.
    pub(super) pages: u16,
}

/// `struct fuse_attr` of a file or the directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attributes {
    pub(super) node: u64,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) block: u32,
}

impl Attributes {
    /// Creates a file of `size` bytes that its owner may read and write.
    pub(super) fn disk(size: u64, block: u32) -> Self {
        Self { node: DISK, size, mode: 0o100_600, block }
    }

    /// Creates an empty file that its owner may write.
    pub(super) fn control(block: u32) -> Self {
        Self { node: CONTROL, size: 0, mode: 0o100_200, block }
    }

    /// Returns the directory.
    pub(super) fn root(block: u32) -> Self {
        Self { node: ROOT, size: 0, mode: 0o040_700, block }
    }

    fn append(&self, answer: Answer) -> Answer {
        let links = if self.node == ROOT { 2 } else { 1 };
        let times_and_fractions = 3 * 8 + 3 * 4;
        let answer = answer.u64(self.node).u64(self.size).u64(self.size / 512).zeroes(times_and_fractions);
        answer.u32(self.mode).u32(links).zeroes(12).u32(self.block).u32(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(opcode: u32, arguments: &[u8], length: u32) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&length.to_ne_bytes());
        head[4..8].copy_from_slice(&opcode.to_ne_bytes());
        head[8..16].copy_from_slice(&77_u64.to_ne_bytes());
        head[16..24].copy_from_slice(&DISK.to_ne_bytes());
        head[40..40 + arguments.len()].copy_from_slice(arguments);
        head
    }

    fn write_arguments(offset: u64, size: u32) -> Vec<u8> {
        [&[0; 8][..], &offset.to_ne_bytes(), &size.to_ne_bytes(), &[0; 20]].concat()
    }

    #[test]
    fn a_write_whose_payload_is_short_or_long_is_refused() {
        let arguments = write_arguments(8192, 4096);
        for (received, is_whole) in
            [(80 + 4096, true), (80 + 4095, false), (80 + 4097, false), (79, false), (40, false)]
        {
            let head = request(16, &arguments, received as u32);
            let frame = parse(&head, received).unwrap();
            let expected = is_whole.then_some(Call::Write(Span { offset: 8192, length: 4096 }));
            assert_eq!((frame.unique, frame.node, frame.call), (77, DISK, expected), "{received} bytes");
        }
    }

    #[test]
    fn a_request_of_a_ring_is_that_of_the_file_and_lengths_that_do_not_add_up_are_none() {
        let payload = [7; 4096];
        let write = request(16, &write_arguments(8192, 4096), 80 + 4096);
        let (name, getattr) = (*b"disk\0", request(3, &[9; 16], 56));
        // A request without a first argument begins with the payload.
        let lookup = request(1, &name, 45);
        for (head, received, bytes) in
            [(write, 80 + 4096, &payload[..]), (getattr, 56, &[][..]), (lookup, 45, &name[..])]
        {
            let (mut header, mut argument) = ([0xEE; 128], [0xEE; 128]);
            header[..HEADER_BYTES].copy_from_slice(&head[..HEADER_BYTES]);
            let own = received - HEADER_BYTES - bytes.len();
            argument[..own].copy_from_slice(&head[HEADER_BYTES..HEADER_BYTES + own]);
            let gathered = |payload| {
                let mut gathered = [0; HEAD_BYTES];
                let request = RingRequest { header: &header, argument: &argument, payload };
                let received = gather(&request, &mut gathered);
                (gathered, received)
            };
            let (same, length) = gathered(bytes);
            assert_eq!((length, parse(&same, length)), (received, parse(&head, received)));
            let longer = [bytes, &[0; 256]].concat();
            let (other, length) = gathered(&longer);
            assert_eq!(parse(&other, length).and_then(|frame| frame.call), None, "{received} bytes");
        }
    }

    #[test]
    fn a_header_that_is_short_or_states_another_length_is_no_request() {
        assert_eq!(parse(&request(3, &[], 39), 39), None);
        assert_eq!(parse(&request(3, &[], 56), 57), None);
        assert_eq!(parse(&request(3, &[], 56), 56).unwrap().call, Some(Call::Getattr));
    }

    #[test]
    fn arguments_cut_at_any_byte_never_panic_and_short_ones_are_refused() {
        for opcode in 0..64 {
            for received in 0..200_usize {
                let head = request(opcode, &[0xff; 40], received as u32);
                let frame = parse(&head, received);
                assert_eq!(frame.is_some(), received >= 40, "opcode {opcode}, {received} bytes");
                let needs = match opcode {
                    15 | 28 | 46 => 60,
                    43 => 68,
                    26 => 56,
                    _ => continue,
                };
                let is_whole = frame.is_some_and(|frame| frame.call.is_some());
                assert_eq!(is_whole, received >= needs, "opcode {opcode}, {received} bytes");
            }
        }
    }

    #[test]
    fn answers_have_the_length_of_their_structures() {
        let limits = InitLimits { background: 64, write_bytes: 1 << 20, pages: 256 };
        let disk = Attributes::disk(1 << 20, 512);
        let answers = [
            (Answer::init(u64::MAX, limits), 64),
            (Answer::entry(&disk), 128),
            (Answer::attributes(&disk), 104),
            (Answer::open(DISK), 16),
            (Answer::written(1), 8),
            (Answer::position(1), 8),
            (Answer::statfs(1 << 20, 512), 80),
            (Answer::directory(0, 4096, false), 96),
            (Answer::directory(0, 4096, true), 128),
            (Answer::directory(0, 40, true), 32),
            (Answer::directory(3, 4096, false), 0),
        ];
        for (answer, length) in answers {
            assert_eq!(answer.bytes().len(), length, "{answer:?}");
        }
    }
}
