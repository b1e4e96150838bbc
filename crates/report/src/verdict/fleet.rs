//! Rules for many hosts.

use std::collections::BTreeMap;

use plumb_measure::median;
use plumb_path::{Finding, Severity};

use super::outcome::Verdict;
use crate::document::Sides;
use crate::document::fleet::{FleetDocument, FleetHost};
use crate::headline::{UNKNOWN, sentence};
use crate::quantity::{count, duration, or_dash, percent, rate, throughput};

/// Share of the median rate below which a host counts as a straggler.
pub const STRAGGLER_SHARE: f64 = 0.7;
/// Delay of a host's start from which it is reported, if it exceeds a hundredth of the run.
const SKEW_SECONDS: f64 = 0.02;
/// Maximum number of hosts named.
const NAMED: usize = 3;

/// Judges a document: adds the findings about the hosts together and about each host to `of_hosts`, and sets
/// level and headline.
pub fn conclude_fleet(document: &mut FleetDocument, of_hosts: &[(String, Finding)]) {
    let found = [missing(document), straggler(document), skew(document)];
    document.verdicts = found.into_iter().flatten().chain(together(of_hosts)).collect();
    Finding::sort_by_severity(&mut document.verdicts);
    let worst = document.verdicts.iter().map(|finding| finding.severity).max();
    document.level = worst.map_or("none", Severity::word).to_owned();
    document.headline = [vec![headline(document)], names_of_one_machine(&document.hosts)].concat().join(" ");
    let unknown = document.hosts.iter().filter(|host| host.level.as_deref() == Some(UNKNOWN));
    let unknown = named(unknown.map(|host| host.name.as_str()));
    if worst <= Some(Severity::Info) && !unknown.is_empty() {
        UNKNOWN.clone_into(&mut document.level);
        document.headline = format!("NOT KNOWN on {unknown}: {}", document.headline);
    }
}

/// Returns a sentence for each machine of which several hosts are names: its devices and memory are shared.
pub fn names_of_one_machine(hosts: &[FleetHost]) -> Vec<String> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for host in hosts {
        if let Some(boot_id) = &host.boot_id {
            names.entry(boot_id).or_default().push(&host.name);
        }
    }
    let several = names.into_values().filter(|names| names.len() > 1);
    several
        .map(|names| {
            let of = count(names.len() as u64);
            format!("{of} names are one machine, with one boot id: {}.", named(names.into_iter()))
        })
        .collect()
}

/// Returns the names, or the first ones of many.
pub fn named<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let more = names.len().saturating_sub(NAMED);
    let first = names[..names.len() - more].join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

fn missing(document: &FleetDocument) -> Option<Finding> {
    let names = named(document.missing().map(|host| host.name.as_str()));
    let why = |host: &FleetHost| {
        format!("{}: {}", host.name, host.because.as_deref().unwrap_or("no reason is known"))
    };
    let evidence: Vec<String> = document.missing().map(why).collect();
    let of = count(document.hosts.len() as u64);
    let sentence =
        format!("{} of {of} hosts did not do all that they were asked for: {names}", evidence.len());
    (!evidence.is_empty()).then(|| Verdict::new(Severity::Info, sentence, evidence).named("hosts-missing"))
}

/// Returns the rates of the hosts that measured something.
fn rates(document: &FleetDocument) -> Vec<(&FleetHost, f64)> {
    let measured = document.hosts.iter().filter(|host| host.ok);
    measured.filter_map(|host| Some((host, host.total.as_ref()?.rate()?))).collect()
}

impl Sides {
    /// Returns operations per second, or syncs where there are no operations; `None` if there were none.
    fn rate(&self) -> Option<f64> {
        let iops = if self.application.operations > 0 { self.application.iops } else { self.sync.iops };
        (iops > 0.0).then_some(iops)
    }

    /// Returns the unit of [`rate`](Self::rate).
    fn rate_unit(&self) -> &'static str {
        match self.application.operations {
            0 => "syncs per second",
            _ if self.is_synced_one_by_one() => "synced writes per second",
            _ => "IOPS",
        }
    }
}

