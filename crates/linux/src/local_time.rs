//! Local time from the C library: by `TZ`, otherwise by /etc/localtime.

#![expect(unsafe_code, reason = "rustix has no localtime_r")]

/// Returns the UTC offset of local time in seconds at `unix` seconds since 1970; 0 if it is unknown.
pub fn offset_seconds(unix: u64) -> i32 {
    let Ok(time) = libc::time_t::try_from(unix) else { return 0 };
    // SAFETY: a `tm` of zeroes is a valid value: its numbers are 0 and its name of the zone is null.
    let mut broken_down: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both point to values that live until the call has returned, and nothing keeps them.
    let filled = unsafe { libc::localtime_r(&raw const time, &raw mut broken_down) };
    let offset = i32::try_from(broken_down.tm_gmtoff).unwrap_or(0);
    if filled.is_null() { 0 } else { offset }
}
