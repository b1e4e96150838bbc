//! Outline of a proof, for all formats. All text in it is printable.

use plumb_path::Severity;
use plumb_text::printable;

use crate::document::ProofDocument;
use crate::document::proof::{
    ChangeKind, CommandRole, Coverage, Failure, MinimalCase, NeedlessSync, ProfileResult, RecordingFacts,
    VerifiedBy, WindowResult,
};
use crate::facts::{Fact, Figure, facts_of};
use crate::headline::{Headline, capital, incomplete, sentence};
use crate::outline::{Item, Outline, Section};
use crate::quantity::{self, NONE, bytes, count, counted, duration, or_dash};
use crate::terminal::{Cell, Ink, Table};

/// Maximum number of commands named individually.
const NAMED: usize = 3;
/// Note in every report of a proof.
pub(crate) const HOLDS_FOR: &str = "Proved means: of this recording, on a drive of this profile, every state that a power cut \
    may leave was explored, and the check found nothing wrong in any. It says nothing about another run of the program, \
    another drive, or anything that the check does not look at.";

/// Maximum number of windows shown individually.
pub(crate) const WINDOWS_MAX: usize = 60;

/// Returns the report of `document`.
pub(crate) fn outline(document: &ProofDocument) -> Outline<'_> {
    Outline {
        command: command(document).trim_start_matches("plumb "),
        of: &document.subject,
        headline: headline(document),
        figures: figures(document),
        sections: sections(document),
        facts_title: "How it was recorded",
        facts: facts(document),
        environment: &document.environment,
        run_directory: document.run_directory.as_deref(),
    }
}

/// Returns the command that created the proof.
pub(crate) fn command(document: &ProofDocument) -> &'static str {
    match document.environment.argv.get(1..3) {
        Some([first, second]) if first == "prove" && second == "ci" => "plumb prove ci",
        _ => "plumb prove app",
    }
}

/// Returns the sections except headline and facts, in order.
fn sections(document: &ProofDocument) -> Vec<Section> {
    let what_to_do = |failure: &Failure| {
        let replay = printable(&failure.replay);
        let is_command = failure.replay.starts_with("plumb ");
        [
            Item::Line(words(failure)),
            Item::Remedy(change(document, failure)),
            if is_command { Item::Command(replay) } else { Item::Line(replay) },
        ]
    };
    let explored: Vec<String> =
        [Some(coverage(document)), flushes(document), found_in(document)].into_iter().flatten().collect();
    let needless: Vec<String> = syncs_left_out(document).into_iter().collect();
    let (shown, left_out) = windows(document, WINDOWS_MAX);
    let mut windows = vec![Item::Table(shown)];
    windows.extend((left_out > 0).then(|| Item::Line(format!("{} not shown.", counted_more(&left_out)))));
    vec![
        Section::new("What fails", Item::table(failures(document))),
        Section::new("What to change", document.failures.iter().flat_map(what_to_do).collect()),
        Section::new("Under each drive profile", Item::table(profiles(document))),
        Section::new("What was explored", Item::lines(&explored)),
        Section::new("Sync calls that can go", Item::lines(&needless)),
        Section::new("Why it is not proved", Item::lines(&document.not_proved_because)),
        Section::new("Windows", windows).detail(),
        Section::new("Recordings with writeback chosen", Item::table(recordings(document))).detail(),
        Section::new("Notes", Item::lines(&document.notes)),
    ]
}

/// Builds the headline of a proof.
pub(crate) fn headline(document: &ProofDocument) -> Headline {
    let states = &document.states;
    let (severity, label) = match document.level.as_str() {
        "danger" if is_accepted(document) => (Some(Severity::Warning), "Accepted"),
        "danger" => (Some(Severity::Danger), "Danger"),
        "warning" => (Some(Severity::Warning), "Not proved"),
        _ if document.proved => (None, "Proved"),
        _ => (None, "Not proved"),
    };
    let on = match document.file_system.as_str() {
        "none" => "without a file system".to_owned(),
        _ if is_by_calls(document) => format!("on {}", document.model),
        system => format!("on {system}"),
    };
    let drive = match is_by_calls(document) {
        true => String::new(),
        false => format!(", on a drive of the profile {}", document.drive),
    };
    let mut meaning = format!(
        "{} {on}{drive}: {} that a power cut may leave, {} of them distinct; {}.",
        document.subject,
        counted(states.explored, "state"),
        count(states.distinct),
        if states.failing == 0 { "none fails".to_owned() } else { fail(states.failing) },
    );
    if document.proved {
        meaning.push_str(match is_by_calls(document) {
            true => " This holds for this recording, this model and this check.",
            false => " This holds for this recording, this drive profile and this check.",
        });
    }
    if let Some(accepted) = accepted(document) {
        meaning = format!("{meaning} {accepted}");
    }
    Headline {
        severity,
        label,
        verdict: capital(&sentence(&document.headline)),
        meaning,
        quality: coverage(document),
        incomplete: incomplete(document.complete, document.incomplete_because.as_deref()),
    }
}

