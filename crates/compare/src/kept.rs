//! The run directory of an experiment. What cannot be written any more is given up; the experiment goes on.

use plumb_measure::{Manifest, Out, RunDirectory};
use plumb_report::{ComparisonDocument, Format, Style, render};
use plumb_trial::Request;

/// The run directory, while it can be written.
pub(crate) struct Kept {
    directory: Option<RunDirectory>,
    lost: Option<String>,
}

impl Kept {
    pub(crate) fn begin(out: &Out, request: &Request, seed: u64) -> plumb_measure::Result<Self> {
        let mut manifest =
            Manifest::starting(&request.command, request.argv.clone(), seed, &request.started_at);
        let environment = plumb_trial::environment(&request.argv, &request.started_at);
        (manifest.kernel, manifest.host) = (environment.kernel, environment.host);
        Ok(Self { directory: RunDirectory::create(out, &manifest)?, lost: None })
    }

    pub(crate) fn keep(&mut self, document: &ComparisonDocument) {
        let written = self.directory.as_ref().map(|directory| directory.write_result(document));
        if let Some(Err(error)) = written {
            self.lose(&error);
        }
    }

    fn lose(&mut self, error: &(dyn std::error::Error + 'static)) {
        self.lost.get_or_insert_with(|| plumb_block::in_one_line(&error));
        self.directory = None;
    }

    pub(crate) fn abandon(self) -> plumb_measure::Result<()> {
        self.directory.map_or(Ok(()), RunDirectory::abandon)
    }

    /// Writes the result and the page; why not, if they could not be written.
    pub(crate) fn finish(
        mut self,
        document: &mut ComparisonDocument,
        time_of_day: &dyn Fn() -> String,
    ) -> Option<String> {
        let path = self.directory.as_ref().map(|directory| directory.path().display().to_string());
        document.run_directory = path;
        self.keep(document);
        let page = render(&*document, Format::Html, Style::PLAIN).unwrap_or_default();
        if let Some(directory) = self.directory.take() {
            let closed = directory.write_file(Format::Html.file_name(), page.as_bytes());
            let reason = document.incomplete_because.clone();
            if let Err(error) = closed.and_then(|()| directory.finish(reason, time_of_day()).map(drop)) {
                self.lose(&error);
            }
        }
        if self.lost.is_some() {
            document.run_directory = None;
        }
        self.lost
    }
}
