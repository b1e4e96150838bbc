//! `plumb survey`: the write path of this machine or of a recording.

use std::path::{Path, PathBuf};

use plumb_block::FailureKind;
use plumb_linux::probe::{LiveProbe, Probe};
use plumb_linux::recorded;
use plumb_linux::tree::{LiveTree, Tree};
use plumb_path::{LayerKind, Survey, Target, UntornPage, WritePath, text_of};
use plumb_report::{Kind, levels};
use plumb_targets::{Servers, open_foreign};
use plumb_text::printable;

use crate::arguments::survey::SurveyArguments;
use crate::exit::{self, Exit, Refusal, refuse_if, usage};
use crate::terminal;

/// Surveys, prints, and returns the exit code for the findings.
pub(crate) fn run(arguments: &SurveyArguments) -> anyhow::Result<Exit> {
    let format = arguments.printed.format(Kind::Survey)?;
    let mut survey = if arguments.guests { guests()? } else { survey(arguments)? };
    if !arguments.page_size.is_empty() {
        let is_wanted = |page: &UntornPage| arguments.page_size.contains(&page.page_bytes);
        survey.paths.iter_mut().for_each(|path| path.untorn.retain(is_wanted));
    }
    terminal::show(&survey, format, terminal::style())?;
    let found = exit::of_findings(survey.paths.iter().flat_map(|path| &path.findings));
    let unknown = survey.paths.iter().any(levels::is_unknown);
    Ok(found.and(exit::of_unknown(unknown, arguments.strictness)))
}

/// Surveys the disks of the virtual machines on this host.
fn guests() -> Result<Survey, Refusal> {
    let survey = plumb_path::survey_guests(&LiveTree::new(), &LiveProbe::new());
    let problem = "no disk of a virtual machine was found here: expected a running QEMU, Firecracker (with --config-file), Cloud \
                       Hypervisor or crosvm; run as root to see the processes of other users";
    refuse_if!(survey.paths.is_empty(), NotMeasured, problem);
    Ok(survey)
}

/// Surveys the targets one after the other.
fn survey(arguments: &SurveyArguments) -> anyhow::Result<Survey> {
    let Some((first, others)) = arguments.targets.split_first() else {
        return survey_one(arguments, arguments.all.then_some(Target::All));
    };
    let problem = "--record keeps the survey of one target: name one, or use --all";
    refuse_if!(arguments.record.is_some() && !others.is_empty(), Usage, problem);
    let of = |target: &PathBuf| {
        if arguments.from.is_none()
            && let Some(survey) = of_device(target)?
        {
            unrecorded(arguments, target)?;
            return Ok(survey);
        }
        survey_one(arguments, Some(Target::Named(text_of(target).map_err(usage)?.to_owned())))
    };
    let mut survey = of(first)?;
    for other in others {
        survey.paths.extend(of(other)?.paths);
    }
    Ok(survey)
}

fn survey_one(arguments: &SurveyArguments, asked: Option<Target>) -> anyhow::Result<Survey> {
    if let Some(directory) = &arguments.from {
        let recording = plumb_path::load(directory).map_err(usage)?;
        let target = asked.as_ref().unwrap_or(&recording.target);
        return read(arguments, &recording.tree, &recording.probe, target);
    }
    let target = asked.unwrap_or_else(|| Target::Named(".".to_owned()));
    let (tree, probe) = (LiveTree::new(), LiveProbe::new());
    if arguments.now {
        let (mut survey, exposed) = plumb_path::survey_exposed(&tree, &probe, &target).map_err(usage)?;
        for (path, exposed) in survey.paths.iter_mut().zip(exposed) {
            path.exposure = Some(exposed.now(&tree, &probe, &Servers));
        }
        return Ok(survey);
    }
    match &arguments.record {
        Some(directory) => {
            Ok(plumb_path::record(&tree, &probe, &target, directory, arguments.writing.overwrite)?)
        }
        None => read(arguments, &tree, &probe, &target),
    }
}

/// Surveys a target from this machine or a recording, and with a survey of its host down to the host's
/// drives.
fn read(
    arguments: &SurveyArguments,
    tree: &dyn Tree,
    probe: &dyn Probe,
    target: &Target,
) -> anyhow::Result<Survey> {
    let Some(file) = &arguments.host_survey else {
        return Ok(plumb_path::survey(tree, probe, target).map_err(usage)?);
    };
    let host: Survey = recorded::load(file, Survey::SCHEMA).map_err(usage)?;
    let is_guest =
        |path: &WritePath| path.layers.first().is_some_and(|top| top.kind == LayerKind::VirtualMachine);
    if !host.paths.iter().any(is_guest) {
        let problem = format!(
            "--host-survey {}: expected a survey with disks of virtual machines: make it on the host with `plumb survey --guests --json`",
            printable(&file.to_string_lossy())
        );
        return Err(Refusal::new(FailureKind::Usage, problem).into());
    }
    Ok(plumb_path::survey_on_host(tree, probe, target, &host).map_err(usage)?)
}

/// Returns the survey of a device that is unknown to the kernel; `None` for a known one. A cache is not
/// opened for that, because it may be served.
fn of_device(target: &Path) -> anyhow::Result<Option<Survey>> {
    if let Some(survey) = plumb_caches::survey(&target.to_string_lossy())? {
        return Ok(Some(survey));
    }
    Ok(open_foreign(target.as_os_str())?.and_then(|device| plumb_targets::survey(&device)))
}

/// Refuses `--now` and `--record` for a device that is unknown to the kernel.
fn unrecorded(arguments: &SurveyArguments, target: &Path) -> anyhow::Result<()> {
    let problem = format!(
        "--now reads what the kernel has in memory, and the kernel does not know {}: name the device or directory that it is attached as, \
             or see its status (plumb drive status, plumb cache status)",
        target.display()
    );
    refuse_if!(arguments.now, Usage, problem);
    if arguments.record.is_none() {
        return Ok(());
    }
    let name = target.display();
    let problem = format!(
        "--record cannot record {name}, because the kernel does not know it: save the output of --json instead"
    );
    Err(Refusal::new(FailureKind::Usage, problem).into())
}
