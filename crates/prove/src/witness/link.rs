//! The end of a connection at which the writer or a verification is: over stdin and stdout of a command (such
//! as `ssh host plumb prove witness --dir D`), over one's own, or over a unix socket.

use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::record::{receive, send};
use super::{Batch, Message, RunFacts, refused};
use crate::error::{Error, ErrorKind, Result};

/// Time that an answer may take before the connection counts as lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Time to wait before the next try to connect.
const RETRY: Duration = Duration::from_millis(200);

/// Whom the writer tells what was answered.
pub trait Witness {
    /// Sends a batch, which is not confirmed yet. The one before it is.
    ///
    /// # Errors
    /// If it can never be recorded.
    fn send(&mut self, batch: &Batch) -> Result<()>;

    /// Returns the last batch that is durable at the witness, waited for at most so long.
    ///
    /// # Errors
    /// If the witness is not to be reached any more, or refuses.
    fn confirmed(&mut self, wait: Duration) -> Result<u64>;
}

/// Where a witness is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// At the other end of this process's stdin and stdout (`-`). It cannot be connected to again.
    Stdio,
    /// At a unix socket (`unix:PATH`).
    Unix(PathBuf),
    /// At the end of a command, run by the shell.
    Command(String),
}

impl Peer {
    /// Parses the link as it is typed.
    pub fn typed(typed: &str) -> Self {
        match (typed, typed.strip_prefix("unix:")) {
            ("-", _) => Self::Stdio,
            (_, Some(path)) => Self::Unix(path.into()),
            _ => Self::Command(typed.to_owned()),
        }
    }

    fn connect(&self) -> io::Result<Connection> {
        let (stream, child) = match self {
            Self::Stdio => return Connection::over(io::stdin(), io::stdout()),
            Self::Unix(path) => (UnixStream::connect(path)?, None),
            Self::Command(command) => {
                let (ours, theirs) = UnixStream::pair()?;
                let (stdin, stdout) = (OwnedFd::from(theirs.try_clone()?), OwnedFd::from(theirs));
                (ours, Some(Command::new("sh").args(["-c", command]).stdin(stdin).stdout(stdout).spawn()?))
            }
        };
        let connection = Connection::over(stream.try_clone()?, stream.try_clone()?)?;
        Ok(Connection { _end: End { stream: Some(stream), child }, ..connection })
    }
}

struct Connection {
    to: Box<dyn Write + Send>,
    answers: Receiver<io::Result<Message>>,
    /// Dropped with it.
    _end: End,
}

/// Resources that end with a connection.
#[derive(Default)]
struct End {
    stream: Option<UnixStream>,
    child: Option<Child>,
}

impl Connection {
    fn over(from: impl Read + Send + 'static, to: impl Write + Send + 'static) -> io::Result<Self> {
        let (sender, answers) = channel();
        let mut from = BufReader::new(from);
        thread::Builder::new().name("witness".to_owned()).spawn(move || {
            loop {
                let answer = receive(&mut from)
                    .and_then(|answer| answer.ok_or_else(|| io::ErrorKind::UnexpectedEof.into()));
                let is_end = answer.is_err();
                if sender.send(answer).is_err() || is_end {
                    return;
                }
            }
        })?;
        Ok(Self { to: Box::new(to), answers, _end: End::default() })
    }

    fn send(&mut self, message: &Message) -> Result<()> {
        send(&mut self.to, message).map_err(|source| lost(&source))
    }

