//! Results of the tools of `plumb prove`: a trace, a verification after a cut, a campaign, a replay.

use plumb_block::Nanos;
use plumb_text::printable;

use super::Sections;
use crate::document::power::{
    CampaignDocument, CycleResult, Example, ProveReplay, TraceDocument, TraceStates, VerifyDocument,
};
use crate::outline::{Item, Page, Row};
use crate::terminal::{Cell, Ink, Table};

/// Maximum number of cycles shown. The document has all.
const CYCLES_MAX: usize = 20;

impl Sections for TraceDocument {
    const TITLE: &str = "plumb prove trace";

    fn add_to(&self, page: &mut Page) {
        let left = match self.findings.len() {
            0 => "No unsynced operation found".to_owned(),
            1 => "1 unsynced operation found".to_owned(),
            count => format!("{count} unsynced operations found"),
        };
        let ended = format!("{left} beneath {}; the program ended with {}.", self.beneath, self.ended);
        let mut head = vec![Item::text(&ended)];
        head.extend(self.failed_writes.map(|failed| match failed {
            0 => Item::text("No write of file data reached the drive, so none could fail: nothing is known."),
            _ => Item::text("A write of the drive failed beneath the program, as was asked for."),
        }));
        page.add("", head);
        let findings = Table::for_rows(&self.findings)
            .left("file", |finding| Cell::inked(Ink::Bold, printable(&finding.path)))
            .left("unsynced operation", |finding| printable(&finding.sentence));
        page.add("", Item::table(findings.if_any()));
        let synced = Table::for_rows(&self.synced)
            .left("synced", |(path, _)| printable(path))
            .right("times", |(_, count)| count.to_string());
        page.add("", Item::table(synced.if_any()));
        page.add("", self.states.iter().flat_map(states).collect());
        for (way, count) in &self.not_seen {
            let unseen = format!("Not seen: what was written through {way}, which was set up {count} times.");
            page.add("", vec![Item::text(&unseen)]);
        }
    }
}

/// Shows the states that a power cut may leave.
fn states(states: &TraceStates) -> Vec<Item> {
    let TraceStates { explored, failing, incomplete_because, failures, .. } = states;
    let found = format!("A power cut may leave {explored} states on POSIX, of which {failing} fail.");
    let mut items = vec![Item::text(&found)];
    items.extend(incomplete_because.iter().map(|because| Item::text(&format!("Not complete: {because}"))));
    let failures = Table::for_rows(failures)
        .left("failure", |failure| Cell::inked(Ink::Bold, printable(&failure.class)))
        .right("states", |failure| failure.states.to_string())
        .left("the simplest", |failure| printable(&failure.words));
    items.extend(Item::table(failures.if_any()));
    items
}

impl Sections for VerifyDocument {
    const TITLE: &str = "plumb prove verify";

    fn add_to(&self, page: &mut Page) {
        let VerifyDocument { run, blocks_read, acknowledged, .. } = self;
        let of = format!("run {run}, {blocks_read} blocks read, {acknowledged} writes acknowledged");
        let mut items = vec![Item::text(&self.headline), Item::text(&of)];
        items.extend(self.oldest_loss.map(|seconds| {
            let before = Nanos::from_secs_f64(seconds);
            Item::text(&format!(
                "the oldest missing write was durable {before} before the last that the witness heard"
            ))
        }));
        if self.unreadable_at_risk > 0 {
            let blocks = self.unreadable_at_risk;
            items.push(Item::text(&format!(
                "{blocks} blocks that were being written cannot be read, which is allowed"
            )));
        }
        items.push(Item::Rows(self.examples.iter().map(example).collect()));
        page.add("", items);
    }
}

fn example(example: &Example) -> Row {
    let write = example.write.map_or_else(|| "no write".to_owned(), |write| format!("write {write}"));
    let ago = example.before_cut.map(Nanos::from_secs_f64);
    let ago = ago.map_or_else(String::new, |ago| format!(", durable {ago} before the last heard"));
    let there = match (example.found_write, &example.found_run, example.found_offset) {
        (Some(write), _, Some(offset)) => format!("; there is write {write} for byte {}", offset.0),
        (None, Some(run), _) => format!("; there is a block of run {run}"),
        _ => String::new(),
    };
    Row::new(&example.class.to_string(), &format!("byte {}: {write}{ago}{there}", example.offset.0))
}

impl Sections for CampaignDocument {
    const TITLE: &str = "plumb prove campaign";

    fn add_to(&self, page: &mut Page) {
        let CampaignDocument { cycles, cycles_wanted, clean, losses, .. } = self;
        let (done, not_counted) = (cycles.len(), cycles.len() as u64 - clean - losses);
        let of = format!(
            "{done} of {cycles_wanted} cycles: {clean} clean, {losses} with losses, {not_counted} not counted"
        );
        let mut items = vec![Item::text(&self.headline), Item::text(&of)];
        items.extend(self.incomplete_because.iter().map(|why| Item::text(&format!("incomplete: {why}"))));
        let bad = cycles.iter().filter(|cycle| cycle.result != CycleResult::Clean).take(CYCLES_MAX);
        items.push(Item::facts(bad.map(|cycle| format!("cycle {}: {}", cycle.number, cycle.because))));
        page.add("", items);
    }
}

impl Sections for ProveReplay {
    const TITLE: &str = "plumb prove replay";

    fn add_to(&self, page: &mut Page) {
        let class = &self.class;
        let verdict = match &self.found {
            _ if self.reproduced => format!("fails again: {class}"),
            Some(now) => {
                format!("fails as {now} now; it failed as {class}, so the checker is not deterministic")
            }
            None => format!("is intact now; it failed as {class}, so the checker is not deterministic"),
        };
        let required = match self.required {
            Some(number) => format!("Acknowledgement {number} had to be found"),
            None => "Nothing was acknowledged yet".to_owned(),
        };
        let mut items = vec![Item::text(&format!("The state {verdict}. {required}."))];
        items.extend(self.words.iter().map(|words| Item::text(&format!("The checker says: {words}"))));
        page.add("", items);
    }
}
