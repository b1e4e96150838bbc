//! What a reader sees: verdicts and every output format.
