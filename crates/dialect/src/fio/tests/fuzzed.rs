//! Arbitrary input causes no panic, and accepted input yields a valid scenario.

use super::*;
use crate::fio::{command, json, logs, normal, option_table};
use proptest::prelude::*;

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,20}[kmgtKMGT%]?i?b?",
        "(rand)?(read|write|rw|trim)(:[0-9]{1,4}k?)?",
        "([0-9]{1,3}k?/[0-9]{1,3}:?,?){1,4}",
        "(zipf|pareto|normal|zoned|zoned_abs|random):?[0-9./:k]{0,12}",
        "[a-z0-9:,./%$\\{\\}-]{0,16}",
        "(write|wait_before):[0-9]{1,6}",
    ]
}

fn line() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = option_table::all().collect();
    let setting =
        (proptest::sample::select(names), value()).prop_map(|(name, value)| format!("{name}={value}"));
    let alone =
        proptest::sample::select(vec!["time_based", "thread", "stonewall", "group_reporting", "direct"]);
    prop_oneof![
        8 => setting,
        1 => alone.prop_map(str::to_owned),
        1 => "\\[[a-z ]{0,6}\\]?",
        1 => "(include )?[ -~]{0,20}",
    ]
}

fn is_sound(text: &str) -> bool {
    match file(text) {
        Err(error) => !error.place.is_empty() && !error.problem.is_empty(),
        Ok(invocation) => invocation.meaning.scenario.validate().is_ok() && prints(&invocation),
    }
}

/// Returns true if all output formats can be produced; only for few threads, as each has histograms.
fn prints(invocation: &Invocation) -> bool {
    let jobs = invocation.meaning.scenario.spans.iter().flat_map(|span| &span.jobs);
    let threads: u32 = jobs.map(|job| job.threads).sum();
    if threads > 4 {
        return true;
    }
    let results = super::outputs::results(invocation);
    let value = json(invocation, &results, &[], &machine(), true);
    let all = value["jobs"].as_array().is_some_and(|jobs| !jobs.is_empty());
    let files = logs(invocation, &results, &machine());
    all && !normal(invocation, &results, &machine()).is_empty()
        && !command(invocation).is_empty()
        && files.iter().all(|file| !file.name.is_empty())
}

proptest! {
    #[test]
    fn any_lines(lines in proptest::collection::vec(line(), 0..8)) {
        let text = format!("[x]\n{}\n", lines.join("\n"));
        prop_assert!(is_sound(&text), "{text}");
    }

    #[test]
    fn one_option_beside_a_sound_job(line in line(), rw in "(rand)?(read|write|rw)") {
        let text = format!("[x]\nfilename=/f\nsize=64m\nrw={rw}\nioengine=io_uring\niodepth=4\n{line}\n");
        prop_assert!(is_sound(&text), "{text}");
    }

    #[test]
    fn any_arguments(arguments in proptest::collection::vec("-{0,2}[a-z_-]{0,12}=?[a-z0-9]{0,6}", 0..8)) {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        if let Err(error) = parse_in(&arguments, &[]) {
            prop_assert!(!error.problem.is_empty());
        }
    }
}
