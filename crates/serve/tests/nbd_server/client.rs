//! A client that sends exactly what a test requests, and checks every answer.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use plumb_serve::nbd::wire::{
    Chunk, ChunkKind, ClientFlags, Command, CommandFlags, Cookie, GoRequest, InfoKind, MetaContextRequest,
    OptionCode, OptionReplyHeader, OptionReplyKind, ReplyHead, RequestHeader, ServerHello, WireErrno,
    encode_option,
};

/// Time limit of a test, reached only if it fails.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    cookie: u64,
    reads: HashMap<Cookie, u32>,
}

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) cookie: Cookie,
    pub(crate) errno: WireErrno,
    pub(crate) bytes: Vec<u8>,
    pub(crate) status: Vec<(u32, u32)>,
}

impl Client {
    /// Connects, and receives the greeting.
    pub(crate) fn greeted(socket: &Path) -> io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut hello = [0; ServerHello::BYTES];
        stream.read_exact(&mut hello)?;
        ServerHello::decode(&hello).map_err(io::Error::other)?;
        stream.write_all(&ClientFlags::FIXED_NEWSTYLE.with(ClientFlags::NO_ZEROES).encode())?;
        Ok(Self { stream, cookie: 0, reads: HashMap::new() })
    }

    /// Connects and enters the transmission phase of `export`; with `is_rich`, with structured replies and
    /// `base:allocation`.
    pub(crate) fn open(socket: &Path, export: &str, is_rich: bool) -> io::Result<Self> {
        let mut client = Self::greeted(socket)?;
        if is_rich {
            client.option(OptionCode::STRUCTURED_REPLY, &[])?;
            let queries = vec!["base:allocation".to_owned()];
            let request = MetaContextRequest { export: export.to_owned(), queries };
            client.option(OptionCode::SET_META_CONTEXT, &request.encode())?;
        }
        let go = GoRequest { name: export.to_owned(), wants: vec![InfoKind::BLOCK_SIZE] };
        let replies = client.option(OptionCode::GO, &go.encode())?;
        match replies.last() {
            Some((OptionReplyKind::ACK, _)) => Ok(client),
            other => Err(io::Error::other(format!("GO was answered {other:?}"))),
        }
    }

    /// Sends an option, and receives all replies to it.
    pub(crate) fn option(
        &mut self,
        code: OptionCode,
        data: &[u8],
    ) -> io::Result<Vec<(OptionReplyKind, Vec<u8>)>> {
        self.stream.write_all(&encode_option(code, data))?;
        let mut replies = Vec::new();
        loop {
            let mut head = [0; OptionReplyHeader::BYTES];
            self.stream.read_exact(&mut head)?;
            let header = OptionReplyHeader::decode(&head).map_err(io::Error::other)?;
            assert_eq!(header.code, code, "a reply to another option");
            let mut data = vec![0; header.length as usize];
            self.stream.read_exact(&mut data)?;
            replies.push((header.kind, data));
            if header.kind == OptionReplyKind::ACK || header.kind.is_error() {
                return Ok(replies);
            }
        }
    }

    /// Sends a request with any payload.
    pub(crate) fn send(
        &mut self,
        command: Command,
        flags: CommandFlags,
        (offset, length): (u64, u32),
        payload: &[u8],
    ) -> io::Result<Cookie> {
        self.cookie += 1;
        let cookie = Cookie(self.cookie << 1);
        if command == Command::READ {
            self.reads.insert(cookie, length);
        }
        let header = RequestHeader { flags, command, cookie, offset, length };
        self.stream.write_all(&[&header.encode(), payload].concat())?;
        Ok(cookie)
    }

    /// Returns the next reply of any request, whose chunks must follow one another.
    pub(crate) fn reply(&mut self) -> io::Result<Reply> {
        let mut bytes = Vec::new();
        loop {
            let (reply, is_last) = self.chunk()?;
            bytes.extend_from_slice(&reply.bytes);
            if is_last {
                return Ok(Reply { bytes, ..reply });
            }
        }
    }

    /// Returns a reply or a chunk of one, and true if it is the last.
    fn chunk(&mut self) -> io::Result<(Reply, bool)> {
        let mut head = vec![0; 4];
        self.stream.read_exact(&mut head)?;
        let (head, _) = loop {
            if let Some(whole) = ReplyHead::decode(&head).map_err(io::Error::other)? {
                break whole;
            }
            let mut byte = [0];
            self.stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        };
        match head {
            ReplyHead::Simple(simple) => {
                let length = self.reads.remove(&simple.cookie).unwrap_or(0);
                let mut bytes = vec![0; if simple.errno == WireErrno::NONE { length as usize } else { 0 }];
                self.stream.read_exact(&mut bytes)?;
                Ok((Reply { cookie: simple.cookie, errno: simple.errno, bytes, status: Vec::new() }, true))
            }
            ReplyHead::Chunk(chunk) => {
                let mut content = vec![0; chunk.length as usize];
                self.stream.read_exact(&mut content)?;
                self.reads.remove(&chunk.cookie);
                let mut reply = Reply {
                    cookie: chunk.cookie,
                    errno: WireErrno::NONE,
                    bytes: Vec::new(),
                    status: Vec::new(),
                };
                if chunk.kind == ChunkKind::OFFSET_DATA {
                    reply.bytes = content.split_off(8);
                    return Ok((reply, chunk.is_last));
                }
                match Chunk::decode(chunk.kind, &content).map_err(io::Error::other)? {
                    Chunk::Error(error) => reply.errno = error.errno,
                    Chunk::Status(status) => {
                        reply.status = status.descriptors.iter().map(|one| (one.length, one.flags)).collect();
                    }
                    Chunk::None => {}
                    other => return Err(io::Error::other(format!("{other:?}"))),
                }
                Ok((reply, chunk.is_last))
            }
        }
    }

    /// Sends a request, and returns its reply, which must be the next one.
    pub(crate) fn ask(
        &mut self,
        command: Command,
        flags: CommandFlags,
        range: (u64, u32),
        payload: &[u8],
    ) -> io::Result<Reply> {
        let cookie = self.send(command, flags, range, payload)?;
        let reply = self.reply()?;
        if reply.cookie == cookie {
            Ok(reply)
        } else {
            Err(io::Error::other(format!("a reply to {:?}, expected one to {cookie:?}", reply.cookie)))
        }
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8], flags: CommandFlags) -> io::Result<WireErrno> {
        Ok(self.ask(Command::WRITE, flags, (offset, bytes.len() as u32), bytes)?.errno)
    }

    pub(crate) fn read(&mut self, offset: u64, length: u32) -> io::Result<Vec<u8>> {
        Ok(self.ask(Command::READ, CommandFlags::default(), (offset, length), &[])?.bytes)
    }

    pub(crate) fn flush(&mut self) -> io::Result<WireErrno> {
        Ok(self.ask(Command::FLUSH, CommandFlags::default(), (0, 0), &[])?.errno)
    }
}
