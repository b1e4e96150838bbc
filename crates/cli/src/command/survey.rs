//! `plumb survey`: the write path, of this machine or of a recording.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use plumb_linux::probe::{LiveProbe, Probe};
use plumb_linux::recorded;
use plumb_linux::tree::{LiveTree, Tree};
use plumb_path::{LayerKind, RecordingError, Survey, Target, UntornPage, WritePath, text_of};
use plumb_report::printable::printable;
use plumb_report::{Kind, levels};
use plumb_state::places::kernel_file_system;
use plumb_state::whole_file::parent_of;
use plumb_targets::cache;

use crate::arguments::survey::SurveyArguments;
use crate::exit::{self, Exit, Refusal, refuse_if, usage};
use crate::live_state::Servers;
use crate::named;
use crate::terminal;

/// Surveys, prints, and says whether anything was found.
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

/// Surveys the disks of the virtual machines that run here.
fn guests() -> Result<Survey, Refusal> {
    let survey = plumb_path::survey_guests(&LiveTree::new(), &LiveProbe::new());
    let problem = "no disk of a virtual machine was found here: expected a running QEMU, Firecracker (with --config-file), Cloud \
                       Hypervisor or crosvm; run as root to see the processes of other users";
    refuse_if!(survey.paths.is_empty(), NotMeasured, problem);
    Ok(survey)
}

/// Surveys one target after the other.
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
            new_or_own(directory)?;
            // A target that is not there is the user's mistake, a file that cannot be written is not.
            plumb_path::record(&tree, &probe, &target, directory, arguments.writing.overwrite).map_err(
                |error| match error {
                    RecordingError::Output(error) => Refusal::from(error).into(),
                    RecordingError::Survey(error) => usage(error).into(),
                    other => anyhow::Error::new(other),
                },
            )
        }
        None => read(arguments, &tree, &probe, &target),
    }
}

/// Surveys a target as this machine or a recording shows it, and down to the drives of the host whose survey
/// was named.
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
        return Err(Refusal::new(Exit::Usage, problem).into());
    }
    Ok(plumb_path::survey_on_host(tree, probe, target, &host).map_err(usage)?)
}

/// Returns the path to a device that the kernel does not know; `None` if it does. A cache that was made is
/// not opened for it: it may be served.
fn of_device(target: &Path) -> anyhow::Result<Option<Survey>> {
    if let Some(survey) = cache::survey(&target.to_string_lossy()).map_err(Refusal::from)? {
        return Ok(Some(survey));
    }
    Ok(named::device(target.as_os_str())?.and_then(|device| device.opened.survey()))
}

/// Refuses to record what the kernel does not show, or to say what a power cut would take from it.
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
    Err(Refusal::new(Exit::Usage, problem).into())
}

/// Checks that a recording goes into a new or empty directory, or replaces an earlier recording: the files
/// that are in the way are judged when they are written.
fn new_or_own(directory: &Path) -> anyhow::Result<()> {
    if let Some(system) = kernel_file_system(parent_of(directory)) {
        let problem = format!(
            "{}: it is in a file system of the kernel ({system}), which stores nothing: name another place",
            directory.display()
        );
        return Err(Refusal::new(Exit::Usage, problem).into());
    }
    let what = match directory.read_dir() {
        Err(error) if error.kind() == ErrorKind::NotADirectory => "is not a directory",
        Err(_) => return Ok(()),
        Ok(mut entries) => match directory.join("recording.json").exists() || entries.next().is_none() {
            true => return Ok(()),
            false => "is not empty and not a recording",
        },
    };
    let message = format!("{} {what}: name an empty or a new directory", directory.display());
    Err(Refusal::new(Exit::Usage, message).into())
}
