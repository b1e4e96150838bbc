//! Both ends of the connection between a writer or a verification and a witness: lines of JSON over stdin and stdout of a command
//! (such as `ssh host plumb prove witness --dir D`), over one's own, or over a unix socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use plumb_block::in_one_line;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::record::{Record, Segment};
use super::{Answer, Ask, Batch, RunFacts, WitnessError};

/// The longest line: a batch of the largest window is far below.
const LINE_MAX: u64 = 1 << 20;
/// How long an answer may take before the connection counts as lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// How long to wait before the next try to connect.
const RETRY: Duration = Duration::from_millis(200);

/// Whom the writer tells what was answered.
pub trait Witness {
    /// Sends a batch, which is not confirmed yet. The one before it is.
    ///
    /// # Errors
    /// If it can never be recorded.
    fn send(&mut self, batch: &Batch) -> Result<(), WitnessError>;

    /// The last batch that is durable at the witness, waited for at most so long.
    ///
    /// # Errors
    /// If the witness is not to be reached any more, or refuses.
    fn confirmed(&mut self, wait: Duration) -> Result<u64, WitnessError>;
}

/// In the same process, for drives whose power is not that of this machine.
impl Witness for Segment {
    fn send(&mut self, batch: &Batch) -> Result<(), WitnessError> {
        self.record(batch)
    }

    fn confirmed(&mut self, _: Duration) -> Result<u64, WitnessError> {
        Ok(self.last())
    }
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
    /// As it is typed.
    pub fn typed(typed: &str) -> Self {
        match (typed, typed.strip_prefix("unix:")) {
            ("-", _) => Self::Stdio,
            (_, Some(path)) => Self::Unix(path.into()),
            _ => Self::Command(typed.to_owned()),
        }
    }

    fn connect(&self) -> io::Result<Connection> {
        let (from, to, child): (Box<dyn Read + Send>, Box<dyn Write + Send>, _) = match self {
            Self::Stdio => (Box::new(io::stdin()), Box::new(io::stdout()), None),
            Self::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                (Box::new(stream.try_clone()?), Box::new(stream), None)
            }
            Self::Command(command) => {
                let mut shell = Command::new("sh");
                let mut child =
                    shell.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
                let (Some(from), Some(to)) = (child.stdout.take(), child.stdin.take()) else {
                    return Err(io::ErrorKind::BrokenPipe.into());
                };
                (Box::new(from), Box::new(to), Some(child))
            }
        };
        let (sender, answers) = channel();
        let mut from = BufReader::new(from);
        thread::Builder::new().name("witness".to_owned()).spawn(move || {
            loop {
                let answer =
                    read_line(&mut from).and_then(|line| line.ok_or(io::ErrorKind::UnexpectedEof.into()));
                let is_end = answer.is_err();
                if sender.send(answer).is_err() || is_end {
                    return;
                }
            }
        })?;
        Ok(Connection { to, answers, child })
    }
}

struct Connection {
    to: Box<dyn Write + Send>,
    answers: Receiver<io::Result<Answer>>,
    child: Option<Child>,
}

impl Connection {
    fn ask(&mut self, ask: &Ask) -> io::Result<()> {
        write_line(&mut self.to, ask)
    }

    /// `None` if there is no answer yet.
    fn answer(&mut self, wait: Duration) -> io::Result<Option<Answer>> {
        match self.answers.recv_timeout(wait) {
            Ok(answer) => answer.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It has ended, or nobody needs it any more.
            child.kill().unwrap_or_default();
            child.wait().map(drop).unwrap_or_default();
        }
    }
}

/// A connection to a witness that is made again when it is lost.
pub struct Link {
    peer: Peer,
    /// What is said first on each connection.
    facts: Option<RunFacts>,
    connection: Option<Connection>,
    /// The batch that is not confirmed.
    pending: Option<Batch>,
    asked: Instant,
    confirmed: u64,
    /// For how long to try again.
    patience: Duration,
    /// Since when nobody answers, and why.
    lost: Option<(Instant, String)>,
}