fn straggler(document: &FleetDocument) -> Option<Finding> {
    let rates = rates(document);
    let all: Vec<f64> = rates.iter().map(|(_, rate)| *rate).collect();
    let median = median(&all).filter(|_| all.len() > 2)?;
    let slow: Vec<_> = rates.iter().filter(|(_, rate)| *rate < STRAGGLER_SHARE * median).collect();
    let (slowest, least) = slow.iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
    let sentence = format!(
        "{} reached less than {} of the median host: {}, the slowest, {}/s against {}/s",
        named(slow.iter().map(|(host, _)| host.name.as_str())),
        percent(STRAGGLER_SHARE),
        slowest.name,
        rate(*least),
        rate(median)
    );
    let evidence = slow.iter().map(|(host, of)| format!("{}: {}/s", host.name, rate(*of))).collect();
    Some(Verdict::new(Severity::Warning, sentence, evidence).named("straggler"))
}

fn skew(document: &FleetDocument) -> Option<Finding> {
    let late = |host: &FleetHost| host.start_late.unwrap_or(0.0) + host.clock_error.unwrap_or(0.0);
    let ran = document.last_done?;
    let allowed = SKEW_SECONDS.max(ran / 100.0);
    let hosts: Vec<&FleetHost> = document.hosts.iter().filter(|host| host.start_late.is_some()).collect();
    let latest = hosts
        .iter()
        .max_by(|one, other| late(one).total_cmp(&late(other)))
        .filter(|host| late(host) > allowed)?;
    let sentence = format!(
        "The hosts may not have run at the same time: {} started up to {} late, in a run of {}",
        latest.name,
        duration(late(latest)),
        duration(ran)
    );
    let told = |host: &&FleetHost| {
        let (late, error) = (or_dash(host.start_late, duration), or_dash(host.clock_error, duration));
        format!("{}: {late} late, its clock known within {error}", host.name)
    };
    Some(Verdict::new(Severity::Info, sentence, hosts.iter().map(told).collect()).named("start-skew"))
}

/// Finding common to several hosts.
struct SharedFinding<'a> {
    hosts: Vec<&'a str>,
    /// Finding of the first host, with the sentences of all as evidence.
    found: Finding,
    /// True if the sentences of the hosts differ.
    differs: bool,
}

/// Merges findings common to several hosts, with the names of the hosts. A finding of data loss stays
/// separate for each host, since its remedy differs; any other has the words of the first host, and states
/// that.
fn together(of_hosts: &[(String, Finding)]) -> Vec<Finding> {
    let mut all: Vec<SharedFinding<'_>> = Vec::new();
    for (host, found) in of_hosts {
        let in_words = format!("{host}: {}", found.sentence);
        let is_same = |known: &Finding| known.sentence == found.sentence && known.remedy == found.remedy;
        let known = all.iter_mut().find(|SharedFinding { found: known, .. }| {
            let is_alike = known.id == found.id && known.severity == found.severity;
            is_alike && (found.severity < Severity::Danger || is_same(known))
        });
        match known {
            Some(known) => {
                if known.hosts.last() != Some(&host.as_str()) {
                    known.hosts.push(host);
                }
                known.differs |= !is_same(&known.found);
                known.found.evidence.push(in_words);
            }
            None => {
                let found = Finding { evidence: vec![in_words], ..found.clone() };
                all.push(SharedFinding { hosts: vec![host], found, differs: false });
            }
        }
    }
    let told = |SharedFinding { hosts, found, differs }: SharedFinding<'_>| {
        let of =
            if differs && hosts.len() > 1 { format!(" (this is of {})", hosts[0]) } else { String::new() };
        Finding { sentence: format!("{}{of}: {}", named(hosts.into_iter()), found.sentence), ..found }
    };
    all.into_iter().map(told).collect()
}

