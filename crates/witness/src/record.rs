//! Record of a witness: a directory of files, one for each session with a run; and the witness that writes
//! it.
//!
//! ```text
//!   DIR/000017-0123456789abcdef.log     NUMBER-RUN.log; numbers go up, so the newest run has the highest
//!       line 1   Run                    facts of the run that do not change
//!       line 2.. Batch                  in the order sent; each durable before it is confirmed
//!                Verified               result of a verification
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;

use plumb_block::in_one_line;
use plumb_state::frame::{Decoder, send};
use plumb_state::sealed_lines;

use crate::error::{Error, Result, cannot};
use crate::message::{Batch, Message, RunFacts};

/// Everything recorded about a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Facts of the run that do not change.
    pub facts: RunFacts,
    /// All batches, from number 1 without a gap.
    pub batches: Vec<Batch>,
}

impl Record {
    /// Creates a record without batches.
    pub const fn new(facts: RunFacts) -> Self {
        Self { facts, batches: Vec::new() }
    }

    /// Returns the number of the last durable batch; 0 before the first.
    pub fn confirmed(&self) -> u64 {
        self.batches.last().map_or(0, |batch| batch.number)
    }

    /// Finds the newest run in `directory` on this drive, by its identity, or by the name of the target
    /// without one.
    ///
    /// # Errors
    /// If there is none, or the record is damaged.
    pub fn newest(directory: &Path, target: &str, identity: Option<&str>) -> Result<Self> {
        let files = files(directory)?;
        let mut others = BTreeSet::new();
        for file in files.iter().rev() {
            let Some(facts) = file.facts()? else { continue };
            let is_it = match (identity, &facts.identity) {
                (Some(identity), Some(known)) => identity == known,
                (None, None) => target == facts.target,
                _ => false,
            };
            if is_it && let Some(record) = Self::of_run(&files, &facts.plan.name())? {
                return Ok(record);
            }
            others.insert(facts.drive().to_owned());
        }
        let (drive, place) = (identity.unwrap_or(target), directory.display());
        let others: Vec<String> = others.into_iter().collect();
        let others = if others.is_empty() { "no drive".to_owned() } else { others.join(", ") };
        Err(Error::not_measured(format!("{place} has no run on {drive}; it knows {others}")))
    }

    /// A run whose first line is incomplete does not count: it was not confirmed, so nothing was written.
    fn of_run(files: &[RecordFile], run: &str) -> Result<Option<Self>> {
        let mut record: Option<Self> = None;
        let mut batches = BTreeMap::new();
        for RecordFile { path, .. } in files.iter().filter(|file| file.run == run) {
            let damaged = |what: String| Error::damaged(path.display(), what);
            let bytes = fs::read(path).map_err(cannot(format!("read {}", path.display())))?;
            let lines =
                sealed_lines::decode(&bytes, |_, _| Ok(())).map_err(|damage| damaged(damage.to_string()))?;
            for line in lines.records {
                match (line, &record) {
                    (Message::Run(facts), None) => record = Some(Self::new(facts)),
                    (Message::Run(facts), Some(record)) if record.facts == facts => {}
                    (Message::Batch(batch), Some(_)) => {
                        let earlier = batches.insert(batch.number, batch.clone());
                        if earlier.is_some_and(|earlier| earlier != batch) {
                            return Err(damaged(format!("batch {} is not what it was before", batch.number)));
                        }
                    }
                    (Message::Verified(_), Some(_)) => {}
                    _ => return Err(damaged("a line that does not belong to this run".to_owned())),
                }
            }
        }
        let Some(mut record) = record else { return Ok(None) };
        if let Some(missing) = (1..).zip(batches.keys()).find(|(expected, number)| expected != *number) {
            let what = format!("batch {} is missing", missing.0);
            return Err(Error::damaged(format!("run {run}"), what));
        }
        record.batches = batches.into_values().collect();
        Ok(Some(record))
    }
}

/// File of the record, identified by its name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RecordFile {
    number: u64,
    run: String,
    path: PathBuf,
}

impl RecordFile {
    /// Reads the facts of the run from the first line. Returns `None` if that line is incomplete.
    fn facts(&self) -> Result<Option<RunFacts>> {
        let mut line = Vec::new();
        File::open(&self.path)
            .and_then(|file| BufReader::new(file).read_until(b'\n', &mut line))
            .map_err(cannot(format!("read {}", self.path.display())))?;
        let first = sealed_lines::decode(&line, |_, _| Ok(())).map(|mut lines| lines.records.pop());
        match first {
            Ok(Some(Message::Run(facts))) => Ok(Some(facts)),
            _ if !line.ends_with(b"\n") => Ok(None),
            _ => Err(Error::damaged(self.path.display(), "its first line is not as it was written")),
        }
    }
}

/// Returns the files of a record in order; empty if the directory does not exist.
fn files(directory: &Path) -> Result<Vec<RecordFile>> {
    let failed = cannot(format!("read {}", directory.display()));
    let entries = match fs::read_dir(directory) {
        Err(absent) if absent.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(&failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(&failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".log")?.split_once('-'));
        if let Some((Ok(number), run)) = name.map(|(number, run)| (number.parse(), run.to_owned())) {
            files.push(RecordFile { number, run, path });
        }
    }
    files.sort();
    Ok(files)
}

/// File of the record that is being written.
#[derive(Debug)]
pub struct Session {
    path: PathBuf,
    file: File,
    /// Number of the last durable batch of the run.
    pub(crate) confirmed: u64,
}

