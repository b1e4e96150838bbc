//! A server that follows the script of a test.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use plumb_serve::nbd::client::{NbdDevice, Options};
use plumb_serve::nbd::wire::{
    ChunkHeader, ChunkKind, ClientFlags, Command, Cookie, HandshakeFlags, Info, OptionCode, OptionHeader,
    OptionReplyKind, RequestHeader, ServerHello, SimpleReply, TransmissionFlags, WireErrno,
    encode_option_reply,
};

/// Properties of the scripted server.
#[derive(Clone, Copy)]
pub(crate) struct Nature {
    pub(crate) size: u64,
    pub(crate) flags: u16,
    pub(crate) minimum: u32,
    pub(crate) maximum: u32,
    /// True if the server knows options at all.
    pub(crate) is_fixed: bool,
}

/// FLUSH, FUA, TRIM, WRITE_ZEROES.
pub(crate) const CAPABLE: u16 = 0b110_1101;
pub(crate) const MULTI: u16 = TransmissionFlags::CAN_MULTI_CONN.0;

impl Nature {
    pub(crate) fn with(flags: u16) -> Self {
        Self { size: 1 << 20, flags, minimum: 512, maximum: 32 << 20, is_fixed: true }
    }
}

/// Connection to one client.
pub(crate) struct Peer(pub(crate) UnixStream);

impl Peer {
    /// Returns the next request and the bytes of a write; `None` if the client is gone.
    pub(crate) fn request(&mut self) -> Option<(RequestHeader, Vec<u8>)> {
        let mut header = [0; RequestHeader::BYTES];
        self.0.read_exact(&mut header).ok()?;
        let header = RequestHeader::decode(&header).unwrap();
        if header.command == Command::DISC {
            return None;
        }
        let mut bytes = Vec::new();
        if header.command == Command::WRITE {
            bytes.resize(header.length as usize, 0);
            self.0.read_exact(&mut bytes).ok()?;
        }
        Some((header, bytes))
    }

    pub(crate) fn expect(&mut self, command: Command) -> RequestHeader {
        let (header, _) = self.request().expect("the client has gone");
        assert_eq!(header.command, command, "{header:?}");
        header
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // The client may hang up in the middle.
        self.0.write_all(bytes).ok();
    }

    /// Answers a request as done, in chunks.
    pub(crate) fn done(&mut self, cookie: Cookie) {
        self.send(&ChunkHeader { is_last: true, kind: ChunkKind::NONE, cookie, length: 0 }.encode());
    }

    pub(crate) fn fail(&mut self, cookie: Cookie, errno: WireErrno) {
        self.send(&SimpleReply { errno, cookie }.encode());
    }

    /// Answers a read with bytes.
    pub(crate) fn data(&mut self, cookie: Cookie, offset: u64, bytes: &[u8], is_last: bool) {
        self.send(&ChunkHeader::encode_offset_data(cookie, offset, bytes.len() as u32, is_last));
        self.send(bytes);
    }

    /// Answers everything as done, reads with the byte `fill`, until the client goes.
    pub(crate) fn serve(&mut self, fill: u8) {
        while let Some((header, _)) = self.request() {
            match header.command {
                Command::READ => {
                    self.data(header.cookie, header.offset, &vec![fill; header.length as usize], true);
                }
                _ => self.done(header.cookie),
            }
        }
    }

    fn handshake(&mut self, nature: Nature) -> Option<()> {
        let mut flags = HandshakeFlags::NO_ZEROES;
        flags.0 |= if nature.is_fixed { HandshakeFlags::FIXED_NEWSTYLE.0 } else { 0 };
        self.0.write_all(&ServerHello { flags }.encode()).ok()?;
        self.0.read_exact(&mut [0; ClientFlags::BYTES]).ok()?;
        let flags = TransmissionFlags(nature.flags);
        loop {
            let mut header = [0; OptionHeader::BYTES];
            self.0.read_exact(&mut header).ok()?;
            let header = OptionHeader::decode(&header).unwrap();
            self.0.read_exact(&mut vec![0; header.length as usize]).ok()?;
            let mut out = Vec::new();
            match header.code {
                OptionCode::EXPORT_NAME => {
                    self.0.write_all(&nature.size.to_be_bytes()).ok()?;
                    return self.0.write_all(&nature.flags.to_be_bytes()).ok();
                }
                OptionCode::GO => {
                    let Nature { minimum, maximum, size, .. } = nature;
                    let sizes = Info::BlockSize { minimum, preferred: minimum.max(4096), maximum };
                    for info in [Info::Export { size, flags }, sizes] {
                        encode_option_reply(header.code, OptionReplyKind::INFO, &info.encode(), &mut out);
                    }
                    encode_option_reply(header.code, OptionReplyKind::ACK, &[], &mut out);
                }
                OptionCode::STRUCTURED_REPLY => {
                    encode_option_reply(header.code, OptionReplyKind::ACK, &[], &mut out);
                }
                _ => encode_option_reply(header.code, OptionReplyKind::ERR_UNSUP, &[], &mut out),
            }
            self.0.write_all(&out).ok()?;
            if header.code == OptionCode::GO {
                return Some(());
            }
        }
    }
}

/// A server whose connections each follow a script, in a separate thread. The script receives the number of
/// the connection. The server accepts one connection for each entry of `natures`, with these properties.
pub(crate) struct ScriptedServer {
    threads: Vec<JoinHandle<()>>,
    pub(crate) uri: String,
    _directory: tempfile::TempDir,
}

impl ScriptedServer {
    pub(crate) fn start(
        natures: &[Nature],
        script: impl Fn(usize, &mut Peer) + Send + Sync + 'static,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket: PathBuf = directory.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let natures = natures.to_vec();
        let script = Arc::new(script);
        let acceptor = std::thread::spawn(move || {
            let mut threads = Vec::new();
            for (number, nature) in natures.into_iter().enumerate() {
                let (stream, _) = listener.accept().unwrap();
                let script = Arc::clone(&script);
                threads.push(std::thread::spawn(move || {
                    let mut peer = Peer(stream);
                    if peer.handshake(nature).is_some() {
                        script(number, &mut peer);
                    }
                }));
            }
            drop(listener);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        let uri = format!("nbd+unix:///x?socket={}", socket.display());
        Self { threads: vec![acceptor], uri, _directory: directory }
    }

    pub(crate) fn connect(&self, options: Options) -> NbdDevice {
        NbdDevice::connect(&self.uri.parse().unwrap(), options).unwrap()
    }

    /// Waits for the scripts to end: their assertions are part of the test.
    pub(crate) fn end(self) {
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
