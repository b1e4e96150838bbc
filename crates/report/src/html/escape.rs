//! Text in an element or a drawing: escaping, and estimation of its width.

/// Average width of a letter in the widest of the system fonts, as a part of the font size.
pub(in crate::html) const LETTER: f64 = 0.62;
/// Average width of a bold letter in the widest of the system fonts, as a part of the font size.
pub(in crate::html) const BOLD: f64 = 0.72;

/// Average width of a capital letter, as a part of the font size.
const CAPITAL: f64 = 0.76;

/// Cuts `text` to the letters that fit into `width`.
pub(in crate::html) fn cut(text: &str, width: f64, size: f64) -> String {
    let wide = |letter: char| size * if letter.is_uppercase() { CAPITAL } else { LETTER };
    if text.chars().map(wide).sum::<f64>() <= width {
        return text.to_owned();
    }
    let mut left = width - wide('…');
    let fits = |letter: &char| {
        left -= wide(*letter);
        left >= 0.0
    };
    let kept: String = text.chars().take_while(fits).collect();
    if kept.is_empty() { kept } else { kept + "…" }
}

/// Returns `text` escaped for an element or a double-quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// Returns `text` escaped, with parts between backticks as code.
pub(crate) fn prose(text: impl AsRef<str>) -> String {
    let mut rest = text.as_ref();
    let mut out = String::with_capacity(rest.len());
    while let Some((before, (code, after))) =
        rest.split_once('`').and_then(|(before, rest)| Some((before, rest.split_once('`')?)))
    {
        out.push_str(&format!("{}<code>{}</code>", escape(before), escape(code)));
        rest = after;
    }
    out + &escape(rest)
}

#[cfg(test)]
mod tests {
    use super::{cut, prose};

    #[test]
    fn a_text_is_cut_where_it_does_not_fit_and_capitals_are_wider() {
        assert_eq!(cut("abc", 100.0, 10.0), "abc");
        assert_eq!(cut("abcdefgh", 32.0, 10.0), "abcd…");
        assert_eq!(cut("ABCDEFGH", 32.0, 10.0), "ABC…");
        assert_eq!(cut("abc", 6.0, 10.0), "");
    }

    #[test]
    fn what_stands_between_backticks_is_code_and_a_lone_one_stays() {
        assert_eq!(prose("run `a <b>` & `c`"), "run <code>a &lt;b&gt;</code> &amp; <code>c</code>");
        assert_eq!(prose("one ` alone"), "one ` alone");
        assert_eq!(prose("`a` and ` alone"), "<code>a</code> and ` alone");
    }
}