/// Returns true if there are failures and the baseline of `plumb prove ci` lists all of them.
fn is_accepted(document: &ProofDocument) -> bool {
    !document.failures.is_empty() && document.failures.iter().all(|failure| failure.accepted)
}

/// Returns how many of the failures the baseline accepts, in words; `None` if it accepts none.
fn accepted(document: &ProofDocument) -> Option<String> {
    let (all, accepted) =
        (document.failures.len(), document.failures.iter().filter(|failure| failure.accepted).count());
    match (accepted, all) {
        (0, _) => None,
        (1, 1) => Some("The baseline accepts this failure.".to_owned()),
        (accepted, all) if accepted == all => Some(format!("The baseline accepts all {all} failures.")),
        (1, all) => Some(format!("The baseline accepts 1 of {all} failures.")),
        (accepted, all) => Some(format!("The baseline accepts {accepted} of {all} failures.")),
    }
}

/// Returns the number of failing states of a class, with its verb: `1 state fails`.
pub(crate) fn states_that(failure: &Failure) -> String {
    let verb = if failure.states == 1 { "fails" } else { "fail" };
    format!("{} {verb}", counted(failure.states, "state"))
}

/// Returns a number of states with its verb: `1 fails`, `2 fail`.
fn fail(states: u64) -> String {
    format!("{} {}", count(states), if states == 1 { "fails" } else { "fail" })
}

/// Returns the number of failing states out of all: `1 of 40 states fails`.
fn fail_of(failing: u64, all: &str) -> String {
    format!("{} of {all} {}", count(failing), if failing == 1 { "fails" } else { "fail" })
}

/// Returns true if the work was recorded from system calls alone, so that there is no drive.
fn is_by_calls(document: &ProofDocument) -> bool {
    document.recording.attached_by == RecordingFacts::BY_SYSTEM_CALLS
}

/// Returns the minimal case in words: `the write to t.db-journal (directory, 4 KiB) was dropped`.
pub(crate) fn case(case: &MinimalCase) -> String {
    let dropped = listed(&case.dropped, |_| String::new());
    let torn = listed(&case.torn, |group| {
        let survives: Option<u64> = group.iter().map(|one| one.survives).sum();
        format!(", of which {} survive,", or_dash(survives, |survives| bytes(survives as f64)))
    });
    let was = |of: &[CommandRole]| if of.len() == 1 { "was" } else { "were" };
    match (case.dropped.as_slice(), case.torn.as_slice()) {
        ([], []) => {
            "no write is lost: what fails had not been written to the drive when the power went".to_owned()
        }
        (all, []) => format!("{dropped} {} dropped", was(all)),
        ([], all) => format!("{torn} {} torn", was(all)),
        (all, parts) => format!("{dropped} {} dropped, and {torn} {} torn", was(all), was(parts)),
    }
}

/// Returns the minimal case of a failure as a sentence.
pub(crate) fn case_sentence(failure: &Failure) -> String {
    capital(&sentence(&case(&failure.minimal)))
}

/// Lists the commands. Equal ones are grouped, each group in the words of `more`.
fn listed(commands: &[CommandRole], more: impl Fn(&[&CommandRole]) -> String) -> String {
    let like = |of: &CommandRole| {
        (of.op.clone(), of.file.clone(), of.role.clone(), of.caused_by.clone(), of.flush_came_early)
    };
    let named = |of: &CommandRole| of.file.is_some() || of.role.is_some();
    let mut groups: Vec<Vec<&CommandRole>> = Vec::new();
    for command in commands {
        match groups.iter_mut().find(|group| named(command) && like(group[0]) == like(command)) {
            Some(group) => group.push(command),
            None => groups.push(vec![command]),
        }
    }
    let mut names: Vec<String> =
        groups.iter().take(NAMED).map(|group| format!("{}{}", words_of(group), more(group))).collect();
    let left = groups.iter().skip(NAMED).map(Vec::len).sum::<usize>();
    names.extend((left > 0).then(|| format!("{left} more")));
    quantity::listed(&names, "and")
}

