//! Job files as one command line (`--showcmd`).

use crate::fio::Invocation;

/// The command line that does what the job files say. Words with blanks are quoted for a shell.
pub fn command(invocation: &Invocation) -> String {
    let global = invocation.global_command.iter();
    let jobs = invocation.reported.iter().flat_map(|job| &job.command);
    let words = global.chain(jobs).map(|word| quoted(word));
    let mut line = words.fold("plumb fio".to_owned(), |line, word| line + " " + &word);
    line.push('\n');
    line
}

fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_=/.,:%+@".contains(letter);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