/// Returns the result in one sentence.
fn headline(document: &FleetDocument) -> String {
    let worst = document.verdicts.first().filter(|finding| finding.severity > Severity::Info);
    let done = document.hosts.iter().filter(|host| host.ok).count();
    let of = format!("{done} of {} hosts", count(document.hosts.len() as u64));
    if let Some(worst) = worst {
        let missing = document.verdicts.iter().find(|finding| finding.id == "hosts-missing");
        let both = [Some(worst), missing].into_iter().flatten().map(|finding| sentence(&finding.sentence));
        return both.collect::<Vec<_>>().join(" ");
    }
    let reached = document.measured().and_then(|total| {
        let (bytes, each) = (total.application.bytes_per_second, document.each_bytes_per_second());
        let reached = format!("{} {}", rate(total.rate()?), total.rate_unit());
        Some(match bytes > 0.0 {
            true => format!("{reached} and {} in all, {} each", throughput(bytes), throughput(each)),
            false => format!("{reached} in all"),
        })
    });
    match (&document.total, reached) {
        (Some(_), Some(reached)) => format!(
            "{of} reached {reached}{}.",
            if document.unfinished.is_some() {
                "; what the others did until they ended is not in it"
            } else {
                ""
            }
        ),
        (None, Some(reached)) => {
            let measured = document.counted().count();
            format!("{of} did what they were asked for; {measured} reached {reached} until they ended.")
        }
        _ if done == 0 => format!("{of} did what they were asked for."),
        (Some(_), None) => format!("{of} answered, and nothing was measured."),
        (None, None) => format!("{of} answered, and no rule found anything that loses synced data."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straggler_is_judged_by_the_median_of_all_hosts() {
        let host = |rate: f64| {
            let mut total = Sides::default();
            total.sync.iops = rate;
            FleetHost { name: rate.to_string(), ok: true, total: Some(total), ..FleetHost::default() }
        };
        let found = |rates: [f64; 4]| {
            straggler(&FleetDocument { hosts: rates.map(host).to_vec(), ..FleetDocument::default() })
        };
        assert!(found([38.0, 40.0, 60.0, 70.0]).is_none());
        let sentence = found([30.0, 40.0, 60.0, 70.0]).expect("a straggler").sentence;
        assert!(sentence.starts_with("30 reached less") && sentence.contains("against 50"), "{sentence}");
    }

    #[test]
    fn several_names_of_one_machine_are_said() {
        let host = |name: &str, boot_id: &str| FleetHost {
            name: name.to_owned(),
            ok: true,
            boot_id: Some(boot_id.to_owned()),
            ..FleetHost::default()
        };
        let hosts = vec![host("a", "1"), host("b", "2"), host("c", "1")];
        let mut document = FleetDocument { hosts, ..FleetDocument::default() };
        conclude_fleet(&mut document, &[]);
        let end = " 2 names are one machine, with one boot id: a, c.";
        assert!(document.headline.ends_with(end), "{}", document.headline);
        document.hosts.pop();
        conclude_fleet(&mut document, &[]);
        assert!(!document.headline.contains("machine"), "{}", document.headline);
    }

    #[test]
    fn what_loses_data_is_told_of_each_host_in_its_own_words_and_who_is_missing_beside_it() {
        let found = |host: &str, severity, sentence: &str| {
            (host.to_owned(), Verdict::new(severity, sentence.to_owned(), Vec::new()).named("x"))
        };
        let of_hosts = [
            found("a", Severity::Danger, "/a loses"),
            found("b", Severity::Danger, "/b loses"),
            found("c", Severity::Danger, "/a loses"),
            found("a", Severity::Warning, "60 a second"),
            found("b", Severity::Warning, "70 a second"),
        ];
        let gone = FleetHost { name: "d".to_owned(), ..FleetHost::default() };
        let mut document = FleetDocument { hosts: vec![gone], ..FleetDocument::default() };
        conclude_fleet(&mut document, &of_hosts);
        let told: Vec<&str> = document.verdicts.iter().map(|finding| finding.sentence.as_str()).collect();
        assert_eq!(told[..3], ["a, c: /a loses", "b: /b loses", "a, b (this is of a): 60 a second"]);
        assert!(
            document.headline.starts_with("a, c: /a loses. 1 of 1 hosts did not"),
            "{}",
            document.headline
        );
    }
}
