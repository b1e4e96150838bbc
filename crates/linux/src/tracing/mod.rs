//! The kernel's event tracing (Documentation/trace/ftrace.rst, ring-buffer-design.rst): instances of our own,
//! and their raw per-processor buffers.
//!
//! - [`instance`] makes an instance, which other users of tracing do not see, and removes it again.
//! - [`mod@format`] is where the fields of an event are.
//! - [`page`] takes the pages of a buffer apart.
//! - [`buffers`] reads the pages of all processors.
//!
//! It takes root, and a kernel with the events.

pub mod buffers;
pub mod format;
pub mod instance;
pub mod page;

pub use buffers::Buffers;
pub use format::{EventFormat, Field};
pub use instance::{Instance, LeftInstance, Tracefs};
pub use page::{PageLayout, Record};
