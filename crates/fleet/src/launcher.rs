//! What is started to reach a host: the launcher's words, then the remote command as one word for the shell of the host, as ssh
//! takes it.

use plumb_report::printable::shell_word;

/// In the words of a launcher it stands for the name of the host.
pub const HOST: &str = "{host}";

/// How hosts are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The program and its arguments, with [`HOST`] in them.
    words: Vec<String>,
    /// What plumb is called there.
    program: String,
}

impl Launcher {
    /// The launcher of these words; `None` if there is none. `program` is what plumb is called on the hosts.
    pub fn new(words: Vec<String>, program: &str) -> Option<Self> {
        words.first()?;
        Some(Self { words, program: program.to_owned() })
    }

    /// The command line that starts the agent of a host.
    pub fn agent(&self, host: &str) -> Vec<String> {
        self.command(host, format!("{} agent --stdio", shell_word(&self.program)))
    }

    /// The command line that copies its stdin to a program of a name that nobody can guess, and prints the directory of it.
    pub fn push(&self, host: &str) -> Vec<String> {
        let script = "umask 077; d=$(mktemp -d \"${TMPDIR:-/tmp}/plumb.XXXXXXXXXX\") && cat >\"$d/plumb\" && chmod 700 \"$d/plumb\" \
                      && printf '%s\\n' \"$d\"";
        self.command(host, script.to_owned())
    }

    /// The command line that starts the agent that was pushed to `directory`, and takes it away when it has ended.
    pub fn pushed(&self, host: &str, directory: &str) -> Vec<String> {
        let directory = shell_word(directory);
        self.command(
            host,
            format!("{directory}/plumb agent --stdio --remove-program; s=$?; rm -rf {directory}; exit $s"),
        )
    }

    /// The launcher with the name of the host in it: as part of a word, never as words.
    fn command(&self, host: &str, remote: String) -> Vec<String> {
        let named = self.words.iter().map(|word| word.replace(HOST, host));
        named.chain([remote]).collect()
    }
}

/// The directory that a push has printed; `None` if it is none. What a host prints becomes a word of a shell there, nothing more.
pub fn pushed_to(printed: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(printed).ok()?.trim_end_matches(['\r', '\n']);
    (line.starts_with('/') && !line.chars().any(char::is_control)).then(|| line.to_owned())
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
    fn only_a_path_is_where_a_push_went() {
        assert_eq!(pushed_to(b"/tmp/plumb.x\r\n").as_deref(), Some("/tmp/plumb.x"));
        for printed in [&b"plumb.x"[..], b"/tmp/a\n/tmp/b\n", b"", b"\xff/"] {
            assert_eq!(pushed_to(printed), None);
        }
    }
}