/// Describes equal commands: `the write to t.db (data, 4 KiB)`, `5 writes to t.db (data, 20 KiB)`.
fn words_of(group: &[&CommandRole]) -> String {
    let Some(first) = group.first() else { return String::new() };
    let (one, several) = match first.op.as_str() {
        "discard" => ("the discard of", "discards of"),
        "write-zeroes" => ("the zeroing of", "zeroings of"),
        _ => ("the write to", "writes to"),
    };
    let op = if group.len() == 1 { one.to_owned() } else { format!("{} {several}", group.len()) };
    let size = bytes(group.iter().map(|command| command.length as f64).sum());
    // Names and sizes of the POSIX model have no length.
    let is_name_or_size = group.iter().all(|command| command.length == 0);
    let what = match (&first.file, &first.role) {
        (Some(file), Some(role)) if is_name_or_size => format!("{file} ({role})"),
        (Some(file), Some(role)) => format!("{file} ({role}, {size})"),
        (Some(file), None) => format!("{file} ({size})"),
        (None, Some(role)) => format!("the {role} ({size})"),
        (None, None) => format!("byte {} of the drive ({size})", first.offset),
    };
    let cause = first.caused_by.as_ref().map(|cause| format!("made by {cause}"));
    let early = first.flush_came_early.then(|| "not yet done when the last flush was sent".to_owned());
    let more = [cause, early].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let more = if more.is_empty() { more } else { format!(", {more},") };
    printable(&format!("{op} {what}{more}"))
}

/// Describes the proposed change, with its kind and verification; without a change, whether one was sought.
pub(crate) fn change(document: &ProofDocument, failure: &Failure) -> String {
    let Some(change) = &failure.change else {
        if let Some(why) = &failure.change_unknown_because {
            return printable(&sentence(&capital(why)));
        }
        let is_left_out = document.environment.argv.iter().any(|word| word == "--no-change");
        return match is_left_out {
            true => "No change that removes it was looked for (--no-change).".to_owned(),
            false => "No change that removes it was found.".to_owned(),
        };
    };
    let kind = match change.kind {
        ChangeKind::DeviceFlush => "Device flush",
        ChangeKind::SyncCall => "Sync call",
    };
    let by = match change.verified_by {
        VerifiedBy::SameRecording => "in the same recording",
        VerifiedBy::NewRun => "in a new run",
    };
    let after = fail_of(change.failing_after, &counted(change.explored, "state"));
    printable(&format!("{kind}: {} Verified: with it {after} {by}.", sentence(&change.sentence)))
}

/// Returns the checker's message about the minimal case, and the acknowledgement that it concerns.
pub(crate) fn words(failure: &Failure) -> String {
    let when = match failure.required {
        Some(required) => format!("after acknowledgement {required}"),
        None => "before the first acknowledgement".to_owned(),
    };
    let said = sentence(failure.words.trim());
    printable(&format!("{} {when}. The check says: {said}", capital(failure.class.meaning())))
}

/// Returns the table of failures, with a row for each class; `None` without failures.
pub(crate) fn failures(document: &ProofDocument) -> Option<Table> {
    let way = |failure: &Failure| match failure.accepted {
        true => Cell::inked(Ink::Plain, format!("{} (accepted by the baseline)", failure.class.meaning())),
        false => Cell::inked(Ink::Red, failure.class.meaning()),
    };
    Table::for_rows(&document.failures)
        .left("in which way", |failure| way(failure))
        .right("states", |failure| count(failure.states))
        .left("fewest writes that a power cut has to take for it", |failure| case(&failure.minimal))
        .if_any()
}

/// Returns the table of drive profiles, safe or losing; `None` without profiles.
pub(crate) fn profiles(document: &ProofDocument) -> Option<Table> {
    let result = |profile: &ProfileResult| {
        let ways: Vec<&str> = profile.classes.iter().map(|of| of.meaning()).collect();
        let why = profile.not_judged_because.as_deref().unwrap_or("it was not asked for");
        let (ink, result) = match profile.failing {
            None => (Ink::Dim, format!("not judged: {why}")),
            Some(0) if profile.exhaustive && document.proved => (Ink::Green, "safe".to_owned()),
            Some(0) if profile.exhaustive => (Ink::Plain, "none fails".to_owned()),
            Some(0) => (Ink::Plain, "none fails; not every window was explored whole".to_owned()),
            Some(_) => (Ink::Red, ways.join("; ")),
        };
        Cell::inked(ink, printable(&result))
    };
    // Without a drive there is one row, with the result of the headline.
    let profiles: &[ProfileResult] = if is_by_calls(document) { &[] } else { &document.profiles };
    Table::for_rows(profiles)
        .left("profile", |profile| printable(&profile.name))
        .right("states", |profile| or_dash(profile.failing.map(|_| profile.explored), count))
        .right("failing", |profile| or_dash(profile.failing, count))
        .left("result", |profile| result(profile))
        .if_any()
}

