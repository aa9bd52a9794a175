//! Figures as people read them.

/// Rounds to so many places.
pub(super) fn to(number: f64, places: i32) -> f64 {
    let factor = 10_f64.powi(places);
    (number * factor).round() / factor
}

/// Returns a number with commas, whole from 100 on, else with up to this many places.
pub(super) fn number(number: f64, places: usize) -> String {
    let places = if number.abs() >= 100.0 { 0 } else { places };
    let least = 0.1_f64.powi(i32::try_from(places).unwrap_or(0));
    if number > 0.0 && number < least / 2.0 {
        return format!("< {least:.places$}");
    }
    let text = format!("{number:.places$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
    let rest = rest.trim_end_matches('0');
    let whole = commas(whole);
    if rest.is_empty() { whole } else { format!("{whole}.{rest}") }
}

/// Returns a sum of money, in cents.
pub(super) fn usd(usd: f64) -> String {
    let text = format!("{usd:.2}");
    let (whole, cents) = text.split_once('.').unwrap_or((&text, "00"));
    format!("{}.{cents}", commas(whole))
}

fn commas(digits: &str) -> String {
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a rate of a day or of a second, whichever has fewer places.
pub(super) fn rate(per_second: f64) -> String {
    let day = number(per_second * 86_400.0, 2);
    format!("{day} messages a day ({} a second)", number(per_second, if per_second < 1.0 { 3 } else { 1 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        assert_eq!(
            (number(1_234_567.8, 2), number(0.25, 2), number(3.0, 2)),
            ("1,234,568".into(), "0.25".into(), "3".into())
        );
        assert_eq!((usd(1_234.5), usd(0.004), usd(999.999)), ("1,234.50".into(), "0.00".into(), "1,000.00".into()));
        assert_eq!((number(0.001, 2), number(0.0, 1)), ("< 0.01".into(), "0".into()));
        assert_eq!(rate(1e6 / 86_400.0), "1,000,000 messages a day (11.6 a second)");
        assert_eq!(rate(1e3 / 86_400.0), "1,000 messages a day (0.012 a second)");
    }
}
