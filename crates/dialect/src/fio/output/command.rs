//! Job files as one command line (`--showcmd`).

use plumb_text::shell_word;

use crate::fio::Invocation;

/// Returns the command line equivalent to the job files, with shell quoting.
pub fn command(invocation: &Invocation) -> String {
    let global = invocation.global_command.iter();
    let jobs = invocation.reported.iter().flat_map(|job| &job.command);
    let words = global.chain(jobs).map(|word| shell_word(word));
    let mut line = words.fold("plumb fio".to_owned(), |line, word| line + " " + &word);
    line.push('\n');
    line
}