/// Returns the table of windows and the number of those left out: all windows if there are at most `most`,
/// otherwise at most `most` of those that fail or were not explored exhaustively.
pub(crate) fn windows(document: &ProofDocument, most: usize) -> (Table, u64) {
    let all = document.windows.len() <= most;
    let telling =
        |window: &&WindowResult| all || window.failing > 0 || window.coverage != Coverage::Exhaustive;
    let shown: Vec<_> = document.windows.iter().filter(telling).take(most).collect();
    let left_out = (document.windows.len() - shown.len()) as u64;
    let ink = |failing| if failing > 0 { Ink::Red } else { Ink::Plain };
    let table = Table::for_rows(shown)
        .right("cut at", |window| duration(window.until))
        .right("ack", |window| or_dash(window.required, |required| required.to_string()))
        .right("at risk", |window| count(window.at_risk))
        .right("states", |window| count(window.states))
        .right("failing", |window| Cell::inked(ink(window.failing), count(window.failing)))
        .left("explored", |window| coverage_words(window.coverage));
    (table.table(), left_out)
}

/// Returns the table of further recordings, if there are any.
pub(crate) fn recordings(document: &ProofDocument) -> Option<Table> {
    Table::for_rows(&document.recordings)
        .right("number", |one| count(one.number))
        .left("writeback", |one| one.writeback.to_string())
        .right("states", |one| count(one.states.distinct))
        .right("failing", |one| count(one.states.failing))
        .if_any()
}

/// Names the recording with failing states, unless it is the first.
fn found_in(document: &ProofDocument) -> Option<String> {
    let number = document.failures.first()?.recording;
    let found = document.recordings.iter().find(|one| one.number == number)?;
    Some(format!(
        "As the kernel wrote back, no state fails. States fail in recording {number}: {}. The kernel may choose this order at \
         any time.",
        found.writeback
    ))
}

/// Returns the number of windows that a table leaves out, with its verb.
pub(crate) fn counted_more(windows: &u64) -> String {
    let (noun, verb) = if *windows == 1 { ("window", "is") } else { ("windows", "are") };
    format!("{} more {noun} {verb}", count(*windows))
}

/// Returns the extent to which a window was explored, in words.
pub(crate) const fn coverage_words(coverage: Coverage) -> &'static str {
    match coverage {
        Coverage::Exhaustive => "exhaustive",
        Coverage::Bounded => "bounded",
        Coverage::Sampled => "sampled",
    }
}

