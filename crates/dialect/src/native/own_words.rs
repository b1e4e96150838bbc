//! Advice for users who type options of other programs: the equivalent words of plumb.

use super::foreign::{Foreign, translate};

/// Programs whose command lines plumb accepts, each with the plumb command that runs them.
const PROGRAMS: [(&str, &str); 2] = [("fio", "fio"), ("DiskSpd", "diskspd")];

/// Returns lines that translate options of other programs among the arguments of `plumb load` or `plumb
/// check`; `None` if there are none, or for other commands.
pub fn in_own_words(command: &str, arguments: &[String]) -> Option<String> {
    let (found, line) = translate(arguments);
    let said = match command {
        _ if found.is_empty() => return None,
        "load" => {
            format!("{}\n\nIn plumb's words:\n  plumb load {}", list(&found), line.join(" "))
        }
        "check" => list(&found.iter().map(of_check).collect::<Vec<_>>()),
        _ => return None,
    };
    let runs = PROGRAMS.iter().filter(|(program, _)| found.iter().any(|one| one.program == *program));
    let runs = runs.map(|(program, command)| {
        format!("`plumb {command}` runs command lines of {program} as they are.\n")
    });
    Some(format!("{said}\n\n{}", runs.collect::<String>()))
}

/// Returns the translation for `plumb check`, which accepts no words of a load.
fn of_check(one: &Foreign) -> Foreign {
    let native = one.native.replace("--duration", "--seconds");
    let is_taken = native.starts_with('(') || native.starts_with("--seconds") || !native.starts_with("--");
    let native = if is_taken { native } else { format!("(a check has its own load; plumb load: {native})") };
    Foreign { native, ..one.clone() }
}

fn list(found: &[Foreign]) -> String {
    let mut programs: Vec<&str> = found.iter().map(|one| one.program).collect();
    programs.dedup();
    let width = found.iter().map(|one| one.typed.chars().count()).max().unwrap_or(0);
    let line = |one: &Foreign| format!("\n  {:width$}  {}", one.typed, one.native);
    format!(
        "options of {}; in plumb they are:{}",
        programs.join(" and "),
        found.iter().map(line).collect::<String>()
    )
}
