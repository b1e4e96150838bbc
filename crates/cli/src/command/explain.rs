//! `plumb explain`: explanation of a rule.

use plumb_block::FailureKind;
use plumb_report::{rules, terminal as text};
use plumb_text::nearest;

use crate::exit::{Exit, Refusal};
use crate::terminal;

/// Explains the rule, or lists all of them.
pub(crate) fn run(rule: Option<&str>) -> anyhow::Result<Exit> {
    let Some(typed) = rule else {
        terminal::print(&text::explain_list(terminal::style()))?;
        return Ok(Exit::Done);
    };
    let rule = rules::find(typed).ok_or_else(|| unknown(typed))?;
    terminal::print(&text::explain(rule, terminal::style()))?;
    Ok(Exit::Done)
}

fn unknown(typed: &str) -> Refusal {
    let known = rules::all();
    let near = nearest(&typed.to_lowercase(), known.iter().map(|rule| rule.id.as_str()));
    let remedy = match near {
        Some(near) => format!("did you mean {near}?"),
        None => "`plumb explain` lists all rules".to_owned(),
    };
    Refusal::new(FailureKind::Usage, format!("`{typed}` is not a rule: {remedy}"))
}
