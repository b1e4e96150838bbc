//! Reading of a scenario from TOML.

use plumb_workload::{Job, Scenario, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::invalid_field::InvalidField;
use super::layer::{Layer, Scope};
use super::lines::Lines;
use super::rules;
use super::words::Words;
use crate::Error;

/// Reads the scenario in `text`; `file` is its name in errors. Jobs without a seed get `default_seed`.
///
/// # Errors
/// Names `file:line`, the word, its value and the expected form.
pub fn read(text: &str, file: &str, default_seed: u64) -> Result<Scenario, Error> {
    read_under(text, file, &Words::default(), default_seed)
}

/// Reads a scenario as [`read`] does, with words that were `typed` together with the file name. They replace
/// words of the file in every span and job.
///
/// # Errors
/// Fails as [`read`]; names the flag if a typed word is invalid.
pub fn read_under(text: &str, file: &str, typed: &Words, default_seed: u64) -> Result<Scenario, Error> {
    rules::check_agreement(typed).map_err(|error| error.typed())?;
    let lines = Lines::new(file, text);
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Error::new(lines.place(at), error.message().trim()).remedy("the file must be valid TOML")
    })?;
    let reader = Reader { lines, typed, default_seed };
    let (spans, layers): (Vec<Span>, Vec<Vec<Layer>>) = reader.spans(table.get_ref())?.into_iter().unzip();
    let scenario = Scenario { spans };
    scenario.validate().map_err(|invalid| reader.located(InvalidField::from_invalid(invalid), &layers))?;
    Ok(scenario)
}

struct Reader<'a> {
    lines: Lines<'a>,
    typed: &'a Words,
    default_seed: u64,
}

/// A span, and the words of its jobs.
type SpanLayers = (Span, Vec<Layer>);

impl Reader<'_> {
    fn spans(&self, table: &DeTable<'_>) -> Result<Vec<SpanLayers>, Error> {
        let file = Layer::of_table(table, self.lines.place(0), Scope::Span, &["span", "job"], &self.lines)?;
        let Some(spans) = self.tables(table, "span")? else {
            return Ok(vec![self.span(table, &file)?]);
        };
        if let Some((key, _)) = table.get_key_value("job") {
            let problem = "job: the file has [[span]] tables, and this job is in none of them";
            return Err(Error::new(self.lines.place(key.span().start), problem).remedy("write [[span.job]]"));
        }
        let read = |(place, table): (String, &DeTable<'_>)| {
            let words = Layer::of_table(table, place, Scope::Span, &["job"], &self.lines)?;
            self.span(table, &words.within(&file))
        };
        spans.into_iter().map(read).collect()
    }

    /// Returns the span of a table; `words` includes those of enclosing tables.
    fn span(&self, table: &DeTable<'_>, words: &Layer) -> Result<SpanLayers, Error> {
        let layers = match self.tables(table, "job")? {
            None => vec![words.under(self.typed)],
            Some(jobs) => {
                let read = |(place, table): (String, &DeTable<'_>)| {
                    let job = Layer::of_table(table, place, Scope::Job, &[], &self.lines)?;
                    Ok(job.within(words).under(self.typed))
                };
                jobs.into_iter().map(read).collect::<Result<_, Error>>()?
            }
        };
        let jobs = layers.iter().map(|layer| self.job(layer)).collect::<Result<_, _>>()?;
        Ok((words.under(self.typed).words.span(jobs), layers))
    }

    fn job(&self, layer: &Layer) -> Result<Job, Error> {
        layer.words.job(self.default_seed).map_err(|error| layer.located(&error))
    }

    /// Returns the `[[key]]` tables in `table` with their positions; `None` without that key.
    fn tables<'t, 'i>(
        &self,
        table: &'t DeTable<'i>,
        key: &str,
    ) -> Result<Option<Vec<(String, &'t DeTable<'i>)>>, Error> {
        let Some((key, value)) = table.get_key_value(key) else { return Ok(None) };
        let place = self.lines.place(key.span().start);
        let found = self.lines.quote(value.span());
        let wrong = || {
            Error::new(place, format!("{key}: found {found}, expected [[{key}]] tables", key = key.get_ref()))
        };
        let elements: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
            DeValue::Array(elements) if !elements.is_empty() => elements.iter().collect(),
            _ => return Err(wrong()),
        };
        let tables = elements.iter().map(|element| {
            let table = element.get_ref().as_table()?;
            Some((self.lines.place(element.span().start), table))
        });
        tables.collect::<Option<Vec<_>>>().map(Some).ok_or_else(wrong)
    }

    fn located(&self, invalid: InvalidField, layers: &[Vec<Layer>]) -> Error {
        let Some(layer) = layers.get(invalid.span).and_then(|jobs| jobs.get(invalid.job)) else {
            return Error::new(self.lines.place(0), "no job: expected at least one");
        };
        layer.located(&invalid.error(&layer.words))
    }
}
