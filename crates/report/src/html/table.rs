//! Tables of the page, which are those of the terminal and of Markdown, as elements.
//!
//! On a narrow screen a row becomes a block of figures, each after the name of its column, so that nothing is
//! cut off at the edge.

use super::escape::{escape, prose};
use crate::terminal::{Cell, Ink, Side, Table};

/// Text and elements for one group of rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// Note after the name, as text.
    pub(super) note: String,
    /// Elements below the rows.
    pub(super) after: String,
}

/// Returns `table` as an element.
pub(super) fn table(table: &Table, caption: &str) -> String {
    let mut out = begin(table, caption, 0);
    out.push_str("<tbody>");
    let columns = table.head().count();
    for (number, row) in table.body().iter().enumerate() {
        push_row(&mut out, table, row);
        out.extend(table.notes().get(number).map(|note| {
            format!(r#"<tr class="line"><td colspan="{columns}" class="words">{}</td></tr>"#, prose(note))
        }));
    }
    out.push_str("</tbody></table>");
    out
}

/// Returns `table` as an element. Its first column names groups of rows: each name begins a group.
pub(super) fn grouped(table: &Table, groups: &[Group]) -> String {
    let mut out = begin(table, "", 1);
    let columns = table.head().count() - 1;
    let mut groups = groups.iter();
    let mut after = String::new();
    for row in table.body() {
        if let Some(name) = row.first().filter(|cell| !cell.text.is_empty()) {
            let group = groups.next().cloned().unwrap_or_default();
            let (name, note) = (escape(&name.text), escape(&group.note));
            let end = end_of_group(&std::mem::replace(&mut after, group.after), columns);
            out.push_str(&format!(
                r#"{end}<tbody class="group"><tr><th scope="rowgroup" colspan="{columns}">{name} <span>{note}</span></th></tr>"#
            ));
        }
        push_row(&mut out, table, row.get(1..).unwrap_or_default());
    }
    let end = if table.body().is_empty() { String::new() } else { end_of_group(&after, columns) };
    out.push_str(&format!("{end}</table>"));
    out
}

fn end_of_group(after: &str, columns: usize) -> String {
    match after {
        "" => "</tbody>".to_owned(),
        after => {
            format!(r#"<tr class="line"><td colspan="{columns}" class="words">{after}</td></tr></tbody>"#)
        }
    }
    .replacen("</tbody>", "</tbody>\n", 1)
}

fn begin(table: &Table, caption: &str, skip: usize) -> String {
    let mut out = String::from("<table>");
    if !caption.is_empty() {
        out.push_str(&format!("<caption>{}</caption>", escape(caption)));
    }
    out.push_str("<thead><tr>");
    for (index, (name, side)) in table.head().skip(skip).enumerate() {
        // The first cell of a row is its name, aligned to the left.
        let class = match (side == Side::Right && index > 0, longest_word(name) > WORD_MAX) {
            (true, true) => r#" class="n long""#,
            (true, false) => r#" class="n""#,
            (false, true) => r#" class="long""#,
            (false, false) => "",
        };
        match name {
            "" => out.push_str("<td></td>"),
            name => out.push_str(&format!(r#"<th scope="col"{class}>{}</th>"#, escape(name))),
        }
    }
    out.push_str("</tr></thead>\n");
    out
}

/// Length from which words may be broken, so that one of them does not widen the table beyond the page.
const WORD_MAX: usize = 18;

fn longest_word(text: &str) -> usize {
    text.split([' ', '-']).map(|word| word.chars().count()).max().unwrap_or(0)
}

/// Returns the content of a cell: its text, or for a bar of `#` an element of that length.
fn content(text: &str) -> String {
    match text.len() {
        1.. if text.bytes().all(|byte| byte == b'#') => {
            format!(r#"<i class="meter" style="width:{}em"></i>"#, text.len() as f64 / 2.0)
        }
        _ => prose(text),
    }
}

/// Writes one row, which may lack the first columns of the table.
fn push_row(out: &mut String, table: &Table, row: &[Cell]) {
    let columns: Vec<(&str, Side)> = table.head().collect();
    let columns = &columns[columns.len().saturating_sub(row.len())..];
    out.push_str(r#"<tr class="line">"#);
    for (index, (cell, (name, side))) in row.iter().zip(columns).enumerate() {
        let weight = match cell.ink {
            Ink::Red => "zero mid",
            Ink::Bold => "mid",
            Ink::Dim => "u",
            _ => "",
        };
        let side = match side {
            Side::Right if index > 0 => "n",
            _ if longest_word(&cell.text) > WORD_MAX => "long",
            _ => "",
        };
        let text = content(&cell.text);
        out.push_str(&match index {
            0 => format!(r#"<th scope="row" class="{side} {weight}">{text}</th>"#),
            _ => format!(r#"<td class="{side} {weight}" data-of="{}">{text}</td>"#, escape(name)),
        });
    }
    out.push_str("</tr>\n");
}
