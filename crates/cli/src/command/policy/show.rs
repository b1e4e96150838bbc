//! `plumb policy show`: how write caches are.

use std::io::IsTerminal as _;
use std::sync::Arc;

use plumb_path::Severity;
use plumb_policy::view::PolicyDocument;

use super::here::Here;
use super::listening::Listening;
use super::{print_json, text};
use crate::arguments::policy::ShowArguments;
use crate::exit::Exit;
use crate::terminal;

pub(super) fn run(arguments: &ShowArguments) -> anyhow::Result<Exit> {
    let mut here = Here::new(&arguments.claims)?;
    let listening = Arc::new(Listening::new(Arc::clone(&here.gateway)));
    if arguments.explain {
        here.gateway = listening.clone();
    }
    let document = here.document(&arguments.chosen)?;
    if arguments.json {
        print_json(&document)?;
    } else if arguments.prometheus {
        terminal::print(&text::prometheus::of(&document))?;
    } else {
        let mut page = page(&document, arguments, here.is_root);
        if arguments.explain {
            for view in &document.devices {
                page += &text::wire::answers(&view.name, &listening.heard(&view.name));
            }
        }
        terminal::print(&page)?;
    }
    let found = document.devices.iter().flat_map(|view| &view.findings);
    let is_found = found.into_iter().any(|finding| finding.severity >= Severity::Warning);
    Ok(if is_found { Exit::Finding } else { Exit::Done })
}

/// One disk in full if one was named, otherwise a table.
fn page(document: &PolicyDocument, arguments: &ShowArguments, is_root: bool) -> String {
    let style = terminal::style();
    let mut page = match document.devices.as_slice() {
        [] => "No disk here has a write cache of its own, or none is chosen.\n".to_owned(),
        [view] if !arguments.chosen.devices.is_empty() => text::detail::of(view, style),
        _ => text::table::of(document, style, std::io::stdout().is_terminal()),
    };
    if !is_root {
        page += "\nSeen without root: what a drive itself says (its cache, what protects it, its counters) stays hidden \
                 where only root may ask.\n";
    }
    page
}
