//! The date as fio writes it.

/// `Sat Nov 21 23:27:02 2026`, in UTC, from the seconds since 1970.
pub(super) fn date(unix: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, seconds) = (unix / 86_400, unix % 86_400);
    let weekday = DAYS[(days % 7) as usize];
    let (mut year, mut day) = (1970, days);
    while day >= year_days(year) {
        day -= year_days(year);
        year += 1;
    }
    let mut month = 0;
    while day >= month_days(year, month) {
        day -= month_days(year, month);
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let month = MONTHS[month];
    format!("{weekday} {month} {:>2} {hour:02}:{minute:02}:{second:02} {year}", day + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn year_days(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn month_days(year: u64, month: usize) -> u64 {
    match month {
        1 if is_leap(year) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
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
