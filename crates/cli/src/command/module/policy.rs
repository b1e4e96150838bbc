//! `plumb_policy`: plan, apply by hash and read-back in one task.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::claims::Claim;
use super::parameters::{Parameters, required};
use super::reading::{journals, of_applies};
use super::{Done, Failure, Task, difference, entries, shown, text};

/// Beside the snapshot of an apply: which states of its disks were kept after power cycles before it.
pub(super) const KEPT_BEFORE: &str = "kept-before.json";

const APPLIED: &str = "plumb/policy-apply/1";
const PERSISTED: &str = "plumb/policy-persist/1";

/// What `plumb_policy` takes.
pub(super) struct Policy {
    pub(super) state: &'static str,
    pub(super) choice: Choice,
    /// Whether disks that must not be changed are left out.
    leaves_refused: bool,
    save: bool,
    persist: Option<bool>,
    claim: Option<Claim>,
    pub(super) claims: PathBuf,
    journals: PathBuf,
    wave_size: Option<i64>,
}

/// Which disks.
pub(super) struct Choice {
    filter: Option<String>,
    all: bool,
    devices: Vec<String>,
}

impl Choice {
    fn of(given: &mut Parameters) -> Result<Self, Failure> {
        if given.given(&["devices", "all"]) > 1 {
            return Err(Failure::new("parameters are mutually exclusive: devices|all"));
        }
        if given.given(&["devices", "all", "where"]) == 0 {
            return Err(Failure::new("one of the following is required: devices, all, where"));
        }
        Ok(Self {
            devices: given.texts("devices")?.unwrap_or_default(),
            all: given.truth("all")?.unwrap_or_default(),
            filter: given.text("where")?,
        })
    }

    /// The words that choose them. Names come last, behind `--`, so that none is taken for an option.
    pub(super) fn words(&self) -> Vec<String> {
        let filter = self.filter.iter().map(|filter| format!("--where={filter}"));
        let all = self.all.then(|| "--all".to_owned());
        let end = (!self.devices.is_empty()).then(|| "--".to_owned());
        filter.chain(all).chain(end).chain(self.devices.iter().cloned()).collect()
    }
}

impl Policy {
    pub(super) fn of(given: &mut Parameters) -> Result<Self, Failure> {
        let choice = Choice::of(given)?;
        Ok(Self {
            state: required("state", given.choice("state", &["off", "on", "protected"])?)?,
            choice,
            leaves_refused: given.choice("refused", &["fail", "leave"])? == Some("leave"),
            save: given.truth("save")?.unwrap_or_default(),
            persist: given.truth("persist")?,
            claim: given.within("claim")?.map(Claim::of).transpose()?,
            claims: given.path("claims")?.unwrap_or_else(|| plumb_policy::device::claims::PLACE.into()),
            journals: journals(given)?,
            wave_size: given.number("wave_size")?,
        })
    }

    /// The words that plan it.
    fn plan_words(&self, out: &Path, claims: &Path) -> Vec<String> {
        let [out, claims] = [out, claims].map(|path| path.display().to_string());
        let words = ["policy", "plan", self.state, "--json", "--out", &out, "--claims", &claims];
        let mut words = words.map(str::to_owned).to_vec();
        words.extend(self.save.then(|| "--save".to_owned()));
        words.extend(self.wave_size.map(|size| format!("--wave-size={size}")));
        words.extend(self.choice.words());
        words
    }
}

/// The states of disks that are kept after power cycles: pairs of identity and state.
pub(super) struct Kept(Value);

impl Kept {
    /// The state of a disk that is kept.
    pub(super) fn of(&self, identity: &str) -> Option<&str> {
        let mut all = self.0.as_array().into_iter().flatten();
        all.find(|one| text(one, "identity") == identity)?["state"].as_str()
    }

    /// Whether this state of it is.
    pub(super) fn has(&self, identity: &str, state: &str) -> bool {
        self.of(identity) == Some(state)
    }
}

