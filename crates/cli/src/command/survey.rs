//! `plumb survey`: the write path, of this machine or of a recording.

use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_path::{Severity, Survey, Target};
use plumb_report::terminal as text;

use crate::arguments::SurveyArguments;
use crate::exit::{Ended, Exit};
use crate::terminal;

/// Surveys, prints, and says whether anything was found.
pub(crate) fn run(arguments: &SurveyArguments) -> anyhow::Result<Exit> {
    let survey = survey(arguments)?;
    if arguments.json {
        let mut document = serde_json::to_string_pretty(&survey)?;
        document.push('\n');
        terminal::print(&document)?;
    } else {
        // One path is shown in full; many as a list with what is wrong below.
        let show = if survey.paths.len() > 1 { text::survey_list } else { text::survey };
        terminal::print(&show(&survey, terminal::style()))?;
    }
    let found = survey
        .paths
        .iter()
        .flat_map(|path| &path.findings)
        .any(|finding| finding.severity >= Severity::Warning);
    Ok(if found { Exit::Finding } else { Exit::Done })
}

fn survey(arguments: &SurveyArguments) -> anyhow::Result<Survey> {
    let named = arguments.target.as_ref().map(|target| Target::Named(target.to_string_lossy().into_owned()));
    let asked = if arguments.all { Some(Target::All) } else { named };
    let refused = |error: plumb_path::SurveyError| Ended::new(Exit::Usage, error.to_string());
    if let Some(recording) = &arguments.from {
        let fixture =
            plumb_path::load(recording).map_err(|error| Ended::new(Exit::Usage, error.to_string()))?;
        let target = asked.as_ref().unwrap_or(&fixture.target);
        return Ok(plumb_path::survey(&fixture.tree, &fixture.probe, target).map_err(refused)?);
    }
    let target = asked.unwrap_or_else(|| Target::Named(".".to_owned()));
    let (tree, probe) = (LiveTree::new(), LiveProbe::new());
    match &arguments.record {
        Some(directory) => Ok(plumb_path::record(&tree, &probe, &target, directory)?),
        None => Ok(plumb_path::survey(&tree, &probe, &target).map_err(refused)?),
    }
}
