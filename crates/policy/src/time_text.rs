//! The time of day as text, for documents and file names.

/// Returns the current time in UTC, RFC 3339, to the second.
pub(crate) fn now_text() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the current time in UTC as part of a file name that sorts by time.
pub(crate) fn now_name() -> String {
    jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}
