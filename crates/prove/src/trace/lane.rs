//! System calls of a program as a lane of the timeline in a report.

use std::collections::HashMap;
use std::path::Path;

use plumb_block::Nanos;
use plumb_report::document::proof::{Lane, TimelineItem};

use super::{Argument, Audit, TracedCalls};

/// Returns the calls that change or sync something below the root, each with its process. Times are relative
/// to `began`.
pub(crate) fn lane(traced: &TracedCalls, began: Nanos) -> Vec<TimelineItem> {
    let root = &*traced.root;
    let mut audit = Audit::beneath(root, &traced.names);
    let mut programs: HashMap<u32, &Path> = HashMap::new();
    let mut items = Vec::new();
    for call in &traced.calls {
        if let ("execve", Some(Argument::Text(path)), Ok(_)) =
            (call.name.as_str(), call.arguments.first(), &call.result)
        {
            programs.insert(call.thread, path);
        }
        let changed = audit.changed(call).map(|(_, path)| path);
        audit.observe(call);
        let Some(path) = changed.or_else(|| call.synced(root)) else { continue };
        let path = if path == root { Path::new(".") } else { path.strip_prefix(root).unwrap_or(&path) };
        let by = programs.get(&call.thread).and_then(|path| path.file_name());
        let by = by.map_or(String::new(), |name| format!("{} ", name.display()));
        let from = call.at.since(began);
        items.push(TimelineItem {
            lane: Lane::SystemCall,
            from: from.as_secs_f64(),
            until: Some(from.saturating_add(call.took).as_secs_f64()),
            label: format!("{}({}) by {by}{}", call.name, path.display(), call.thread),
            fate: None,
        });
    }
    items
}
