//! Help in all its forms, made from the definition that parses and one table of [`pages`]: `-h` is a screen,
//! `--help` has everything, manual pages have the sections that man(7) names, and completions ask plumb
//! itself for names that only the machine knows.

mod completions;
mod form;
mod manual;
mod pages;

pub(crate) use self::completions::completions;
pub(crate) use self::form::{Form, command};
pub(crate) use self::manual::manual;
