//! The client's end of a connection to a witness, used by the writer and the verification: over stdin and
//! stdout of a command (such as `ssh host plumb prove witness --dir D`), over the own stdin and stdout, or
//! over a unix socket.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

use plumb_block::{Clock, Nanos, receive_unless, sleep_unless};
use plumb_linux::child;
use plumb_state::frame::{Decoder, send, silence};

use crate::error::{Error, Result};
use crate::message::{Batch, Message, RunFacts};

/// Time after which a missing answer counts as a lost connection.
const ANSWER_TIMEOUT: Nanos = Nanos::secs(15);
/// Pause between two attempts to connect.
const RETRY: Nanos = Nanos::millis(200);

/// Receiver of the events that the writer saw.
pub trait Witness {
    /// Sends a batch. The previous batch must be confirmed.
    ///
    /// # Errors
    /// If the batch can never be recorded.
    fn send(&mut self, batch: &Batch) -> Result<()>;

    /// Waits at most `wait`, and returns the number of the last batch that is durable at the witness.
    ///
    /// # Errors
    /// If the witness cannot be reached any more, or refuses.
    fn confirmed(&mut self, wait: Nanos) -> Result<u64>;
}

/// Address of a witness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// The process at the other end of this process's stdin and stdout (`-`). A lost connection cannot be
    /// restored.
    Stdio,
    /// A unix socket (`unix:PATH`).
    Unix(PathBuf),
    /// A command, run by the shell.
    Command(String),
}

impl Peer {
    /// Parses an address as the user types it.
    pub fn typed(typed: &str) -> Self {
        match (typed, typed.strip_prefix("unix:")) {
            ("-", _) => Self::Stdio,
            (_, Some(path)) => Self::Unix(path.into()),
            _ => Self::Command(typed.to_owned()),
        }
    }

    fn connect(&self) -> io::Result<Connection> {
        let (stream, child) = match self {
            Self::Stdio => return Connection::over(io::stdin(), io::stdout(), End::default()),
            Self::Unix(path) => (UnixStream::connect(path)?, None),
            Self::Command(command) => {
                let (ours, theirs) = UnixStream::pair()?;
                let (stdin, stdout) = (OwnedFd::from(theirs.try_clone()?), OwnedFd::from(theirs));
                (ours, Some(Command::new("sh").args(["-c", command]).stdin(stdin).stdout(stdout).spawn()?))
            }
        };
        Connection::over(stream.try_clone()?, stream.try_clone()?, End { stream: Some(stream), child })
    }
}

struct Connection {
    to: Box<dyn Write + Send>,
    answers: Receiver<io::Result<Message>>,
    _end: End,
}

/// Resources to release when a connection ends.
#[derive(Default)]
struct End {
    stream: Option<UnixStream>,
    child: Option<Child>,
}

impl Connection {
    fn over(
        mut from: impl Read + Send + 'static,
        to: impl Write + Send + 'static,
        end: End,
    ) -> io::Result<Self> {
        let (sender, answers) = channel();
        let mut decoder = Decoder::default();
        thread::Builder::new().name("witness".to_owned()).spawn(move || {
            loop {
                let answer = decoder.receive(&mut from);
                let is_end = answer.is_err();
                if sender.send(answer).is_err() || is_end {
                    return;
                }
            }
        })?;
        Ok(Self { to: Box::new(to), answers, _end: end })
    }

    fn send(&mut self, message: &Message) -> Result<()> {
        send(&mut self.to, message).map_err(|source| Error::disconnected(&source))
    }

    /// Returns the next answer, or `None` if none arrives in time or before a stop.
    fn answer(&mut self, wait: Nanos, stop: &AtomicBool) -> Result<Option<Message>> {
        match receive_unless(&self.answers, || stop.load(Ordering::Acquire), wait) {
            Ok(Ok(Message::Refused(why))) => Err(Error::not_measured(format!("the witness: {why}"))),
            Ok(answer) => answer.map(Some).map_err(|source| Error::disconnected(&source)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Error::disconnected(&io::ErrorKind::NotConnected.into()))
            }
        }
    }

    /// Sends a request and collects the answers until one confirms it.
    fn ask(&mut self, message: &Message, stop: &AtomicBool) -> Result<(Vec<Message>, u64)> {
        self.send(message)?;
        let mut answers = Vec::new();
        loop {
            match self.answer(ANSWER_TIMEOUT, stop)? {
                Some(Message::Confirmed(number)) => return Ok((answers, number)),
                Some(answer) => answers.push(answer),
                None if stop.load(Ordering::Acquire) => {
                    return Err(Error::disconnected(&io::ErrorKind::Interrupted.into()));
                }
                None => return Err(Error::disconnected(&silence(ANSWER_TIMEOUT.as_secs_f64()))),
            }
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // Errors do not matter: the peer has ended, or the connection is no longer needed.
        if let Some(stream) = &self.stream {
            stream.shutdown(Shutdown::Both).unwrap_or_default();
        }
        if let Some(child) = &mut self.child {
            child::kill(child).unwrap_or_default();
        }
    }
}

