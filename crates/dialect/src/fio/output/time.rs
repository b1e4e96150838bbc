//! The date as fio writes it.

use jiff::Timestamp;

/// `Sat Nov 21 23:27:02 2026`, in UTC, from the seconds since 1970.
pub(super) fn date(unix: u64) -> String {
    let seconds = i64::try_from(unix).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).strftime("%a %b %e %H:%M:%S %Y").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_fio() {
        // The first is what fio 3.33 printed for that second.
        assert_eq!(date(1_795_303_622), "Sat Nov 21 23:27:02 2026");
        assert_eq!(date(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(date(951_782_400), "Tue Feb 29 00:00:00 2000");
    }
}
