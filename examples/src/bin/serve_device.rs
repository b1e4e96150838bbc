//! Serves a device of one's own over NBD: a disk whose every block reads as its own number, and that forgets
//! what is written.
//!
//! ```sh
//! cargo run -p plumb-examples --bin serve_device -- ./socket &
//! nbdinfo 'nbd+unix:///?socket=./socket'
//! ```

use std::error::Error as StdError;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use plumb_block::{
    Bytes, Clock, Completion, Device, DeviceInfo, Errno, Error, ErrorKind, Extent, ExtentState, Latch,
    LbaRange, Op, Outcome, Payload, Queue, QueueFull, QueueOptions, RealClock, Request, Result, Wait,
};
use plumb_serve::nbd::server::{Export, Listener, Options, Server};

/// A device of 64 MiB without contents.
struct NumberedDevice;

impl Device for NumberedDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::plain("numbered", Bytes::mib(64), Bytes(512))
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let (depth, info) = (options.depth as usize, self.info());
        Ok(Box::new(NumberedQueue { info, depth, completed: Vec::new(), clock: RealClock::start() }))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        Ok(vec![Extent { range, state: ExtentState::Unknown }])
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "switch the write cache of", "numbered"))
    }

    fn latched(&self) -> Option<Latch> {
        None
    }
}

/// A queue that has carried out each request when it has taken it.
struct NumberedQueue {
    info: DeviceInfo,
    depth: usize,
    completed: Vec<Completion>,
    clock: RealClock,
}

impl NumberedQueue {
    fn carry_out(&self, request: &mut Request) -> Outcome {
        if request.op != Op::Flush && !self.info.holds(request.range) {
            return Outcome::Failed(Errno::EINVAL);
        }
        if let Payload::Into(buffer) = &mut request.payload {
            let blocks = buffer.chunks_exact_mut(self.info.logical_block.0 as usize);
            for (lba, block) in (request.range.lba.0..).zip(blocks) {
                block.fill(0);
                block[..8].copy_from_slice(&lba.to_le_bytes());
            }
        }
        Outcome::Done
    }
}

impl Queue for NumberedQueue {
    fn submit(&mut self, mut request: Request) -> std::result::Result<(), QueueFull> {
        if self.completed.len() >= self.depth {
            return Err(QueueFull(request));
        }
        let submitted_at = self.clock.now();
        let outcome = self.carry_out(&mut request);
        let Request { tag, payload, .. } = request;
        self.completed.push(Completion {
            tag,
            outcome,
            submitted_at,
            completed_at: self.clock.now(),
            payload,
        });
        Ok(())
    }

    fn poll(&mut self, _wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let count = self.completed.len();
        completions.append(&mut self.completed);
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Makes a server of the device that listens on `socket`.
fn server(socket: &Path) -> std::result::Result<(Server, Listener), Box<dyn StdError>> {
    let export = Export {
        name: "numbered".to_owned(),
        description: "every block reads as its number".to_owned(),
        device: Arc::new(NumberedDevice),
    };
    Ok((Server::new(vec![export], Options::default())?, Listener::unix(socket)?))
}

fn main() -> std::result::Result<(), Box<dyn StdError>> {
    let socket = std::env::args().nth(1).ok_or("name a path for the socket")?;
    let (server, listener) = server(Path::new(&socket))?;
    println!("nbd+unix:///?socket={socket}");
    server.serve(vec![listener])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use plumb_block::{BufferMut, Lba, Pool, PoolShape, Tag};
    use plumb_serve::nbd::client::{self, NbdDevice};

    use super::*;

    fn buffer(pool: &Pool) -> BufferMut {
        pool.take(Bytes(1024)).expect("a buffer")
    }

    #[test]
    fn a_client_reads_the_numbers_of_blocks() {
        let place = tempfile::tempdir().expect("a directory");
        let socket = place.path().join("socket");
        let (server, listener) = server(&socket).expect("a server");
        let stopper = server.stopper();
        std::thread::scope(|scope| {
            scope.spawn(|| server.serve(vec![listener]).expect("it serves"));
            let uri = format!("nbd+unix:///?socket={}", socket.display()).parse().expect("an address");
            let device = NbdDevice::connect(&uri, client::Options::default()).expect("a connection");
            let shape = PoolShape { buffer: Bytes::kib(4), count: 4, alignment: Bytes::kib(4) };
            let pool = Pool::new(shape).expect("memory");
            let mut queue =
                device.open_queue(QueueOptions { depth: 1, pool: pool.clone() }).expect("a queue");
            let range = LbaRange::new(Lba(7), 2);
            let payload = Payload::Into(buffer(&pool));
            queue
                .submit(Request { tag: Tag(1), op: Op::Read, range, payload, deadline: None })
                .expect("room");
            let mut completions = Vec::new();
            while completions.is_empty() {
                queue.poll(Wait::ONE, &mut completions).expect("an answer");
            }
            let Payload::Into(bytes) = &completions[0].payload else { panic!("no bytes") };
            assert_eq!((bytes[0], bytes[512]), (7, 8));
            drop(queue);
            stopper.stop();
        });
    }
}
