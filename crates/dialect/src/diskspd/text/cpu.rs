//! Table of processor use.

use plumb_load::SpanResult;

use super::super::measured::Usage;
use super::page::Page;

const LINE: &str = "----------------------------------------";

pub(super) fn table(result: &SpanResult, page: &mut Page) {
    if result.processors.is_empty() {
        page.line("\nCPU utilization is not known.");
        return;
    }
    page.line("\nCPU |  Usage |  User  | Kernel |  Idle");
    page.line(LINE);
    for processor in &result.processors {
        page.line(&row(&format!("{:>4}", processor.number), Usage::from_processor(processor)));
    }
    page.line(LINE);
    page.line(&row("avg.", Usage::mean(&result.processors)));
}

fn row(name: &str, usage: Usage) -> String {
    let Usage { used, user, kernel, idle } = usage;
    format!("{name}| {used:>6.2}%| {user:>6.2}%| {kernel:>6.2}%| {idle:>6.2}%")
}
