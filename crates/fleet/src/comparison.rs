//! Comparison on many hosts: each block is a load on all of them at once, measured as a whole.

use std::fmt::{self, Display, Formatter};
use std::sync::atomic::Ordering;

use plumb_compare::{Design, Question, block_of_hosts, document, pilot_problem};
use plumb_report::document::comparison::Block;
use plumb_report::document::{ComparisonDocument, FleetDocument};
use plumb_workload::Scenario;

use crate::merge;
use crate::message::{Level, LoadTask};
use crate::record::{Command, Content, InterimRecord, Recording};
use crate::session::{Session, SessionError, Watch};

/// A comparison whose blocks run on all hosts at once.
#[derive(Debug, Clone)]
pub struct HostComparison {
    /// Question that the comparison answers.
    pub question: Question,
    /// Scenario of each level.
    pub scenarios: Vec<Scenario>,
    /// Factor whose levels are set on the hosts; `None` if the scenarios differ instead.
    pub factor: Option<String>,
    /// Number of measured blocks of each level, after one pilot block of each.
    pub rounds: usize,
    /// Load of a host, without scenario and level.
    pub load: LoadTask,
}

/// Reason why not all blocks were run.
enum EarlyEnd {
    Running,
    Interrupted,
    /// A host did not finish its part of a block: its name and the reason.
    Host(String),
}

impl Display for EarlyEnd {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("it has not ended"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Host(lost) => write!(f, "{lost}; the block in which it happened does not count"),
        }
    }
}

impl HostComparison {
    /// Runs and judges the blocks. Ends after an incomplete block, which does not count.
    ///
    /// # Errors
    /// Fails if the pilot blocks cannot answer the question, the recording cannot be written, or waiting for
    /// the hosts fails.
    pub fn run(
        &self,
        session: &mut Session,
        command: Command,
        watch: Watch<'_>,
    ) -> Result<(ComparisonDocument, Recording), SessionError> {
        let seed = self.scenarios.first().map_or(0, Scenario::seed);
        let design = Design::new(self.scenarios.len(), self.rounds, &self.question.terms, false, seed);
        let practice: Vec<usize> = (0..self.scenarios.len()).collect();
        let rounds = (0_u64..).zip(std::iter::once(practice).chain(design.orders()));
        let turns = rounds.flat_map(|(round, order)| order.into_iter().map(move |level| (round, level)));
        let note = format!("Each block is of {} hosts at once.", session.names.len());
        let judged = |begun: &FleetDocument, blocks: &[Block], because: Option<&EarlyEnd>| {
            let mut document = document(&self.question, &design, blocks.to_vec());
            document.environment.clone_from(&begun.environment);
            document.run_directory.clone_from(&begun.run_directory);
            (document.complete, document.incomplete_because) =
                (because.is_none(), because.map(EarlyEnd::to_string));
            document.partial = matches!(because, Some(EarlyEnd::Host(_)));
            document.notes.push(note.clone());
            document
        };
        let begun = FleetDocument { seed, ..FleetDocument::default() };
        let (ended, recording) = session.recorded(command, begun, Content::Given, |session, kept| {
            let mut blocks = Vec::new();
            for (round, level) in turns {
                match self.block(session, round, level, kept, watch)? {
                    Ok(block) => blocks.push(block),
                    Err(early_end) => return Ok(Ok((blocks, Some(early_end)))),
                }
                let is_pilot = blocks.len() == self.scenarios.len();
                let problem = is_pilot.then(|| pilot_problem(&self.question, &blocks)).flatten();
                if let Some(problem) = problem {
                    return Ok(Err(problem));
                }
                kept.write(judged(&kept.begun, &blocks, Some(&EarlyEnd::Running)));
            }
            Ok(Ok((blocks, None)))
        })?;
        let (blocks, early_end) = match ended {
            Ok(ended) => ended,
            Err(problem) => {
                recording.abandon().map_err(SessionError::Recording)?;
                return Err(SessionError::NotMeasured(problem));
            }
        };
        let mut document = judged(&recording.begun, &blocks, early_end.as_ref());
        document.notes.extend(session.names_of_one_machine());
        Ok((document, recording))
    }

    /// Runs one block on all hosts; the inner error says why it does not count.
    fn block(
        &self,
        session: &mut Session,
        round: u64,
        level: usize,
        kept: &mut InterimRecord,
        watch: Watch<'_>,
    ) -> Result<Result<Block, EarlyEnd>, SessionError> {
        let mut scenario = self.scenarios[level].clone();
        // Blocks of one round use the same random choices, different from those of other rounds.
        for job in scenario.jobs_mut() {
            job.workload.seed = job.workload.seed.wrapping_add(round << 32);
        }
        let set = self.factor.clone().map(|factor| Level { factor, number: level });
        let (load, names) = (LoadTask { level: set, ..self.load.clone() }, session.names.clone());
        let task = |number: usize| Some(load.of_host(&scenario, number, &names[number]));
        let given = session.given(&scenario);
        session.run(&task, given, kept, watch)?;
        let measured = merge::document(&mut session.answers()?);
        if session.stop.load(Ordering::Relaxed) {
            return Ok(Err(EarlyEnd::Interrupted));
        }
        // A block on fewer hosts is not comparable.
        Ok(match (measured.total, measured.incomplete_because) {
            (Some(total), None) => {
                let hosts = measured.hosts.iter().filter_map(|host| host.total.as_ref());
                Ok(Block { level, round, ..block_of_hosts(&total, hosts, &scenario) })
            }
            (_, lost) => Err(EarlyEnd::Host(lost.unwrap_or_else(|| "nothing was measured".to_owned()))),
        })
    }
}