/// Returns the extent of the exploration in one line.
pub(crate) fn coverage(document: &ProofDocument) -> String {
    let (all, states) = (&document.coverage, &document.states);
    let part = |windows: u64, words: &str| (windows > 0).then(|| format!("{} {words}", count(windows)));
    let parts = [
        part(all.exhaustive, "exhaustive"),
        part(all.bounded, "bounded (every subset of the commands, not every tear)"),
        part(all.sampled, "sampled"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let checked = match is_by_calls(document) {
        true => {
            format!("{} of files checked (the others have the same tree)", counted(states.checked, "tree"))
        }
        false => format!("{} checked", count(states.checked)),
    };
    let windows = counted(all.windows, "window");
    let again = document.recovery.filter(|one| one.states + one.states_left > 0).map(|one| {
        format!(
            " The power was cut again during {} of {} that wrote: {}.",
            count(one.states),
            counted(one.states + one.states_left, "check"),
            counted(one.explored, "distinct state")
        )
    });
    let again = again.unwrap_or_default();
    format!("{windows}{parts}; {}, {checked}.{again}", counted(states.distinct, "distinct state"))
}

/// Names the sync calls that can be removed, with their cost; `None` if they were not sought.
pub(crate) fn syncs_left_out(document: &ProofDocument) -> Option<String> {
    let Some(search) = document.syncs_left_out else { return no_sync_was_tried(document) };
    let named = |all: &[&NeedlessSync]| {
        let name = |of: &&NeedlessSync| {
            let flushes = of.flushes.map_or_else(String::new, |all| format!(", {}", counted(all, "flush")));
            format!("{}({}), call {} ({}{flushes})", of.call, of.file, of.number, duration(of.seconds))
        };
        all.iter().map(name).collect::<Vec<_>>().join("; ")
    };
    let (together, apart): (Vec<&NeedlessSync>, Vec<&NeedlessSync>) =
        document.needless_syncs.iter().partition(|of| of.together);
    let unknown = search.calls - search.tried;
    let rest = match unknown {
        0 => String::new(),
        _ => format!(" Nothing is known of {}.", counted(unknown, "call")),
    };
    if together.is_empty() {
        return Some(format!("No sync call was found that can go: {} tried.{rest}", count(search.tried)));
    }
    let instead = match apart.as_slice() {
        [] => String::new(),
        apart => format!(" Each of these may go alone, but not with them: {}.", named(apart)),
    };
    let explored: u64 = document.needless_syncs.iter().map(|of| of.explored).sum();
    let seconds: f64 = together.iter().map(|of| of.seconds).sum();
    let share = 100.0 * seconds / search.seconds.max(f64::MIN_POSITIVE);
    Some(printable(&format!(
        "{} of {} {} nothing that the acknowledgements promise, {share:.0} % of the time of all: {}.{instead} In new runs \
         without {}, none of {} fails.{rest}",
        count(together.len() as u64),
        counted(search.calls, "sync call"),
        if together.len() == 1 { "protects" } else { "protect" },
        named(&together),
        if together.len() == 1 { "it" } else { "them" },
        counted(explored, "explored state")
    )))
}

/// Returns the reason why no sync call was removed although that was requested; `None` if it was not
/// requested.
fn no_sync_was_tried(document: &ProofDocument) -> Option<String> {
    if !document.environment.argv.iter().any(|word| word == "--needless-syncs") {
        return None;
    }
    let fails = document.level == "danger";
    let why = match &document.incomplete_because {
        _ if fails => "a state fails with all of them: remove that failure first",
        Some(why) => why,
        None => "not every state was explored, or the system calls of the program were not recorded",
    };
    Some(format!("No sync call was left out, because {why}."))
}

/// Describes the states that fail if all device flushes are left out.
pub(crate) fn flushes(document: &ProofDocument) -> Option<String> {
    let left = document.flushes.as_ref()?;
    let fails = fail_of(left.failing, &counted(left.explored, "distinct state"));
    Some(match left.flushes {
        1 => format!("Without its only device flush, {fails}."),
        flushes => format!("Without any of the {} device flushes, {fails}.", count(flushes)),
    })
}

/// Returns the most important figures.
pub(crate) fn figures(document: &ProofDocument) -> Vec<Figure> {
    let (states, all, kept) = (&document.states, &document.coverage, &document.recording);
    let figure = |label, value: u64, note: String| Figure::new(label, count(value), "", note);
    let kept_by = kept.acknowledged_by.as_deref().unwrap_or("nothing");
    vec![
        figure("States that fail", states.failing, format!("of {} distinct", count(states.distinct))),
        figure("States explored", states.explored, format!("{} checked", count(states.checked))),
        figure("Windows explored whole", all.exhaustive, format!("of {}", count(all.windows))),
        figure("Acknowledged", kept.acknowledgements, format!("by {}", kept_by.replace('-', " "))),
    ]
}

/// Returns the facts about the recording and its environment.
pub(crate) fn facts(document: &ProofDocument) -> Vec<Fact> {
    let kept = &document.recording;
    let size = |size: u64| bytes(size as f64);
    let attached = match kept.attached_by.as_str() {
        "loop" => "FUSE and a loop device: FUA arrives as a write and a flush".to_owned(),
        "ublk" => "ublk, with FUA".to_owned(),
        other => other.to_owned(),
    };
    let serialised = kept.serialised_because.as_ref();
    let together = serialised.map_or_else(|| "yes, by the self-test".to_owned(), |why| format!("no: {why}"));
    let by = kept.acknowledged_by.as_deref().unwrap_or(NONE);
    let by_calls = is_by_calls(document);
    let of_drive = |fact: String| if by_calls { String::new() } else { fact };
    let own = [
        ("Subject", document.subject.clone()),
        ("File system", document.file_system.clone()),
        ("Model", document.model.clone()),
        ("Drive profile", of_drive(document.drive.clone())),
        ("Drive", of_drive(format!("{}, attached by {attached}", size(kept.size)))),
        ("Recorded", duration(kept.seconds)),
        ("Writes", format!("{} ({})", count(kept.writes), size(kept.write_bytes))),
        (if by_calls { "Sync calls" } else { "Flushes" }, count(kept.flushes)),
        ("Discards", of_drive(count(kept.discards))),
        ("Acknowledgements", format!("{}, by {by}", kept.acknowledgements)),
        ("Requests recorded together", of_drive(together)),
    ];
    let mut facts = facts_of(own, &document.environment, document.run_directory.as_ref());
    facts.retain(|fact| !fact.value.is_empty());
    facts
}
