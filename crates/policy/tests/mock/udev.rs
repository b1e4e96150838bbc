//! Checker of the udev rules that plumb writes. udev drops a rule with an error, with a line in its log.

/// Error of a rule that udev would not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}: {text}")]
pub struct RuleError {
    /// The line, from 1.
    pub line: usize,
    /// Description of what is wrong.
    pub what: &'static str,
    /// Text of the line.
    pub text: String,
}

/// Checks that udev would accept the rules: every line is a comment or pairs of key, operator and quoted
/// value, every GOTO has its LABEL, and no line only matches (udev(7)).
///
/// # Errors
/// Fails with the first wrong line.
pub fn check_rules(text: &str) -> Result<(), RuleError> {
    let labels: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("LABEL=")).collect();
    for (index, line) in text.lines().enumerate() {
        let wrong = |what| RuleError { line: index + 1, what, text: line.to_owned() };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let pairs = pairs(line).map_err(wrong)?;
        if !pairs.iter().any(|pair| !matches!(pair.operator, "==" | "!=")) {
            return Err(wrong("it matches and does nothing"));
        }
        for pair in pairs.iter().filter(|pair| pair.key == "GOTO") {
            if !labels.contains(&format!("\"{}\"", pair.value).as_str()) {
                return Err(wrong("it goes to a label that is not there"));
            }
        }
    }
    Ok(())
}

/// `KEY OPERATOR "value"`.
#[derive(Debug)]
pub struct Pair<'a> {
    key: &'a str,
    operator: &'a str,
    value: &'a str,
}

const KEYS: [&str; 11] =
    ["ACTION", "SUBSYSTEM", "SUBSYSTEMS", "ENV", "ATTR", "ATTRS", "TEST", "RUN", "GOTO", "LABEL", "KERNEL"];

/// Returns the pairs of a line: `KEY{attribute}OPERATOR"value"`, with commas between them.
///
/// # Errors
/// Fails with a description of the error in the line.
pub fn pairs(line: &str) -> Result<Vec<Pair<'_>>, &'static str> {
    let mut rest = line;
    let mut pairs = Vec::new();
    loop {
        let end = rest.find(['=', '!', '+', ':']).ok_or("a key has no operator")?;
        // An attribute may hold anything up to its brace.
        let end = match (rest.find('{'), rest.find('}')) {
            (Some(open), Some(close)) if open < end && open < close => close + 1,
            _ => end,
        };
        let (key, tail) = rest.split_at(end);
        let operator = ["==", "!=", "+=", ":=", "="]
            .into_iter()
            .find(|operator| tail.starts_with(operator))
            .ok_or("an operator is not known")?;
        let name = key.split('{').next().unwrap_or(key);
        if !KEYS.contains(&name) {
            return Err("a key is not known");
        }
        let quoted = tail[operator.len()..].strip_prefix('"').ok_or("a value has no quotes")?;
        let (value, tail) = quoted.split_once('"').ok_or("a value never ends")?;
        pairs.push(Pair { key: name, operator, value });
        match tail.strip_prefix(", ") {
            Some(next) => rest = next,
            None if tail.is_empty() => return Ok(pairs),
            None => return Err("there is no comma between two keys"),
        }
    }
}
