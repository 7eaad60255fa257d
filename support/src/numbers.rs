//! Numbers as people read them: three digits, and a unit where they have one.

use std::time::Duration;

/// A unit: how large it is, and what is written behind a number in it.
pub type Unit = (f64, &'static str);

/// Of nanoseconds, the largest first.
pub const DURATIONS: [Unit; 4] = [(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")];

/// Of bytes, the largest first.
pub const BYTES: [Unit; 4] = [
    ((1_u64 << 30) as f64, " GiB"),
    ((1_u64 << 20) as f64, " MiB"),
    ((1_u64 << 10) as f64, " KiB"),
    (1.0, " B"),
];

/// Of what is counted, the largest first.
pub const COUNTS: [Unit; 4] = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];

/// Three digits without a unit, more before the point where there are more; two of what is next to
/// nothing.
///
/// # Examples
/// ```
/// use support::numbers::number;
///
/// assert_eq!(number(1234.5), "1234");
/// assert_eq!(number(12.345), "12.3");
/// assert_eq!(number(0.0456), "0.046");
/// assert_eq!(number(0.00012), "1.2e-4");
/// ```
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        0.0..0.001 => format!("{value:.1e}"),
        0.001..0.01 => format!("{value:.4}"),
        0.01..0.1 => format!("{value:.3}"),
        0.1..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Three digits of `value`, in the largest of `units` that it fills.
///
/// # Examples
/// ```
/// use support::numbers::{COUNTS, scaled};
///
/// assert_eq!(scaled(12_345.0, &COUNTS), "12.3k");
/// assert_eq!(scaled(974.0, &COUNTS), "974");
/// ```
pub fn scaled(value: f64, units: &[Unit]) -> String {
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

/// A round `value` in the largest of `units` that it fills, with as few digits as it has.
///
/// # Examples
/// ```
/// use support::numbers::{COUNTS, round};
///
/// assert_eq!([250.0, 1e4, 1.5e6].map(|count| round(count, &COUNTS)), ["250", "10k", "1.5M"]);
/// assert_eq!([0.3, -0.0].map(|count| round(count, &COUNTS)), ["0.3", "0"]);
/// ```
pub fn round(value: f64, units: &[Unit]) -> String {
    let (size, suffix) = unit_of(value.abs(), units);
    format!("{}{suffix}", without_dust(value / size))
}

/// The largest of `units` that `value` fills, else the last of them; without any, that of counts.
pub fn unit_of(value: f64, units: &[Unit]) -> Unit {
    let fills = |&&(size, _): &&Unit| value >= size;
    let last = units.last().copied().unwrap_or((1.0, ""));
    units.iter().find(fills).copied().unwrap_or(last)
}

/// Three digits and a unit.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use support::numbers::duration;
///
/// let durations = [999, 45_200, 123_456_789].map(Duration::from_nanos);
/// assert_eq!(durations.map(duration), ["999 ns", "45.2 µs", "123 ms"]);
/// ```
pub fn duration(duration: Duration) -> String {
    nanoseconds(duration.as_nanos() as f64)
}

/// The same of nanoseconds, of which there may be a part.
pub fn nanoseconds(ns: f64) -> String {
    scaled(ns, &DURATIONS)
}

/// Without what multiplying leaves behind the last digit that counts.
pub fn without_dust(value: f64) -> f64 {
    let rounded = (value * 1e6).round() / 1e6;
    // Not minus zero, which would be written with its sign.
    rounded + 0.0
}
