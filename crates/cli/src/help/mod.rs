//! Help in all its forms, generated from the argument definitions and the table of [`pages`]: `-h` fits one
//! screen, `--help` has everything, manual pages have the sections of man-pages(7), and completions request
//! from plumb the names that only the machine knows.

mod completions;
mod form;
mod manual;
mod pages;

pub(crate) use self::completions::completions;
pub(crate) use self::form::{Form, command};
pub(crate) use self::manual::manual;
