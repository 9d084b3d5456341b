//! Numbers as people read them. Whatever is not finite is written `—`.

use crate::facts::Unit;

/// What stands for a figure that is not there.
pub const NONE: &str = "—";

/// A whole number with its thousands apart.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with three digits that count: `812`, `4.21 million`.
pub fn short(number: f64) -> String {
    scaled(number, &["", " thousand", " million", " billion", " trillion"])
}

/// The same for the ends of axes: `4.21 M`.
pub fn tick(number: f64) -> String {
    if !number.is_finite() {
        return NONE.into();
    }
    let (divisor, unit) = match number.abs() {
        n if n >= 1e15 => return signed(&format!("{number:.1e}")),
        n if n >= 1e9 => (1e9, " G"),
        n if n >= 1e6 => (1e6, " M"),
        n if n >= 1e4 => (1e3, " k"),
        _ => (1.0, ""),
    };
    let text = format!("{:.2}", number / divisor);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    signed(&format!("{text}{unit}"))
}

/// With a minus as wide as a plus, where a number begins with one.
pub fn signed(number: &str) -> String {
    number.strip_prefix('-').map_or(number.to_owned(), |rest| format!("−{rest}"))
}

/// A size.
pub fn bytes(number: u64) -> String {
    scaled(number as f64, &[" B", " kB", " MB", " GB", " TB"])
}

fn scaled(number: f64, units: &[&str]) -> String {
    if !number.is_finite() {
        return NONE.into();
    }
    if number.abs() >= 1e18 {
        return signed(&format!("{number:.2e}"));
    }
    let mut value = number;
    let mut unit = 0;
    // 999.5 and more would be written as 1000.
    while value.abs() >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let places = match value.abs() {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    signed(&format!("{value:.places$}{}", units[unit]))
}

/// A time span given in seconds.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return NONE.into();
    }
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A point in time, from seconds since 1970, in UTC to the minute. The calendar is the proleptic
/// Gregorian one (Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`).
pub fn time(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400);
    let second = seconds.rem_euclid(86_400);
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", second / 3600, second % 3600 / 60)
}

/// A value in its unit, without the unit's name unless it is per cent.
pub fn value(value: f64, unit: Unit) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    match unit {
        Unit::Share => percent(value),
        Unit::Number | Unit::BitsPerByte | Unit::Nats if value.abs() >= 1e5 => short(value),
        Unit::Number | Unit::BitsPerByte | Unit::Nats => signed(&format!("{value:.3}")),
    }
}

/// A share of 0 to 1 in per cent.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        p if p < 1e5 => signed(&format!("{percent:.1} %")),
        p if p.is_finite() => format!("{} %", short(percent)),
        _ => NONE.into(),
    }
}

/// The unit's name, as it stands beside the name of what is measured; empty where that says it.
pub fn unit_name(unit: Unit, of: &str) -> &'static str {
    let name = match unit {
        Unit::Number | Unit::Share => "",
        Unit::BitsPerByte => "bits per byte",
        Unit::Nats => "nats per token",
    };
    if of.contains(name) { "" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        for (number, expected) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")]
        {
            assert_eq!(count(number), expected);
        }
    }

    #[test]
    fn short_numbers() {
        for (number, expected) in [
            (0.0, "0"),
            (812.0, "812"),
            (999.7, "1.00 thousand"),
            (4_212_345.0, "4.21 million"),
            (41_600_000.0, "41.6 million"),
            (999_999.0, "1.00 million"),
            (f64::NAN, NONE),
            (f64::INFINITY, NONE),
        ] {
            assert_eq!(short(number), expected);
        }
        assert_eq!(bytes(780_000_000), "780 MB");
        assert_eq!(bytes(12), "12 B");
    }

    #[test]
    fn ticks_keep_no_empty_places() {
        for (number, expected) in
            [(0.0, "0"), (2.5, "2.5"), (100.0, "100"), (-8000.0, "−8000"), (1.5e6, "1.5 M")]
        {
            assert_eq!(tick(number), expected);
        }
    }

    #[test]
    fn durations() {
        for (seconds, expected) in [
            (0.42, "0.4 s"),
            (42.0, "42 s"),
            (59.7, "1 min 00 s"),
            (492.0, "8 min 12 s"),
            (3900.0, "1 h 05 min"),
            (f64::NAN, NONE),
            (-1.0, NONE),
        ] {
            assert_eq!(duration(seconds), expected);
        }
    }

    #[test]
    fn times() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (-1, "1969-12-31 23:59 UTC"),
        ] {
            assert_eq!(time(seconds), expected);
        }
    }

    #[test]
    fn values() {
        assert_eq!(value(0.4834, Unit::Share), "48.3 %");
        assert_eq!(value(-0.02, Unit::Share), "−2.0 %");
        assert_eq!(value(1e308, Unit::Share), NONE);
        assert_eq!(value(1.5, Unit::BitsPerByte), "1.500");
        assert_eq!(value(f64::NEG_INFINITY, Unit::Nats), NONE);
        assert_eq!(value(2e5, Unit::Number), "200 thousand");
    }
}
