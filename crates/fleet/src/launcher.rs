//! Launcher that starts a command on a host: its own words, then the remote command as one argument for a
//! shell on the host, as ssh takes it. If the launcher starts no shell there, `sh -c` precedes the command.

use plumb_block::Nanos;
use plumb_text::shell_word;

use crate::message::short;

/// Placeholders in the words of a launcher, replaced by the name of the host.
const HOST: [&str; 3] = ["{host}", "{pod}", "{node}"];
/// Programs that pass the remote command to a shell: remote shells and shells. The first word may be a script
/// of the user that ends in one of these names. Later words must match exactly, as they may be anything, such
/// as the name of a partition.
const SHELLS: [&str; 15] = [
    "sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "zsh", "ssh", "autossh", "gsissh", "rsh", "remsh",
    "dbclient", "plink",
];

/// Command that starts agents on hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The program and its arguments, with placeholders of [`HOST`].
    words: Vec<String>,
    /// Name or path of plumb on the hosts.
    program: String,
}

impl Launcher {
    /// Creates a launcher; `None` without words. `program` is the name or path of plumb on the hosts. Adds
    /// `sh -c` if no word is a program that passes the remote command to a shell (`srun` and `kubectl exec`
    /// do not).
    pub fn new(mut words: Vec<String>, program: &str) -> Option<Self> {
        words.first()?;
        let gives_to_shell = |(at, word): (usize, &String)| {
            let program = word.rsplit('/').next().unwrap_or_default();
            SHELLS.iter().any(|shell| program == *shell || at == 0 && program.ends_with(shell))
        };
        if !words.iter().enumerate().any(gives_to_shell) {
            words.extend(["sh", "-c"].map(str::to_owned));
        }
        Some(Self { words, program: program.to_owned() })
    }

    /// Returns true if a word contains a placeholder. Without one all hosts would be the same.
    pub fn names_host(&self) -> bool {
        HOST.iter().any(|stands| self.words.iter().any(|word| word.contains(stands)))
    }

    /// Returns the command line that starts the agent of a host.
    pub fn agent(&self, host: &str) -> Vec<String> {
        self.command(host, format!("{} agent --stdio", shell_word(&self.program)))
    }

    /// Returns the command line that copies stdin to a program in a directory with an unpredictable name, and
    /// prints the directory.
    ///
    /// The copy is removed if it fails, or if sha256sum on the host does not report `hash`. A background
    /// shell removes the directory after `within`, in case the first shell is killed, the link fails during
    /// the copy, or the host cannot be reached again. By then the controller has given the host up, or an
    /// agent has started and removed its file. Signals are ignored until the background shell has started and
    /// inherited that.
    pub fn push(&self, host: &str, hash: &str, within: Nanos) -> Vec<String> {
        let seconds = within.0.div_ceil(1_000_000_000);
        let script = format!(
            "umask 077; trap '' HUP INT TERM; d=$(mktemp -d \"${{TMPDIR:-/tmp}}/plumb.XXXXXXXXXX\") || exit; \
             (sleep {seconds}; rm -rf \"$d\") </dev/null >/dev/null 2>&1 & \
             trap 'rm -rf \"$d\"' EXIT; trap 'exit 1' HUP INT PIPE TERM; \
             cat >\"$d/plumb\" && chmod 700 \"$d/plumb\" || exit; \
             if command -v sha256sum >/dev/null; then case $(sha256sum <\"$d/plumb\") in {hash}*) ;; \
             *) echo 'the copy is not what was sent' >&2; exit 1;; esac; fi; \
             trap '' HUP INT TERM; printf '%s\\n' \"$d\" && trap - EXIT"
        );
        self.command(host, script)
    }

    /// Returns the command line that starts the agent pushed to `directory`, and removes it after the agent's
    /// exit.
    pub fn pushed(&self, host: &str, directory: &str) -> Vec<String> {
        let directory = shell_word(directory);
        self.command(
            host,
            format!("{directory}/plumb agent --stdio --remove-program; s=$?; rm -rf {directory}; exit $s"),
        )
    }

    /// Returns the launcher with the name of the host inserted, always within a word.
    fn command(&self, host: &str, remote: String) -> Vec<String> {
        self.words.iter().map(|word| named(word, host)).chain([remote]).collect()
    }
}

/// Inserts the name of the host in a word. Placeholders within the name are not replaced; NUL, which cannot
/// occur in a word, marks the position meanwhile.
fn named(word: &str, host: &str) -> String {
    HOST.iter().fold(word.to_owned(), |word, stands| word.replace(stands, "\0")).replace('\0', host)
}

