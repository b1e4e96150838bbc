//! Report of a job: percentiles, averaging windows, logs.

use plumb_block::Nanos;
use plumb_report::export::fio::PERCENTILES;

use crate::Error;
use crate::fio::invocation::{LogKind, Logs, ReportedJob};
use crate::fio::options::Options;
use crate::fio::section::{Section, Setting};
use crate::fio::value;

/// Width of the buckets of a recording.
const BUCKET: Nanos = plumb_measure::SERIES_BUCKET;

/// Supported logs.
const LOGS: [(&str, LogKind); 3] = [
    ("write_bw_log", LogKind::Bandwidth),
    ("write_lat_log", LogKind::Latency),
    ("write_iops_log", LogKind::Iops),
];

/// Returns the report. The caller sets span, access and engine.
pub(super) fn from_options(options: &Options<'_>) -> Result<ReportedJob, Error> {
    let section = options.section;
    let percentiles = options.parsed("percentile_list", percentiles)?.unwrap_or_else(|| PERCENTILES.to_vec());
    if options.truth("slat_percentiles", false)? {
        options
            .note("slat_percentiles has no effect: a batch is submitted at once, which is not timed apart");
    }
    let clat_percentiles = options.truth("clat_percentiles", true)?;
    let lat_percentiles = options.truth("lat_percentiles", false)?;
    Ok(ReportedJob {
        name: options.name().to_owned(),
        description: options.text("description")?.map(str::to_owned),
        options: typed(&section.own, Some(&section.name).filter(|_| section.place.starts_with("--name"))),
        command: command(section),
        grouped: options.truth("group_reporting", false)?,
        percentiles,
        clat_percentiles,
        lat_percentiles,
        bandwidth_window: averaging(options, "bwavgtime")?,
        iops_window: averaging(options, "iopsavgtime")?,
        logs: logs(options)?,
        ..ReportedJob::default()
    })
}

/// Returns the settings for `job options`; as with fio, without those that lack a value.
pub(super) fn typed(settings: &[Setting], name: Option<&String>) -> Vec<(String, String)> {
    let name = name.map(|name| ("name".to_owned(), name.clone()));
    let with_value =
        settings.iter().filter_map(|setting| Some((setting.name.to_owned(), setting.value.clone()?)));
    name.into_iter().chain(with_value).collect()
}

/// Returns a section as arguments.
fn command(section: &Section) -> Vec<String> {
    std::iter::once(format!("--name={}", section.name)).chain(arguments(&section.own)).collect()
}

/// Returns settings as arguments.
pub(super) fn arguments(settings: &[Setting]) -> impl Iterator<Item = String> {
    settings.iter().map(|setting| match &setting.value {
        Some(value) => format!("--{}={value}", setting.name),
        None => format!("--{}", setting.name),
    })
}

fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let mut list: Vec<f64> = text.split(':').map(value::decimal).collect::<Result<_, _>>()?;
    if list.iter().any(|percentile| *percentile > 100.0) {
        return Err(format!("`{text}` is not a list of percentiles: expected 0 to 100 each"));
    }
    list.sort_by(f64::total_cmp);
    Ok(list)
}

/// Returns an averaging window, given in milliseconds and rounded to buckets of the recording.
fn averaging(options: &Options<'_>, name: &'static str) -> Result<Nanos, Error> {
    Ok(match options.whole(name, 1..=86_400_000)? {
        None => Nanos::millis(500),
        Some(typed) => {
            let typed = Nanos::millis(typed);
            let whole = Nanos((typed.0 / BUCKET.0).max(1) * BUCKET.0);
            if whole != typed {
                options.note(format!("{name}: {whole} instead of {typed}, whole buckets of {BUCKET}"));
            }
            whole
        }
    })
}

/// Rounds the interval of a log to buckets of the recording.
fn whole_buckets(options: &Options<'_>, interval: Nanos) -> Nanos {
    let whole = Nanos(interval.0.div_ceil(BUCKET.0).max(1) * BUCKET.0);
    let is_written = LOGS.iter().any(|(name, _)| options.get(name).is_some());
    if is_written && interval == Nanos::ZERO {
        options.note(format!(
            "a line of a log stands for {whole}, not for one operation; log_avg_msec says for how long"
        ));
    } else if is_written && interval != whole {
        options.note(format!("log_avg_msec: {whole} instead of {interval}, whole buckets of {BUCKET}"));
    }
    whole
}

fn logs(options: &Options<'_>) -> Result<Logs, Error> {
    let interval = Nanos::millis(options.whole("log_avg_msec", 0..=86_400_000)?.unwrap_or(0));
    let interval = whole_buckets(options, interval);
    let maximum = options.truth("log_max_value", false)?;
    let per_job = options.truth("per_job_logs", true)?;
    let unix_epoch = options.truth("log_unix_epoch", false)?;
    let mut files = Vec::new();
    for (name, kind) in LOGS {
        let Some(setting) = options.get(name) else { continue };
        let prefix = setting.value.clone().filter(|prefix| !prefix.is_empty());
        files.push((kind, prefix.unwrap_or_else(|| options.name().to_owned())));
    }
    for name in ["log_avg_msec", "log_max_value", "per_job_logs", "log_unix_epoch"] {
        if files.is_empty() && options.get(name).is_some() {
            options.note(format!("{name} has no effect: no log is written"));
        }
    }
    Ok(Logs { files, interval, maximum, per_job, unix_epoch })
}