impl Link {
    /// Connects, for a run if there are facts. A witness that has been lost is tried again for `patience`.
    ///
    /// # Errors
    /// If nobody answers, or the witness refuses.
    pub fn connect(peer: Peer, facts: Option<RunFacts>, patience: Duration) -> Result<Self, WitnessError> {
        let asked = Instant::now();
        let mut link =
            Self { peer, facts, connection: None, pending: None, asked, confirmed: 0, patience, lost: None };
        match link.open() {
            Err(WitnessError::Io { source, .. }) => {
                Err(WitnessError::Unreachable { seconds: 0, why: source.to_string() })
            }
            opened => opened.map(|()| link),
        }
    }

    fn open(&mut self) -> Result<(), WitnessError> {
        let failed = |error| WitnessError::io("connect to", "the witness")(error);
        let mut connection = self.peer.connect().map_err(failed)?;
        if let Some(facts) = &self.facts {
            connection.ask(&Ask::Run(facts.clone())).map_err(failed)?;
            self.confirmed = match connection.answer(ANSWER_TIMEOUT).map_err(failed)? {
                Some(Answer::Confirmed(number)) => number,
                Some(Answer::Refused(why)) => return Err(WitnessError::Refused(why)),
                Some(_) => return Err(WitnessError::Refused("it answered something else".to_owned())),
                None => return Err(failed(io::ErrorKind::TimedOut.into())),
            };
            if let Some(pending) = self.pending.take_if(|pending| pending.number > self.confirmed) {
                connection.ask(&Ask::Batch(pending.clone())).map_err(failed)?;
                self.pending = Some(pending);
            }
        }
        self.asked = Instant::now();
        self.connection = Some(connection);
        self.lost = None;
        Ok(())
    }

    /// The connection is lost: it is made again, unless that has been tried for too long.
    fn lose(&mut self, why: String) -> Result<(), WitnessError> {
        self.connection = None;
        let (since, why) = self.lost.get_or_insert_with(|| (Instant::now(), why)).clone();
        if since.elapsed() >= self.patience || self.peer == Peer::Stdio {
            return Err(WitnessError::Unreachable { seconds: since.elapsed().as_secs(), why });
        }
        match self.open() {
            Err(WitnessError::Io { source, .. }) => {
                self.lost = Some((since, source.to_string()));
                thread::sleep(RETRY);
                Ok(())
            }
            opened => opened,
        }
    }

    /// Asks, and waits for the answers as they come: the first, and all until one is no [`Answer::Run`] or [`Answer::Batch`].
    ///
    /// # Errors
    /// If the connection is lost, or the witness refuses.
    pub fn ask(&mut self, ask: &Ask) -> Result<Vec<Answer>, WitnessError> {
        let failed = |error| WitnessError::io("ask", "the witness")(error);
        let Some(connection) = &mut self.connection else {
            return Err(failed(io::ErrorKind::NotConnected.into()));
        };
        connection.ask(ask).map_err(failed)?;
        let mut answers = Vec::new();
        loop {
            match connection.answer(ANSWER_TIMEOUT).map_err(failed)? {
                Some(Answer::Refused(why)) => return Err(WitnessError::Refused(why)),
                Some(answer @ (Answer::Run(_) | Answer::Batch(_))) => answers.push(answer),
                Some(answer) => {
                    answers.push(answer);
                    return Ok(answers);
                }
                None => return Err(failed(io::ErrorKind::TimedOut.into())),
            }
        }
    }
}