/// Connection to a witness that is restored after a loss.
pub struct Link<'s> {
    peer: Peer,
    /// Facts of the run, sent first on each connection.
    facts: Option<RunFacts>,
    connection: Option<Connection>,
    /// Unconfirmed batch, and the time at which it was sent.
    pending: Option<(Batch, Nanos)>,
    confirmed: u64,
    /// Time for which a lost connection is retried.
    patience: Nanos,
    /// Time and reason of the loss of the connection; `None` while it works.
    lost: Option<(Nanos, String)>,
    clock: &'s dyn Clock,
    stop: &'s AtomicBool,
}

impl<'s> Link<'s> {
    /// Connects to the witness, for a run if `facts` are given. A connection lost later is retried for
    /// `patience`. A stop ends every wait for a silent witness.
    ///
    /// # Errors
    /// If the witness does not answer, or refuses.
    pub fn connect(
        peer: Peer,
        facts: Option<RunFacts>,
        patience: Nanos,
        clock: &'s dyn Clock,
        stop: &'s AtomicBool,
    ) -> Result<Self> {
        let (connection, pending, lost) = (None, None, None);
        let mut link = Self { peer, facts, connection, pending, confirmed: 0, patience, lost, clock, stop };
        match link.open() {
            Err(error) if error.is_disconnected => Err(Error::not_measured(error.to_string())),
            opened => opened.map(|()| link),
        }
    }

    fn open(&mut self) -> Result<()> {
        let mut connection = self.peer.connect().map_err(|source| Error::disconnected(&source))?;
        if let Some(facts) = &self.facts {
            (_, self.confirmed) = connection.ask(&Message::Run(facts.clone()), self.stop)?;
            self.pending.take_if(|(batch, _)| batch.number <= self.confirmed);
            if let Some((batch, sent)) = &mut self.pending {
                connection.send(&Message::Batch(batch.clone()))?;
                *sent = self.clock.now();
            }
        }
        (self.connection, self.lost) = (Some(connection), None);
        Ok(())
    }

    /// Notes the loss of the connection and restores it, unless that has been tried for too long.
    fn lose(&mut self, why: String) -> Result<()> {
        self.connection = None;
        let (since, why) = self.lost.get_or_insert_with(|| (self.clock.now(), why)).clone();
        let silent = self.clock.now().since(since);
        if silent >= self.patience || self.peer == Peer::Stdio {
            let seconds = silent.as_secs_f64().floor();
            let stands = "what it has confirmed stands, and can be verified";
            return Err(Error::not_measured(format!(
                "after {seconds} s without an answer ({why}): {stands}"
            )));
        }
        match self.open() {
            Err(error) if error.is_disconnected => {
                self.lost = Some((since, error.to_string()));
                sleep_unless(|| self.stop.load(Ordering::Acquire), RETRY);
                Ok(())
            }
            opened => opened,
        }
    }

    /// Sends a request and waits for the witness to confirm it. Returns the earlier replies, and the number
    /// of the last batch that is durable at the witness.
    ///
    /// # Errors
    /// If the connection is lost, or the witness refuses.
    pub fn ask(&mut self, message: &Message) -> Result<(Vec<Message>, u64)> {
        let connection = self
            .connection
            .as_mut()
            .ok_or_else(|| Error::disconnected(&io::ErrorKind::NotConnected.into()))?;
        connection.ask(message, self.stop)
    }

    /// Restores the connection if `done` is the error of a lost one, and returns `None` then. A refusal of
    /// the witness remains an error.
    fn reconnect_if_lost<T>(&mut self, done: Result<T>) -> Result<Option<T>> {
        match done {
            Err(error) if error.is_disconnected => self.lose(error.to_string()).map(|()| None),
            done => done.map(Some),
        }
    }
}

impl Witness for Link<'_> {
    fn send(&mut self, batch: &Batch) -> Result<()> {
        self.pending = Some((batch.clone(), self.clock.now()));
        // Without a connection the batch is sent after the next one is made.
        let sent = self.connection.as_mut().map_or(Ok(()), |link| link.send(&Message::Batch(batch.clone())));
        self.reconnect_if_lost(sent).map(drop)
    }

    fn confirmed(&mut self, wait: Nanos) -> Result<u64> {
        let answer = match &mut self.connection {
            Some(connection) => connection.answer(wait, self.stop),
            None => Err(Error::disconnected(&io::ErrorKind::NotConnected.into())),
        };
        match self.reconnect_if_lost(answer)?.flatten() {
            Some(Message::Confirmed(number)) => {
                self.confirmed = number;
                self.pending.take_if(|(batch, _)| batch.number <= number);
            }
            Some(_) => return Err(Error::not_measured("the witness sent an unexpected answer")),
            None => {
                if self
                    .pending
                    .as_ref()
                    .is_some_and(|(_, sent)| self.clock.now().since(*sent) > ANSWER_TIMEOUT)
                {
                    self.lose(silence(ANSWER_TIMEOUT.as_secs_f64()).to_string())?;
                }
            }
        }
        Ok(self.confirmed)
    }
}
