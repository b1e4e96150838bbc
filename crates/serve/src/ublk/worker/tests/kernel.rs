//! The driver's side of a queue, by the driver's rules (drivers/block/ublk_drv.c): a tag is fetched once, it
//! is committed only after the server received a request, and requests that a dead server did not answer are
//! submitted again.

use std::collections::BTreeMap;

use super::*;

/// Request of a user of the block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserRequest {
    Read {
        range: LbaRange,
    },
    Write {
        range: LbaRange,
        version: u64,
        fua: bool,
    },
    Flush,
    Discard {
        range: LbaRange,
    },
    /// Arbitrary bytes.
    Raw([u8; 24]),
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) asked: UserRequest,
    pub(super) result: i32,
}

/// Owner of a tag.
#[derive(Debug, Default)]
enum Owner {
    /// Nobody: there is no server.
    #[default]
    None,
    /// The kernel, with memory of the server.
    Kernel(BufferMut),
    Server,
    /// Nobody: the tag has ended.
    Ended,
}

#[derive(Debug)]
pub(super) struct Driver {
    owners: Vec<Owner>,
    /// Requests without an answer, by tag.
    asked: BTreeMap<u16, UserRequest>,
    pub(super) answers: BTreeMap<u16, Answer>,
    /// Versions that the last read returned.
    pub(super) last_read: Vec<u64>,
    /// Result with which tags end from now on.
    ending: Option<i32>,
}

impl Driver {
    pub(super) fn new(depth: u16) -> Self {
        Self {
            owners: (0..depth).map(|_| Owner::None).collect(),
            asked: BTreeMap::new(),
            answers: BTreeMap::new(),
            last_read: Vec::new(),
            ending: None,
        }
    }

    /// Submits a request if a tag is free.
    pub(super) fn ask(&mut self, asked: UserRequest) -> Option<u16> {
        let tag = (0..self.owners.len() as u16).find(|tag| !self.asked.contains_key(tag))?;
        self.asked.insert(tag, asked);
        Some(tag)
    }

    /// Returns true if a write of `block` is not answered.
    pub(super) fn writes(&self, block: u64) -> bool {
        self.asked
            .values()
            .any(|asked| matches!(asked, UserRequest::Write { range, .. } if range.lba.0 == block))
    }

    pub(super) fn stop(&mut self) {
        self.ending = Some(ENODEV);
    }

    pub(super) fn refuse(&mut self, errno: i32) {
        self.ending = Some(errno);
    }

    /// Takes all tags back: unanswered requests are submitted again to the next server.
    pub(super) fn server_died(&mut self) {
        self.owners.fill_with(Owner::default);
    }

    fn give(&mut self, tag: u16, memory: BufferMut) {
        let owner = &mut self.owners[usize::from(tag)];
        assert!(!matches!(owner, Owner::Kernel(_) | Owner::Ended), "tag {tag} is the kernel's already");
        assert!(memory.len() >= 512 << 10, "no room for the largest request");
        *owner = Owner::Kernel(memory);
    }

    fn events(&mut self, events: &mut Vec<Event>) {
        for tag in 0..self.owners.len() as u16 {
            let owner = &mut self.owners[usize::from(tag)];
            let asked = self.asked.get(&tag).copied();
            match (std::mem::take(owner), asked, self.ending) {
                (Owner::Kernel(memory), _, Some(errno)) => {
                    *owner = Owner::Ended;
                    events.push(Event::Ended { tag, errno, memory });
                }
                (Owner::Kernel(mut memory), Some(asked), None) => {
                    *owner = Owner::Server;
                    if let UserRequest::Write { version, .. } = asked {
                        memory[..8].copy_from_slice(&version.to_ne_bytes());
                    }
                    events.push(Event::Request { tag, descriptor: describe(asked), memory });
                }
                (before, _, _) => *owner = before,
            }
        }
    }
}

/// Returns the version in the bytes of a block.
pub(super) fn version(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes[..8].try_into().unwrap())
}

fn describe(asked: UserRequest) -> [u8; 24] {
    let (operation, range) = match asked {
        UserRequest::Read { range } => (0_u32, range),
        UserRequest::Write { range, fua, .. } => (1 | u32::from(fua) << 13, range),
        UserRequest::Flush => (2, LbaRange::EMPTY),
        UserRequest::Discard { range } => (3, range),
        UserRequest::Raw(bytes) => return bytes,
    };
    let mut bytes = [0; 24];
    bytes[..4].copy_from_slice(&operation.to_ne_bytes());
    bytes[4..8].copy_from_slice(&(range.nlb as u32).to_ne_bytes());
    bytes[8..16].copy_from_slice(&range.lba.0.to_ne_bytes());
    bytes
}

/// The driver as one server sees it.
pub(super) struct Fake(pub(super) Arc<Mutex<Driver>>);

impl Kernel for Fake {
    fn fetch(&mut self, tag: u16, memory: BufferMut) -> io::Result<()> {
        let mut driver = lock(&self.0);
        assert!(matches!(driver.owners[usize::from(tag)], Owner::None), "tag {tag} is fetched twice");
        driver.give(tag, memory);
        Ok(())
    }

    fn commit(&mut self, tag: u16, result: i32, memory: BufferMut) -> io::Result<()> {
        let mut driver = lock(&self.0);
        assert!(matches!(driver.owners[usize::from(tag)], Owner::Server), "tag {tag} is not the server's");
        let asked = driver.asked.remove(&tag).expect("it was asked");
        if matches!(asked, UserRequest::Read { .. }) && result > 0 {
            driver.last_read = memory[..result as usize].chunks(512).map(version).collect();
        }
        driver.answers.insert(tag, Answer { asked, result });
        driver.give(tag, memory);
        Ok(())
    }

    fn watch(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, patience: Patience, events: &mut Vec<Event>) -> io::Result<()> {
        lock(&self.0).events(events);
        assert!(!events.is_empty() || patience != Patience::Endless, "this would wait for ever");
        Ok(())
    }
}
