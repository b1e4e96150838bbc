//! Record of a comparison's chapters in its run directory. If the record cannot be written, the experiments
//! continue.

use plumb_block::in_one_line;
use plumb_report::{ComparisonDocument, Record};
use plumb_trial::{Request, TrialEnded, TrialError};

/// Chapters so far, and the run directory that records them.
pub(crate) struct ChapterRecord {
    chapters: Vec<ComparisonDocument>,
    record: Record,
}

impl ChapterRecord {
    pub(crate) fn begin(request: &Request) -> Result<Self, TrialError> {
        let jobs = || request.scenario.jobs();
        let seed = jobs().next().map_or(0, |job| job.workload.seed);
        let record = Record::new(plumb_trial::begin_recording(request, seed)?);
        Ok(Self { chapters: Vec::new(), record })
    }

    /// Records an unfinished chapter, in addition to the finished ones. Returns a message if that fails.
    pub(crate) fn keep(&mut self, current: &ComparisonDocument) -> Option<String> {
        let all = self.chapters.iter().chain([current]).cloned().collect();
        self.record.attempt(|directory| directory.write_result(&ComparisonDocument::of_chapters(all)))
    }

    /// Adds a finished chapter.
    pub(crate) fn add(&mut self, chapter: ComparisonDocument) {
        self.chapters.push(chapter);
    }

    /// Writes the result and the page. If an error ended the experiments before the first chapter, removes
    /// the run directory.
    pub(crate) fn finish(
        self,
        ended: Result<TrialEnded, TrialError>,
        time_of_day: &dyn Fn() -> String,
    ) -> Result<(ComparisonDocument, TrialEnded), TrialError> {
        let mut ended = match ended {
            Err(error) if self.chapters.is_empty() => {
                self.record.abandon()?;
                return Err(error);
            }
            Err(TrialError::Interrupted) => TrialEnded::Interrupted,
            Err(error) => TrialEnded::Failed(in_one_line(&error)),
            Ok(ended) => ended,
        };
        let mut document = ComparisonDocument::of_chapters(self.chapters);
        document.complete = ended == TrialEnded::Complete;
        document.incomplete_because = ended.reason();
        document.failed |= matches!(ended, TrialEnded::Failed(_));
        document.run_directory = self.record.shown();
        if let Err(error) = self.record.close(&document, document.incomplete_because.clone(), time_of_day()) {
            document.run_directory = None;
            document.notes.push(in_one_line(&error));
            ended = ended.unrecorded(&error);
        }
        Ok((document, ended))
    }
}