/// Parses the directory that a push printed last, after a possible greeting of the shell. It is passed to a
/// shell on the host as a single word only.
///
/// # Errors
/// Description of the output if it does not end with a directory.
pub fn pushed_to(printed: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(printed);
    let line = text.trim_end_matches(['\r', '\n']).rsplit('\n').next().unwrap_or_default();
    let is_path =
        line.starts_with('/') && !line.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER);
    let instead = || match line.is_empty() {
        true => "it printed nothing, expected the directory of the copy".to_owned(),
        false => format!("it printed `{}`, expected the directory of the copy", short(line)),
    };
    if is_path { Ok(line.to_owned()) } else { Err(instead()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_word_and_the_remote_command_another() {
        let words = ["ssh", "-p", "2222", "{host}"].map(str::to_owned).to_vec();
        let launcher = Launcher::new(words, "/opt/my plumb").unwrap();
        assert_eq!(
            launcher.agent("it's; rm -rf $HOME"),
            ["ssh", "-p", "2222", "it's; rm -rf $HOME", "'/opt/my plumb' agent --stdio"]
        );
        assert_eq!(Launcher::new(Vec::new(), "plumb"), None);
    }

    #[test]
    fn a_launcher_that_takes_words_gets_a_shell_and_the_others_do_not() {
        let of = |typed: &str| {
            let words = typed.split(' ').map(str::to_owned).collect();
            Launcher::new(words, "plumb").unwrap().agent("{pod}1").join(" ")
        };
        assert_eq!(of("srun -w {node}"), "srun -w {pod}1 sh -c plumb agent --stdio");
        assert_eq!(of("srun -p flash -w {node}"), "srun -p flash -w {pod}1 sh -c plumb agent --stdio");
        assert_eq!(of("kubectl exec -i {pod} --"), "kubectl exec -i {pod}1 -- sh -c plumb agent --stdio");
        for takes in
            ["/usr/bin/ssh {host}", "sshpass -e ssh {host}", "srun -w {host} bash -c", "sh -c exec {host}"]
        {
            assert!(
                of(takes).ends_with(" plumb agent --stdio") && !of(takes).contains(" sh -c plumb agent"),
                "{takes}"
            );
        }
        let names = |typed: &str| Launcher::new(vec![typed.to_owned()], "plumb").unwrap().names_host();
        assert_eq!(["pod/{pod}", "ssh"].map(names), [true, false]);
    }

    #[test]
    fn a_copy_that_is_cut_off_or_altered_leaves_nothing() {
        let there = tempfile::tempdir().unwrap();
        let launcher = Launcher::new(vec!["sh".to_owned(), "-c".to_owned()], "plumb").unwrap();
        let content = b"#!/bin/sh\n";
        let hash = plumb_state::digest::sha256_hex_of(&content[..]).unwrap();
        let push = |sent: &[u8]| {
            let words = launcher.push("a", &hash, Nanos::secs(30));
            let program = there.path().join("sent");
            std::fs::write(&program, sent).unwrap();
            let done = std::process::Command::new(&words[0])
                .args(&words[1..])
                .env("TMPDIR", there.path())
                .stdin(std::fs::File::open(&program).unwrap())
                .output()
                .unwrap();
            std::fs::remove_file(program).unwrap();
            (done.status.success(), pushed_to(&done.stdout).ok())
        };
        let is_checked = std::process::Command::new("sha256sum").arg("/dev/null").output().is_ok();
        if is_checked {
            assert_eq!(push(&content[..4]), (false, None));
            assert_eq!(std::fs::read_dir(there.path()).unwrap().count(), 0);
        }
        let (done, directory) = push(content);
        assert!(done && std::path::Path::new(&directory.unwrap()).join("plumb").exists());
    }

    #[test]
    fn only_a_path_is_where_a_push_went() {
        for printed in [&b"/tmp/plumb.x\r\n"[..], b"Welcome\n\xff\n/tmp/plumb.x\n"] {
            assert_eq!(pushed_to(printed).unwrap(), "/tmp/plumb.x");
        }
        for (printed, why) in [
            (&b"plumb.x"[..], "`plumb.x`"),
            (b"/tmp/a\nbye\n", "`bye`"),
            (b"", "nothing"),
            (b"/\xff", "it printed"),
        ] {
            let told = pushed_to(printed).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }
}