impl Task<'_> {
    pub(super) fn policy(&mut self, asked: &Policy) -> Done {
        if asked.persist == Some(true) && self.program.lasting().is_none() {
            let message = "persist: what is set at every start is set by a plumb that stays on the host: push the static binary with \
                           plumb.storage.push, and name its path with `plumb`";
            return Err(Failure::new(message));
        }
        let claims = match &asked.claim {
            Some(claim) => self.claim(claim, asked)?,
            None => asked.claims.clone(),
        };
        let out = self.directory.join("plan.json");
        let plan = self.plan(asked, &out, &claims)?;
        let applies = entries(&plan, "changes").next().is_some() && !self.check_mode;
        if !applies && asked.persist.is_none() {
            return Ok(());
        }
        let kept = self.kept()?;
        if applies {
            self.apply(asked, (&out, &claims), &plan, &kept)?;
        }
        match asked.persist {
            Some(true) => self.keep(asked.state, &claims, &plan, &kept),
            Some(false) => self.keep_no_more(&plan, &kept),
            None => Ok(()),
        }
    }

    fn plan(&mut self, asked: &Policy, out: &Path, claims: &Path) -> Result<Value, Failure> {
        let words = asked.plan_words(out, claims);
        let (_, plan) = self.program.document(&words, "plumb/policy-plan/1", &[0, 4])?;
        self.tell("refused", plan["refused"].clone());
        self.tell("diff", before_and_after(&plan, None));
        self.tell("plan", plan.clone());
        let has = |list| entries(&plan, list).next().is_some();
        if has("refused") && !asked.leaves_refused {
            let refused: Vec<String> =
                entries(&plan, "refused").map(|disk| refusal(text(disk, "name"), disk)).collect();
            return Err(Failure::of_plumb(format!("no write cache was changed: {}", refused.join("; ")), 4));
        }
        if !["changes", "unchanged", "refused"].into_iter().any(has) {
            self.warn("no disk of this host is chosen: nothing was planned");
        }
        self.changed(has("changes"));
        Ok(plan)
    }

    /// Something was changed, or would be, if it `is` so; what was before stays.
    fn changed(&mut self, is: bool) {
        if is {
            self.tell("changed", json!(true));
        }
    }

    fn apply(
        &mut self,
        asked: &Policy,
        (plan_file, claims): (&Path, &Path),
        plan: &Value,
        kept: &Kept,
    ) -> Done {
        let before = of_applies(&asked.journals);
        let is_claimed = self.result.get("claimed").is_some_and(|claimed| claimed != &json!([]));
        self.tell("changed", json!(is_claimed));
        let [file, journals, claims] =
            [plan_file, &asked.journals, claims].map(|path| path.display().to_string());
        let words = ["policy", "apply", &file, "--json", "--journal", &journals, "--claims", &claims];
        let (exit, report) = match self.program.document(&words, APPLIED, &[0, 4, 5]) {
            Ok(applied) => applied,
            Err(failure) => {
                // Without a report nothing was begun, unless plumb was killed: its journal says what there is to restore.
                let begun =
                    of_applies(&asked.journals).into_iter().rfind(|journal| !before.contains(journal));
                if let Some(journal) = begun {
                    self.tell("journal", json!(journal));
                    self.changed(true);
                    remember(&journal, plan, kept)?;
                }
                return Err(failure);
            }
        };
        let is_touched = |disk: &Value| !matches!(text(disk, "result"), "untouched" | "refused");
        self.changed(entries(&report, "disks").any(is_touched));
        self.tell("journal", report["journal"].clone());
        self.tell("diff", before_and_after(plan, Some(&report)));
        remember(Path::new(text(&report, "journal")), plan, kept)?;
        self.tell("report", report.clone());
        ended(exit, &report)
    }

    /// Which states of which disks are kept after power cycles.
    pub(super) fn kept(&self) -> Result<Kept, Failure> {
        let (_, mut document) =
            self.program.document(&["policy", "persist", "--json"], PERSISTED, &[0, 1])?;
        Ok(Kept(document["kept"].take()))
    }

    /// Has the state of each disk kept that is not kept already.
    fn keep(&mut self, state: &str, claims: &Path, plan: &Value, kept: &Kept) -> Done {
        let is_wanting =
            |disk: &&Value| !text(disk, "identity").is_empty() && !kept.has(text(disk, "identity"), state);
        let names: Vec<&str> = of_plan(plan).filter(is_wanting).map(|disk| text(disk, "name")).collect();
        self.tell("persisted", json!(names));
        self.persist(Some(claims), &names)?;
        self.changed(!names.is_empty());
        Ok(())
    }

    /// Has no state of the disks kept any more.
    fn keep_no_more(&mut self, plan: &Value, kept: &Kept) -> Done {
        let wanting: Vec<&Value> =
            of_plan(plan).filter(|disk| kept.of(text(disk, "identity")).is_some()).collect();
        self.forget(&wanting.iter().map(|disk| text(disk, "identity")).collect::<Vec<_>>())?;
        self.tell("forgotten", wanting.iter().map(|disk| disk["name"].clone()).collect());
        self.changed(!wanting.is_empty());
        Ok(())
    }

    /// Has the state that these disks are in kept.
    pub(super) fn persist(&self, claims: Option<&Path>, names: &[&str]) -> Done {
        let mut words = vec!["policy", "persist", "--json"];
        words.extend(
            self.program
                .lasting()
                .into_iter()
                .filter(|path| path.starts_with('/'))
                .flat_map(|path| ["--program", path]),
        );
        let claims = claims.map(|claims| claims.display().to_string());
        words.extend(claims.iter().flat_map(|claims| ["--claims", claims]));
        words.push("--");
        self.unless_checking(&words, names)
    }

    /// Has no state of these disks kept any more; the disks stay as they are.
    pub(super) fn forget(&self, identities: &[&str]) -> Done {
        self.unless_checking(&["policy", "persist", "--json", "--remove", "--"], identities)
    }

    fn unless_checking(&self, words: &[&str], disks: &[&str]) -> Done {
        if self.check_mode || disks.is_empty() {
            return Ok(());
        }
        self.program.document(&[words, disks].concat(), PERSISTED, &[0]).map(drop)
    }
}

