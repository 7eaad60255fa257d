//! Numbers as people read them.

use std::time::Duration;

use indicatif::{HumanBytes, HumanCount};

/// Three digits and a unit: `12.3 ms`.
pub(crate) fn short(duration: Duration) -> String {
    scaled(duration.as_nanos() as f64, &DURATIONS)
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// `12.30 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}

/// Three digits of `value`, in the largest of `units` that it fills.
pub(crate) fn scaled(value: f64, units: &[(f64, &'static str)]) -> String {
    let (size, suffix) = unit_of(value.abs(), units);
    let scaled = value / size;
    let decimals = match scaled.abs() {
        _ if size == 1.0 && scaled.fract() == 0.0 => 0,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{scaled:.decimals$}{suffix}")
}

/// The largest of `units` that `value` fills, else the last of them.
pub(crate) fn unit_of(value: f64, units: &[(f64, &'static str)]) -> (f64, &'static str) {
    let fills = |&&(size, _): &&(f64, &str)| value >= size;
    let last = units.last().copied().unwrap_or((1.0, ""));
    units.iter().find(fills).copied().unwrap_or(last)
}

/// Of nanoseconds.
pub(crate) const DURATIONS: [(f64, &str); 4] =
    [(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_three_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_500, "1.50 µs"),
            (45_200, "45.2 µs"),
            (123_456_789, "123 ms"),
            (2_000_000_000, "2.00 s"),
        ] {
            assert_eq!(short(Duration::from_nanos(ns)), text);
        }
    }
}
