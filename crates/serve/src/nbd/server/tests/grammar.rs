//! Sessions of clients, correct and incorrect.

use std::collections::BTreeSet;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::nbd::wire::{
    ClientFlags, Command, CommandFlags, Cookie, GoRequest, InfoKind, MetaContextRequest, OptionCode,
    RequestHeader, encode_option,
};

/// The bytes of a client.
pub(super) struct Session {
    pub(super) bytes: Vec<u8>,
    /// Number of options and requests in the bytes.
    pub(super) frames: u64,
    /// True if the bytes are as the grammar made them.
    pub(super) is_intact: bool,
    /// Cookies of the requests that must be answered, each once.
    pub(super) expected: BTreeSet<Cookie>,
}

struct Maker<'a> {
    random: &'a mut Xoshiro256PlusPlus,
    bytes: Vec<u8>,
    frames: u64,
    expected: BTreeSet<Cookie>,
}

impl Session {
    pub(super) fn random(random: &mut Xoshiro256PlusPlus) -> Self {
        let mut maker = Maker { random, bytes: Vec::new(), frames: 0, expected: BTreeSet::new() };
        let client = ClientFlags(u32::from(maker.one_in(2)) << 1 | 1);
        maker.bytes.extend_from_slice(&client.encode());
        for _ in 0..maker.below(6) {
            maker.option();
        }
        maker.start();
        for cookie in 0..maker.below(200) {
            maker.request(Cookie(cookie));
        }
        if maker.one_in(2) {
            maker.push_request(Command::DISC, 0, 0, 0, Cookie(u64::MAX));
        }
        let Maker { bytes, frames, expected, .. } = maker;
        let mut session = Self { bytes, frames, is_intact: true, expected };
        if random.next_u64() % 8 < 5 {
            session.damage(random);
        }
        session
    }

    fn damage(&mut self, random: &mut Xoshiro256PlusPlus) {
        self.is_intact = false;
        for _ in 0..=random.next_u64() % 4 {
            let at = (random.next_u64() % self.bytes.len().max(1) as u64) as usize;
            match random.next_u64() % 5 {
                0 => self.bytes.truncate(at),
                1 => self.bytes.insert(at.min(self.bytes.len()), random.next_u64() as u8),
                2 => {
                    let end = (at + (random.next_u64() % 64) as usize).min(self.bytes.len());
                    self.bytes.drain(at.min(end)..end);
                }
                3 => {
                    let part: Vec<u8> = self.bytes.iter().skip(at).take(64).copied().collect();
                    self.bytes.splice(at.min(self.bytes.len())..at.min(self.bytes.len()), part);
                }
                _ => {
                    if let Some(byte) = self.bytes.get_mut(at) {
                        *byte ^= 1 << (random.next_u64() % 8);
                    }
                }
            }
        }
    }
}

impl Maker<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn push_option(&mut self, code: OptionCode, data: &[u8]) {
        self.frames += 1;
        self.bytes.extend_from_slice(&encode_option(code, data));
    }

    fn name(&mut self) -> String {
        ["disk", "fixed", "", "no such", "\u{e9}"][self.below(5) as usize].to_owned()
    }

    fn option(&mut self) {
        match self.below(9) {
            0 => self.push_option(OptionCode::LIST, &[]),
            1 => self.push_option(OptionCode::STRUCTURED_REPLY, &[]),
            2 => self.push_option(OptionCode::STARTTLS, &[]),
            3 => {
                let code = OptionCode(self.below(40) as u32 + 20);
                let data = vec![7; self.below(100) as usize];
                self.push_option(code, &data);
            }
            4 | 5 => self.context(),
            6 => {
                let go =
                    GoRequest { name: self.name(), wants: (0..self.below(5) as u16).map(InfoKind).collect() };
                self.push_option(OptionCode::INFO, &go.encode());
            }
            7 => {
                // Too large for the server to read.
                let data = vec![0; 66_000];
                self.push_option(OptionCode::LIST_META_CONTEXT, &data);
            }
            _ => {
                let data: Vec<u8> = (0..self.below(24)).map(|_| self.random.next_u64() as u8).collect();
                let code = [OptionCode::INFO, OptionCode::SET_META_CONTEXT, OptionCode::LIST]
                    [self.below(3) as usize];
                self.push_option(code, &data);
            }
        }
    }

    fn context(&mut self) {
        let all = ["base:allocation", "base:", "qemu:dirty", ""];
        let queries = (0..self.below(4)).map(|_| all[self.below(4) as usize].to_owned()).collect();
        let request = MetaContextRequest { export: self.name(), queries };
        let code = if self.one_in(2) { OptionCode::LIST_META_CONTEXT } else { OptionCode::SET_META_CONTEXT };
        self.push_option(code, &request.encode());
    }

    fn start(&mut self) {
        let name = if self.one_in(4) { "fixed" } else { "disk" }.to_owned();
        if self.one_in(2) {
            self.push_option(OptionCode::STRUCTURED_REPLY, &[]);
            if self.one_in(2) {
                let queries = vec!["base:allocation".to_owned()];
                let request = MetaContextRequest { export: name.clone(), queries };
                self.push_option(OptionCode::SET_META_CONTEXT, &request.encode());
            }
        }
        if self.one_in(4) {
            self.push_option(OptionCode::EXPORT_NAME, name.as_bytes());
        } else {
            let go = GoRequest { name, wants: vec![InfoKind::BLOCK_SIZE] };
            self.push_option(OptionCode::GO, &go.encode());
        }
    }

    fn push_request(&mut self, command: Command, flags: u16, offset: u64, length: u32, cookie: Cookie) {
        self.frames += 1;
        let header = RequestHeader { flags: CommandFlags(flags), command, cookie, offset, length };
        self.bytes.extend_from_slice(&header.encode());
    }

    fn request(&mut self, cookie: Cookie) {
        // Mostly within the megabyte and on the grid; otherwise arbitrary.
        let (offset, length) = match self.below(60) {
            0 => (self.random.next_u64(), self.random.next_u64() as u32),
            1..6 => (self.below(1 << 20), self.below(9000) as u32),
            6..12 => ((1 << 20) - 512 * self.below(4), 512 * self.below(5) as u32),
            12 => (0, 512 * self.below(2049) as u32),
            _ => (512 * self.below(2040), 512 * self.below(8) as u32),
        };
        let flags = if self.one_in(6) { self.random.next_u64() as u16 } else { self.below(2) as u16 };
        let command = match self.below(20) {
            0..6 => Command::READ,
            6..12 => Command::WRITE,
            12 => Command::FLUSH,
            13 => Command::TRIM,
            14 | 15 => Command::WRITE_ZEROES,
            16 => Command::BLOCK_STATUS,
            17 => Command::CACHE,
            18 => Command(self.below(1 << 16) as u16 | 64),
            _ => Command::FLUSH,
        };
        // The payload must follow whatever its length: within reason, an intact session holds all of it.
        let length = if command == Command::WRITE { length % (1 << 20) } else { length };
        let (offset, length) =
            if command == Command::FLUSH && !self.one_in(4) { (0, 0) } else { (offset, length) };
        self.push_request(command, flags, offset, length, cookie);
        self.expected.insert(cookie);
        if command == Command::WRITE {
            let fill = self.random.next_u64() as u8;
            self.bytes.resize(self.bytes.len() + length as usize, fill);
        }
    }
}