/// The disks of a plan that may be changed.
fn of_plan(plan: &Value) -> impl Iterator<Item = &Value> {
    entries(plan, "changes").chain(entries(plan, "unchanged"))
}

/// Writes beside the snapshot of an apply what was kept of its disks before it, so that a rollback can keep it again.
fn remember(journal: &Path, plan: &Value, kept: &Kept) -> Done {
    let states: serde_json::Map<String, Value> = entries(plan, "changes")
        .map(|disk| text(disk, "identity"))
        .filter_map(|identity| Some((identity.to_owned(), json!(kept.of(identity)?))))
        .collect();
    let file = journal.join(KEPT_BEFORE);
    let output = plumb_state::OutputFile { path: &file, overwrite: true };
    output
        .write(Value::Object(states).to_string().as_bytes())
        .map_err(|error| Failure::new(format!("{}: {error}", file.display())))
}

/// Whether an apply or a rollback is a success.
pub(super) fn ended(exit: i32, report: &Value) -> Done {
    if exit == 0 && text(report, "ended") == "complete" {
        return Ok(());
    }
    let go_on = report["go_on"].as_str().filter(|go_on| !go_on.is_empty()).map(str::to_owned);
    let mut lines: Vec<String> = entries(report, "disks").filter_map(outcome).chain(go_on).collect();
    if lines.is_empty() {
        lines.push(format!("it ended {}", text(report, "ended")));
    }
    Err(Failure::of_plumb(lines.join("; "), exit))
}

/// What became of one disk, in words; `None` if it is as it should be.
fn outcome(disk: &Value) -> Option<String> {
    let name = shown(disk);
    Some(match text(disk, "result") {
        "verified" => return None,
        "mismatch" => format!("{name} was read back and is not as it was set: {}", text(disk, "found")),
        "failed" => format!("{name}: {}", text(disk, "error")),
        "refused" => refusal(&name, disk),
        "interrupted" => format!("{name} was begun and interrupted"),
        _ => format!("{name} was not begun"),
    })
}

/// Why a disk must not be changed, and what to do.
fn refusal(name: &str, disk: &Value) -> String {
    format!("{name} is refused: {}; {}", text(disk, "reason"), text(disk, "remedy"))
}

/// The states of the disks of a plan before, and after: as planned, or as they were read back.
fn before_and_after(plan: &Value, report: Option<&Value>) -> Value {
    let after = |change: &Value| {
        let same = |disk: &&Value| disk["identity"] == change["identity"];
        let disk = report.and_then(|report| entries(report, "disks").find(same));
        match disk.map(|disk| (text(disk, "result"), outcome(disk))) {
            Some(("untouched" | "refused", _)) => text(change, "from").to_owned(),
            Some((_, Some(outcome))) => outcome,
            _ => text(change, "to").to_owned(),
        }
    };
    let changes =
        entries(plan, "changes").map(|disk| (shown(disk), text(disk, "from").to_owned(), after(disk)));
    let same = entries(plan, "unchanged").map(|disk| {
        let state = text(disk, "state").to_owned();
        (shown(disk), state.clone(), state)
    });
    let mut all: Vec<_> = changes.chain(same).collect();
    all.sort();
    difference(&all)
}
