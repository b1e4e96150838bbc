//! Wait statistics of threads (`-vs`): plumb's own counters in place of DiskSpd's.

use plumb_block::Nanos;
use plumb_load::SpanResult;

use super::super::measured::{ms, parts};
use super::page::Page;

pub(super) fn table(result: &SpanResult, page: &mut Page) {
    page.line("\nWait Statistics");
    page.line(
        "thread | in flight max | late starts | backlog max (ms) | never started | user (ms) | kernel (ms)",
    );
    page.line(
        "-----------------------------------------------------------------------------------------------",
    );
    for (number, thread) in result.threads.iter().enumerate() {
        let own = || parts(result).filter(move |(owner, _)| *owner == number).map(|(_, part)| &part.outcome);
        let in_flight: u64 = own().map(|outcome| outcome.in_flight_max).sum();
        let late: u64 = own().map(|outcome| outcome.late_starts).sum();
        let backlog = own().map(|outcome| outcome.backlog_max).max().unwrap_or(Nanos::ZERO);
        let unstarted: u64 = own().map(|outcome| outcome.unstarted).sum();
        let time = |time: Option<Nanos>| match time {
            Some(time) => format!("{:.1}", ms(time.as_secs_f64())),
            None => "unknown".to_owned(),
        };
        page.line(&format!(
            "{number:>6} | {in_flight:>13} | {late:>11} | {:>16.3} | {unstarted:>13} | {:>9} | {:>11}",
            ms(backlog.as_secs_f64()),
            time(thread.cpu.map(|cpu| cpu.user)),
            time(thread.cpu.map(|cpu| cpu.system)),
        ));
    }
}
