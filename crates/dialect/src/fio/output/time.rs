//! Dates in fio's format.

use jiff::Timestamp;
use jiff::tz::Offset;

use crate::Machine;

/// Returns the start of the run as `Sat Nov 21 23:27:02 2026`, in local time.
pub(super) fn date(machine: &Machine) -> String {
    let seconds = i64::try_from(machine.started_unix).unwrap_or(i64::MAX);
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    let offset = Offset::from_seconds(machine.zone_offset_seconds).unwrap_or(Offset::UTC);
    offset.to_datetime(time).strftime("%a %b %e %H:%M:%S %Y").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::tests::machine;

    #[test]
    fn dates_are_those_of_fio() {
        let at = |started_unix, zone_offset_seconds| {
            date(&Machine { started_unix, zone_offset_seconds, ..machine() })
        };
        // The first three as printed by fio 3.33 with TZ=UTC, TZ=Asia/Kolkata and TZ=America/New_York.
        assert_eq!(at(1_795_303_622, 0), "Sat Nov 21 23:27:02 2026");
        assert_eq!(at(1_795_303_622, 19_800), "Sun Nov 22 04:57:02 2026");
        assert_eq!(at(1_795_303_622, -18_000), "Sat Nov 21 18:27:02 2026");
        assert_eq!(at(0, 0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(at(951_782_400, 0), "Tue Feb 29 00:00:00 2000");
    }
}