    /// `None` if there is no answer yet.
    fn answer(&mut self, wait: Duration) -> Result<Option<Message>> {
        match self.answers.recv_timeout(wait) {
            Ok(Ok(Message::Refused(why))) => Err(refused(format!("the witness: {why}"))),
            Ok(answer) => answer.map(Some).map_err(|source| lost(&source)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(lost(&io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Asks, and waits for the answers as they come, until one confirms.
    fn ask(&mut self, message: &Message) -> Result<(Vec<Message>, u64)> {
        self.send(message)?;
        let mut answers = Vec::new();
        loop {
            match self.answer(ANSWER_TIMEOUT)? {
                Some(Message::Confirmed(number)) => return Ok((answers, number)),
                Some(answer) => answers.push(answer),
                None => return Err(lost(&io::ErrorKind::TimedOut.into())),
            }
        }
    }
}

fn lost(source: &io::Error) -> Error {
    Error::new(ErrorKind::Disconnected, format!("no witness answers at the other end: {source}"))
}

impl Drop for End {
    fn drop(&mut self) {
        // Whatever is at the other end has ended, or nobody needs it any more.
        if let Some(stream) = &self.stream {
            stream.shutdown(Shutdown::Both).unwrap_or_default();
        }
        if let Some(child) = &mut self.child {
            child.kill().unwrap_or_default();
            child.wait().map(drop).unwrap_or_default();
        }
    }
}

/// A connection to a witness that is made again when it is lost.
pub struct Link {
    peer: Peer,
    /// Facts that are sent first on each connection.
    facts: Option<RunFacts>,
    connection: Option<Connection>,
    /// The batch that is not confirmed, and when it was sent.
    pending: Option<(Batch, Instant)>,
    confirmed: u64,
    /// Time for which a lost connection is retried.
    patience: Duration,
    /// Time and reason of the loss of the connection; `None` while it works.
    lost: Option<(Instant, String)>,
}

impl Link {
    /// Connects to the witness, for a run if `facts` are given. Later a lost connection is retried for
    /// `patience`.
    ///
    /// # Errors
    /// Fails if the witness does not answer, or refuses.
    pub fn connect(peer: Peer, facts: Option<RunFacts>, patience: Duration) -> Result<Self> {
        let mut link =
            Self { peer, facts, connection: None, pending: None, confirmed: 0, patience, lost: None };
        match link.open() {
            Err(error) if error.kind == ErrorKind::Disconnected => Err(refused(error.to_string())),
            opened => opened.map(|()| link),
        }
    }

    fn open(&mut self) -> Result<()> {
        let mut connection = self.peer.connect().map_err(|source| lost(&source))?;
        if let Some(facts) = &self.facts {
            (_, self.confirmed) = connection.ask(&Message::Run(facts.clone()))?;
            self.pending.take_if(|(batch, _)| batch.number <= self.confirmed);
            if let Some((batch, sent)) = &mut self.pending {
                connection.send(&Message::Batch(batch.clone()))?;
                *sent = Instant::now();
            }
        }
        (self.connection, self.lost) = (Some(connection), None);
        Ok(())
    }

    /// Notes that the connection is lost, and makes it again, unless that has been tried for too long.
    fn lose(&mut self, why: String) -> Result<()> {
        self.connection = None;
        let (since, why) = self.lost.get_or_insert_with(|| (Instant::now(), why)).clone();
        if since.elapsed() >= self.patience || self.peer == Peer::Stdio {
            let seconds = since.elapsed().as_secs();
            let stands = "what it has confirmed stands, and can be verified";
            return Err(refused(format!("after {seconds} s without an answer ({why}): {stands}")));
        }
        match self.open() {
            Err(error) if error.kind == ErrorKind::Disconnected => {
                self.lost = Some((since, error.to_string()));
                thread::sleep(RETRY);
                Ok(())
            }
            opened => opened,
        }
    }

    /// Sends a request and waits for the witness to confirm it. Returns the earlier replies and the last
    /// batch that is durable there.
    ///
    /// # Errors
    /// If the connection is lost, or the witness refuses.
    pub fn ask(&mut self, message: &Message) -> Result<(Vec<Message>, u64)> {
        let connection = self.connection.as_mut().ok_or_else(|| lost(&io::ErrorKind::NotConnected.into()))?;
        connection.ask(message)
    }

    /// Takes a connection that failed for lost; a witness that refuses is none.
    fn or_lose<T>(&mut self, done: Result<T>) -> Result<Option<T>> {
        match done {
            Err(error) if error.kind == ErrorKind::Disconnected => {
                self.lose(error.to_string()).map(|()| None)
            }
            done => done.map(Some),
        }
    }
}

impl Witness for Link {
    fn send(&mut self, batch: &Batch) -> Result<()> {
        self.pending = Some((batch.clone(), Instant::now()));
        // Without a connection it is sent when there is one again.
        let sent = self.connection.as_mut().map_or(Ok(()), |link| link.send(&Message::Batch(batch.clone())));
        self.or_lose(sent).map(drop)
    }

    fn confirmed(&mut self, wait: Duration) -> Result<u64> {
        let answer = match &mut self.connection {
            Some(connection) => connection.answer(wait),
            None => Err(lost(&io::ErrorKind::NotConnected.into())),
        };
        match self.or_lose(answer)?.flatten() {
            Some(Message::Confirmed(number)) => {
                self.confirmed = number;
                self.pending.take_if(|(batch, _)| batch.number <= number);
            }
            Some(_) => return Err(refused("the witness sent an unexpected answer")),
            None => {
                if self.pending.as_ref().is_some_and(|(_, sent)| sent.elapsed() > ANSWER_TIMEOUT) {
                    self.lose("it is silent".to_owned())?;
                }
            }
        }
        Ok(self.confirmed)
    }
}
