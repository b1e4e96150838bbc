//! Renders a sample document: `cargo run --example render_sample -- virtual-machine html > report.html`; that of a load
//! by `load/side-by-side`, that of a proof by `proof/lost`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::Write;

use plumb_report::{Format, Style, render};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| common::NAMES[0].to_owned());
    let format: Format = arguments.next().unwrap_or_else(|| "html".to_owned()).parse()?;
    let width = arguments.next().and_then(|width| width.parse().ok()).unwrap_or(100);
    let style = Style { width, colour: false, unicode: true, ..Style::PLAIN };
    let text = match name.strip_prefix("load/") {
        None if common::PROOFS.contains(&name.trim_start_matches("proof/")) => {
            render(&common::proof(name.trim_start_matches("proof/")), format, style)?
        }
        Some(load) if common::LOADS.contains(&load) => render(&common::load_recording(load), format, style)?,
        _ => render(&common::recording(&name), format, style)?,
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
