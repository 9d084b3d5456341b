//! Dates as they stand in web pages and JSONL: seconds since 1970.

/// Reads `2024-05-01`, `2024-05-01T12:30:00Z`, with fractions and offsets, or a number of seconds or
/// milliseconds. Nothing for anything else.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<i64>() {
        return Some(epoch(number));
    }
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], text.get(at + 1..)?),
        None => (text, ""),
    };
    let mut parts = date.splitn(3, '-');
    let year: i64 = parts.next()?.parse().ok()?;
    let month: i64 = parts.next()?.parse().ok()?;
    let day: i64 = parts.next()?.parse().ok()?;
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days_from_civil(year, month, day) * 86_400 + time_of_day(time.trim()).unwrap_or(0))
}

/// A number of seconds, or of milliseconds where it would lie past the year 5138.
pub(crate) fn epoch(number: i64) -> i64 {
    if number.unsigned_abs() >= 100_000_000_000 { number / 1000 } else { number }
}

fn time_of_day(text: &str) -> Option<i64> {
    let digits = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (hours, minutes, seconds) = (digits(0..2)?, digits(3..5)?, digits(6..8).unwrap_or(0));
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let offset = text.get(5..).and_then(|rest| {
        let at = rest.rfind(['+', '-'])?;
        let hours: i64 = rest.get(at + 1..at + 3)?.parse().ok()?;
        let minutes: i64 = rest.get(at + 3..)?.trim_start_matches(':').parse().unwrap_or(0);
        let seconds = hours.min(23) * 3600 + minutes.clamp(0, 59) * 60;
        Some(if rest.as_bytes()[at] == b'-' { -seconds } else { seconds })
    });
    Some(hours * 3600 + minutes * 60 + seconds - offset.unwrap_or(0))
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar (Hinnant, "chrono-compatible low-level date
/// algorithms").
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_their_usual_forms() {
        let check =
            |text: &str, expected: Option<i64>| assert_eq!(seconds(text), expected, "{text:?}");
        check("1970-01-01", Some(0));
        check("2000-03-01", Some(951_868_800));
        check("2024-02-29T12:00:00Z", Some(1_709_208_000));
        check("2024-02-29T12:00:00.123+02:00", Some(1_709_200_800));
        check("2024-02-29 12:00:00 -0130", Some(1_709_213_400));
        check("1709208000", Some(1_709_208_000));
        check("1709208000000", Some(1_709_208_000));
        check("yesterday", None);
        check("2024-13-01", None);
        check("", None);
        check("é-é-é", None);
        check("2024-01-01Té", Some(1_704_067_200));
    }
}
