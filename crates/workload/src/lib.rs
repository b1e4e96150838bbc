//! What to write.
