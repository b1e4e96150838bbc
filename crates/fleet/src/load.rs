//! A load on all hosts at once.

use std::sync::atomic::Ordering;

use plumb_block::Nanos;
use plumb_dialect::native::write;
use plumb_report::document::FleetDocument;
use plumb_workload::Scenario;

use crate::merge;
use crate::message::{LoadTask, Task};
use crate::record::{Command, Content, Recording};
use crate::session::{Session, SessionError, Watch};

impl LoadTask {
    /// Returns the task of a host: the common scenario, with the name of the host inserted in targets and a
    /// seed of its own.
    pub(crate) fn of_host(&self, scenario: &Scenario, number: usize, host: &str) -> Task {
        let mut scenario = scenario.clone();
        for job in scenario.jobs_mut() {
            job.workload.seed = job.workload.seed.wrapping_add(number as u64);
            for target in &mut job.targets {
                target.name = target.name.replace("{host}", host);
            }
        }
        Task::Load(Self { words: write(&scenario), ..self.clone() })
    }
}

impl Session {
    /// Runs a load on all hosts, or, if `scale` is not empty, on each of these numbers of hosts in turn.
    ///
    /// # Errors
    /// Fails if the numbers do not rise or exceed the hosts, the recording cannot be written, or waiting for
    /// the hosts fails.
    pub fn run_load(
        &mut self,
        scenario: &Scenario,
        load: &LoadTask,
        scale: &[u32],
        command: Command,
        watch: Watch<'_>,
    ) -> Result<(Vec<merge::Answer<'static>>, Recording), SessionError> {
        let count = self.names.len();
        if !scale.is_sorted_by(|one, next| one < next) {
            let expected = "expected increasing numbers of hosts, such as 1,2,4,8";
            return Err(SessionError::Scale(expected.to_owned()));
        }
        if let Some(step) = scale.iter().find(|step| **step as usize > count) {
            return Err(SessionError::Scale(format!("{step}: only {count} hosts are named")));
        }
        let steps = if scale.is_empty() { &[u32::MAX] } else { scale };
        let hosts = self.names.iter().enumerate();
        let tasks: Vec<Task> = hosts.map(|(number, host)| load.of_host(scenario, number, host)).collect();
        let given = self.given(scenario);
        let begun = FleetDocument {
            command: "load".to_owned(),
            workload: write(scenario),
            seed: scenario.seed(),
            ..FleetDocument::default()
        };
        self.recorded(command, begun, Content::Answers, |session, kept| {
            let mut answers = Vec::new();
            for step in steps {
                let task = |number: usize| (number < *step as usize).then(|| tasks[number].clone());
                session.run(&task, given, kept, watch)?;
                answers = session.answers()?;
                if !scale.is_empty() {
                    let scale = &mut kept.begun.scale;
                    scale.push(merge::scale_step(&answers, scale.first()));
                }
                if session.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            Ok(answers)
        })
    }

    /// Returns the time limit from the first start to the end of all spans, if known. It includes the
    /// preparation of each span after the first.
    pub(crate) fn given(&self, scenario: &Scenario) -> Option<Nanos> {
        let more = scenario.spans.len().saturating_sub(1) as u64;
        Some(scenario.duration()? + self.prepare_within * more)
    }
}
