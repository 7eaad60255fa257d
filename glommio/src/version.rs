//! Which build of the crate this is.
//!
//! The version alone does not say: it equals that of the release whose place the crate takes.

#![forbid(unsafe_code)]

/// The version and the features of this build, for logs and reports of bugs.
///
/// The published glommio 0.9.0 has no such constant, so a program that names it is known to be
/// built with this crate.
///
/// # Examples
///
/// ```
/// println!("{}", glommio::BUILD);
/// # assert!(glommio::BUILD.starts_with("glommio 0.9.0 (independent implementation); features: "));
/// ```
pub const BUILD: &str = match str::from_utf8(&BYTES) {
    Ok(text) => text,
    Err(_) => panic!("strings one after the other are UTF-8"),
};

const PARTS: [&str; 10] = [
    "glommio ",
    env!("CARGO_PKG_VERSION"),
    " (independent implementation); features:",
    if cfg!(feature = "timing-wheel") {
        " timing-wheel"
    } else {
        ""
    },
    if cfg!(feature = "macros") {
        " macros"
    } else {
        ""
    },
    if cfg!(feature = "metrics") {
        " metrics"
    } else {
        ""
    },
    if cfg!(feature = "debugging") {
        " debugging"
    } else {
        ""
    },
    if cfg!(feature = "simulation") {
        " simulation"
    } else {
        ""
    },
    if cfg!(any(feature = "audit", feature = "bench")) {
        " (for tests of the crate)"
    } else {
        ""
    },
    if cfg!(any(
        feature = "timing-wheel",
        feature = "macros",
        feature = "metrics",
        feature = "debugging",
        feature = "simulation",
        feature = "audit",
        feature = "bench"
    )) {
        ""
    } else {
        " none"
    },
];

const BYTES: [u8; length()] = {
    let mut bytes = [0; length()];
    let (mut part, mut at) = (0, 0);
    while part < PARTS.len() {
        let (_, rest) = bytes.split_at_mut(at);
        let (place, _) = rest.split_at_mut(PARTS[part].len());
        place.copy_from_slice(PARTS[part].as_bytes());
        at += PARTS[part].len();
        part += 1;
    }
    bytes
};

const fn length() -> usize {
    let (mut part, mut sum) = (0, 0);
    while part < PARTS.len() {
        sum += PARTS[part].len();
        part += 1;
    }
    sum
}