impl Session {
    /// Creates the file of a session in `directory`, which is created if necessary. The run is durable on
    /// return.
    ///
    /// # Errors
    /// If another run has this name, or the file system fails.
    pub fn begin(directory: &Path, facts: &RunFacts) -> Result<Self> {
        fs::create_dir_all(directory).map_err(cannot(format!("make {}", directory.display())))?;
        let (files, run) = (files(directory)?, facts.plan.name());
        let known = Record::of_run(&files, &run)?;
        if known.as_ref().is_some_and(|known| known.facts != *facts) {
            return Err(Error::not_measured(format!("there is another run {run}")));
        }
        let number = files.last().map_or(1, |file| file.number.saturating_add(1));
        let path = directory.join(format!("{number:06}-{run}.log"));
        let made = OpenOptions::new().append(true).create_new(true).open(&path);
        let file = made.map_err(cannot(format!("make {}", path.display())))?;
        let mut session = Self { path, file, confirmed: known.map_or(0, |known| known.confirmed()) };
        session.append(&Message::Run(facts.clone()))?;
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(cannot(format!("sync {}", directory.display())))?;
        Ok(session)
    }

    /// Returns the number of the last durable batch.
    pub const fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// Records a batch durably. A batch that is already recorded is ignored.
    ///
    /// # Errors
    /// If the batch does not follow the last one, or may not be durable. The witness must end then.
    pub fn record(&mut self, batch: &Batch) -> Result<()> {
        if batch.number <= self.confirmed {
            return Ok(());
        }
        if batch.number != self.confirmed + 1 {
            let why = format!("batch {} was sent, expected batch {}", batch.number, self.confirmed + 1);
            return Err(Error::not_measured(why));
        }
        self.append(&Message::Batch(batch.clone()))?;
        self.confirmed = batch.number;
        Ok(())
    }

    fn append(&mut self, line: &Message) -> Result<()> {
        let sealed = sealed_lines::encode(line).map_err(io::Error::from);
        let appended =
            sealed.and_then(|line| self.file.write_all(&line)).and_then(|()| self.file.sync_data());
        appended.map_err(cannot(format!("write durably to {}", self.path.display())))
    }
}

/// Serves any number of writers at a unix socket, also concurrently, and returns only on failure. Failures of
/// connections are reported to `say`.
///
/// # Errors
/// If the socket cannot be served.
pub fn serve_at(socket: &Path, directory: &Path, say: fn(&str)) -> Result<Infallible> {
    let listener = listen(socket).map_err(cannot(format!("listen at {}", socket.display())))?;
    loop {
        let (stream, _) = listener.accept().map_err(cannot("accept a writer"))?;
        let directory = directory.to_owned();
        thread::spawn(move || {
            if let Err(error) = serve(&directory, &stream, &stream, &mut |_| ()) {
                say(&in_one_line(&error));
            }
        });
    }
}

/// Opens a socket for this user alone, and replaces one that is no longer served.
fn listen(socket: &Path) -> io::Result<UnixListener> {
    let is_left = fs::symlink_metadata(socket).is_ok_and(|found| found.file_type().is_socket())
        && UnixStream::connect(socket).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_left {
        fs::remove_file(socket)?;
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves one connection as a witness until the peer closes it. Each message is passed to `heard` once it is
/// carried out: confirmed batches are durable in `directory`.
///
/// # Errors
/// If a record may not be durable, or the connection fails. Everything confirmed remains valid.
pub fn serve(
    directory: &Path,
    mut from: impl Read,
    mut to: impl Write,
    heard: &mut dyn FnMut(Message),
) -> Result<()> {
    let lost = cannot("talk to the writer");
    let mut decoder = Decoder::default();
    let mut session = None;
    loop {
        let done = match decoder.receive(&mut from) {
            Err(ended) if ended.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            // The sending half may still work. A writer whose connection broke connects again.
            Err(torn) if torn.kind() == io::ErrorKind::ConnectionAborted => return Err(lost(torn)),
            Err(error) => Err(lost(error)),
            Ok(message) => {
                carry_out(directory, &message, &mut session, &mut to).map(|number| (message, number))
            }
        };
        match done {
            Ok((message, number)) => {
                send(&mut to, &Message::Confirmed(number)).map_err(&lost)?;
                heard(message);
            }
            Err(error) => {
                // The peer may be gone; the refusal is the error of this side as well.
                send(&mut to, &Message::Refused(in_one_line(&error))).unwrap_or_default();
                return Err(error);
            }
        }
    }
}

/// Carries out a message. Returns the number of the last durable batch.
fn carry_out(
    directory: &Path,
    message: &Message,
    session: &mut Option<Session>,
    to: &mut impl Write,
) -> Result<u64> {
    match (message, &mut *session) {
        (Message::Run(facts), _) => Ok(session.insert(Session::begin(directory, facts)?).confirmed),
        (Message::Fetch { target, identity }, _) => {
            let Record { facts, batches } = Record::newest(directory, target, identity.as_deref())?;
            let confirmed = session.insert(Session::begin(directory, &facts)?).confirmed;
            let batches = batches.into_iter().map(Message::Batch);
            for part in [Message::Run(facts)].into_iter().chain(batches) {
                send(to, &part).map_err(cannot("talk to the verification"))?;
            }
            Ok(confirmed)
        }
        (Message::Batch(batch), Some(session)) => session.record(batch).map(|()| session.confirmed),
        (Message::Verified(_), Some(session)) => session.append(message).map(|()| session.confirmed),
        _ => Err(Error::not_measured("no run was begun on this connection")),
    }
}
