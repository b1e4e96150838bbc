//! The kernel's event tracing (Documentation/trace/ftrace.rst, ring-buffer-design.rst): instances of our own,
//! and their raw per-processor buffers.
//!
//! - [`instance`] creates and removes an instance, which is invisible to other users of tracing.
//! - [`mod@format`] parses the field layout of an event.
//! - [`page`] parses the pages of a buffer.
//! - [`buffers`] reads the pages of all processors.
//!
//! Requires root, and a kernel with the events.

pub mod buffers;
pub mod format;
pub mod instance;
pub mod page;

pub use buffers::Buffers;
pub use format::{EventFormat, Field};
pub use instance::{Instance, LeftInstance, Tracefs};
pub use page::{PageLayout, Record};
