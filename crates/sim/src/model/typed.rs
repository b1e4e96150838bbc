//! A simulated drive as typed: `MODEL?wce=off&seed=7&size=1GiB&fault=write:eio:p=0.01`, also with changed
//! parameters of the model: `ata-40gb?behaviour.driver_drops_flush=true`.

use std::path::Path;
use std::str::FromStr;

use plumb_block::Bytes;
use plumb_text::nearest;

use crate::fault::{Fault, FaultError};

use super::change::Change;
use super::error::{ModelError, TypedError};
use super::load::Model;

/// Parsed text whose model has not been looked up.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TypedModel {
    /// Name of a shipped model, or path of a file if it contains a `/` or ends in `.toml`.
    pub model: String,
    /// Initial state of the write cache; the model's default if absent.
    pub wce: Option<bool>,
    /// Seed of everything random; 0 if absent.
    pub seed: u64,
    /// Capacity; the model's default if absent.
    pub size: Option<Bytes>,
    /// Faults in addition to the model's own.
    pub faults: Vec<Fault>,
    /// Changed parameters of the model.
    pub changes: Vec<Change>,
}

impl TypedModel {
    /// Loads the model.
    ///
    /// # Errors
    /// If there is no such model or file, or its contents are invalid.
    pub fn resolve(&self) -> Result<Model, ModelError> {
        let model = if self.model.contains('/') || self.model.ends_with(".toml") {
            Model::from_file(Path::new(&self.model))?
        } else {
            Model::named(&self.model)?
        };
        if self.changes.is_empty() { Ok(model) } else { model.with(&self.changes) }
    }
}

impl FromStr for TypedModel {
    type Err = TypedError;

    fn from_str(typed: &str) -> Result<Self, TypedError> {
        let (model, options) = typed.split_once('?').unwrap_or((typed, ""));
        let fail = |part: &str, expected: &str| TypedError {
            typed: typed.to_owned(),
            part: part.to_owned(),
            expected: expected.to_owned(),
        };
        if model.is_empty() {
            return Err(fail(typed, "expected the name of a model, or the path of a file"));
        }
        let mut parsed = Self { model: model.to_owned(), ..Self::default() };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').ok_or_else(|| fail(option, "expected KEY=VALUE"))?;
            parsed.set(key, value).map_err(|expected| fail(option, &expected))?;
        }
        Ok(parsed)
    }
}

impl TypedModel {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "wce" => {
                self.wce = Some(match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err("expected on or off".to_owned()),
                });
            }
            "seed" => self.seed = value.parse().map_err(|_| "expected a whole number")?,
            "size" => {
                let size: Bytes = value.parse().map_err(|_| "expected a size such as 1GiB")?;
                if !super::Geometry::SIZES.contains(&size.0) || !size.0.is_multiple_of(512) {
                    return Err("expected whole blocks of 512 bytes, 1 MiB to 1 PiB".to_owned());
                }
                self.size = Some(size);
            }
            _ if key.contains('.') => {
                self.changes.push(Change { path: key.to_owned(), value: value.to_owned() });
            }
            "fault" => self.faults.push(value.parse().map_err(|wrong: FaultError| wrong.to_string())?),
            _ => {
                return Err(match nearest(key, ["wce", "seed", "size", "fault"]) {
                    Some(meant) => format!("there is no such option; `{meant}` was probably meant"),
                    None => "there is no such option; there are wce, seed, size, fault, and the parameters that `plumb drive show` prints".to_owned(),
                });
            }
        }
        Ok(())
    }
}