impl Witness for Link {
    fn send(&mut self, batch: &Batch) -> Result<(), WitnessError> {
        self.pending = Some(batch.clone());
        self.asked = Instant::now();
        match self.connection.as_mut().map(|connection| connection.ask(&Ask::Batch(batch.clone()))) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => self.lose(error.to_string()),
            None => Ok(()),
        }
    }

    fn confirmed(&mut self, wait: Duration) -> Result<u64, WitnessError> {
        let answer = match &mut self.connection {
            Some(connection) => connection.answer(wait),
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        match answer {
            Ok(Some(Answer::Confirmed(number))) => {
                self.confirmed = number;
                self.pending.take_if(|pending| pending.number <= number);
            }
            Ok(Some(Answer::Refused(why))) => return Err(WitnessError::Refused(why)),
            Ok(Some(_)) => return Err(WitnessError::Refused("it answered something else".to_owned())),
            Ok(None) if self.pending.is_some() && self.asked.elapsed() > ANSWER_TIMEOUT => {
                self.lose("it is silent".to_owned())?;
            }
            Ok(None) => {}
            Err(error) => self.lose(error.to_string())?,
        }
        Ok(self.confirmed)
    }
}

/// Is a witness for one connection, until the other side hangs up. What was asked is told to `heard` once it is done: what
/// is confirmed is durable in `directory`.
///
/// # Errors
/// If the record is not known to be durable, or the connection fails. Whatever was confirmed stands.
pub fn serve(
    directory: &Path,
    from: impl Read,
    mut to: impl Write,
    heard: &mut dyn FnMut(Ask),
) -> Result<(), WitnessError> {
    let lost = |error| WitnessError::io("talk to", "the writer")(error);
    let mut from = BufReader::new(from);
    let mut segment = None;
    loop {
        let ask = match read_line::<Ask>(&mut from) {
            Ok(None) => return Ok(()),
            Ok(Some(ask)) => ask,
            Err(error) => {
                let why = format!("this is nothing that a witness is asked: {error}");
                write_line(&mut to, &Answer::Refused(why)).unwrap_or_default();
                return Err(lost(error));
            }
        };
        match carry_out(directory, &ask, &mut segment, &mut to) {
            Ok(number) => write_line(&mut to, &Answer::Confirmed(number)).map_err(lost)?,
            Err(error) => {
                let why = match &error {
                    WitnessError::Refused(why) => why.clone(),
                    error => in_one_line(error),
                };
                write_line(&mut to, &Answer::Refused(why)).unwrap_or_default();
                return Err(error);
            }
        }
        heard(ask);
    }
}

fn carry_out(
    directory: &Path,
    ask: &Ask,
    segment: &mut Option<Segment>,
    to: &mut impl Write,
) -> Result<u64, WitnessError> {
    let no_run = || WitnessError::Refused("no run was begun on this connection".to_owned());
    match ask {
        Ask::Run(facts) => Ok(segment.insert(Segment::begin(directory, facts)?).last()),
        Ask::Batch(batch) => {
            let segment = segment.as_mut().ok_or_else(no_run)?;
            segment.record(batch)?;
            Ok(segment.last())
        }
        Ask::Fetch { target, identity } => {
            let record = Record::newest(directory, target, identity.as_deref())?;
            let confirmed = record.confirmed();
            *segment = Some(Segment::begin(directory, &record.facts)?);
            let lost = |error| WitnessError::io("talk to", "the verification")(error);
            write_line(to, &Answer::Run(record.facts)).map_err(lost)?;
            for batch in record.batches {
                write_line(to, &Answer::Batch(batch)).map_err(lost)?;
            }
            Ok(confirmed)
        }
        Ask::Verified(document) => {
            segment.as_mut().ok_or_else(no_run)?.verified(document)?;
            Ok(0)
        }
    }
}

fn write_line(to: &mut (impl Write + ?Sized), what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// The next line; none at the end. A line without an end was cut off, and is an end too.
fn read_line<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    from.take(LINE_MAX).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') {
        return Ok(Some(serde_json::from_slice(&line)?));
    }
    if line.len() as u64 == LINE_MAX {
        return Err(io::Error::other(format!("a line of more than {LINE_MAX} bytes")));
    }
    Ok(None)
}
