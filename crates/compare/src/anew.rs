//! Blocks as trials of their own: each opens its targets when its level has been set, and closes them before the next is.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use plumb_application::Limits;
use plumb_block::{Bytes, Nanos, in_one_line};
use plumb_load::Progress;
use plumb_report::RunDocument;
use plumb_trial::{
    Context, Course, Phase, ProfileRun, Request, SpanRun, TargetNow, Trial, TrialEnded, TrialError, Turn,
    Watcher, run_profile, run_turns,
};
use plumb_workload::Scenario;

use crate::experiment::{Experiment, Work};
use crate::setting::Setting;

/// Runs the turns that `course` says, each anew; all that they measured, as if it were one run, what ran, and how it ended.
///
/// # Errors
/// If nothing could be measured.
pub(crate) fn each_anew(
    experiment: &Experiment,
    request: &Request,
    context: &Context<'_>,
    watcher: &mut dyn Watcher,
    setting: &mut dyn Setting,
    course: &mut Course<'_>,
) -> Result<(RunDocument, Vec<SpanRun>, TrialEnded), TrialError> {
    let mut spans = Vec::new();
    watcher.begins(&request.scenario);
    let mut told = Told { watcher, said: HashSet::new(), span: 0 };
    let mut so_far = RunDocument::default();
    let began = context.clock.now();
    // Simulated drives have a clock of their own, in each block another one.
    let mut measured = Nanos::ZERO;
    while let Some(turn) = course(&so_far, context.clock.now().since(began).max(measured)) {
        told.span = turn.span;
        told.watcher.standing(&turn.standing, turn.done);
        turn.note.iter().for_each(|note| told.note(note));
        let work = &experiment.levels[turn.span].work;
        let ran =
            setting.set(turn.span).and_then(|()| block(work, request, &turn, context, &mut told, setting));
        let ended = match ran {
            Ok(trial) => {
                let document = trial.recording.document;
                spans.extend(trial.spans);
                measured += turn.warmup.unwrap_or_default() + Nanos::from_secs_f64(document.duration);
                add(&mut so_far, document);
                trial.ended
            }
            Err(error) if so_far.spans.is_empty() => return Err(error),
            Err(TrialError::Interrupted) => TrialEnded::Interrupted,
            Err(error) => TrialEnded::Failed(in_one_line(&error)),
        };
        match ended {
            TrialEnded::Complete if context.stop.load(Ordering::Relaxed) => {
                return Ok((so_far, spans, TrialEnded::Interrupted));
            }
            TrialEnded::Complete => {}
            ended => return Ok((so_far, spans, ended)),
        }
    }
    Ok((so_far, spans, TrialEnded::Complete))
}

fn block(
    work: &Work,
    request: &Request,
    turn: &Turn,
    context: &Context<'_>,
    told: &mut Told<'_>,
    setting: &dyn Setting,
) -> Result<Trial, TrialError> {
    let span = request.scenario.spans[turn.span].clone();
    if let Work::Profile(run) = work {
        let stop = span.jobs.first().and_then(|job| job.workload.stop.duration);
        let seed = run.limits.seed.wrapping_add(turn.round << 32);
        let limits = Limits { duration: stop, seed, ..run.limits };
        return run_profile(request, &ProfileRun { limits, ..run.clone() }, context, told);
    }
    let replays = request.replays.iter().filter(|((of, _), _)| *of == turn.span);
    let alone = Request {
        scenario: Scenario { spans: vec![span] },
        replays: replays.map(|((_, job), replay)| ((0, *job), replay.clone())).collect(),
        permission: setting.permission(turn.span, &request.permission),
        ..request.clone()
    };
    let mut once = Some(Turn { span: 0, note: None, ..turn.clone() });
    run_turns(&alone, context, told, &mut |_, _| once.take())
}

/// Adds a block to those before it. What is found in several is told once.
fn add(so_far: &mut RunDocument, block: RunDocument) {
    if so_far.spans.is_empty() {
        *so_far = block;
        return;
    }
    so_far.spans.extend(block.spans);
    so_far.transactions = block.transactions;
    so_far.failed |= block.failed;
    so_far.incomplete_because = block.incomplete_because;
    let is_new = |id: &String| !so_far.verdicts.iter().any(|known| known.id == *id);
    let verdicts: Vec<_> = block.verdicts.into_iter().filter(|verdict| is_new(&verdict.id)).collect();
    so_far.verdicts.extend(verdicts);
    for note in block.notes {
        if !so_far.notes.contains(&note) {
            so_far.notes.push(note);
        }
    }
}

/// Whoever watches the whole is told by each block, of each note once.
struct Told<'a> {
    watcher: &'a mut dyn Watcher,
    said: HashSet<String>,
    span: usize,
}

impl Watcher for Told<'_> {
    fn phase(&mut self, _span: usize, phase: &Phase, expected: Option<Nanos>) {
        self.watcher.phase(self.span, phase, expected);
    }

    fn bytes(&mut self, done: Bytes) {
        self.watcher.bytes(done);
    }

    fn progress(&mut self, progress: &Progress, targets: &dyn Fn() -> Vec<TargetNow>) {
        self.watcher.progress(progress, targets);
    }

    fn note(&mut self, line: &str) {
        if self.said.insert(line.to_owned()) {
            self.watcher.note(line);
        }
    }

    fn wants_latency(&self) -> bool {
        self.watcher.wants_latency()
    }
}
