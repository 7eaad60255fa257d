//! Which build of the crate this is.
//!
//! The version alone does not say: it equals that of the release that the crate replaces.

#![forbid(unsafe_code)]

/// The newest heading of a release in `CHANGELOG.md`, which a test compares.
const RELEASE: &str = "wheel release 2 (2026-11-29)";

/// The version, release, revision and features of this build, for logs and bug reports.
///
/// - The version, 0.9.0, is that of the published release whose API this crate has.
/// - The release is this project's own: its number and date are a heading in `CHANGELOG.md`.
/// - The revision is there if Cargo has fetched the crate as a git dependency. A build from a path or a
///   package has none, and may be newer than the release that it names.
///
/// The published glommio 0.9.0 has no such constant, so a program that names it is known to be
/// built with this crate. The text is for readers; its form may change.
///
/// # Examples
///
/// ```
/// // glommio 0.9.0, wheel release 2 (2026-11-29), revision 1a2b3c4, features timing-wheel
/// println!("{}", glommio::BUILD);
/// # assert!(glommio::BUILD.starts_with("glommio 0.9.0, wheel release "));
/// ```
pub const BUILD: &str = match str::from_utf8(&BYTES) {
    Ok(text) => text,
    Err(_) => panic!("strings one after the other are UTF-8"),
};

const REVISION: &str = match revision(env!("CARGO_MANIFEST_DIR")) {
    Some(revision) => revision,
    None => "",
};

/// The text that is given if that feature, or one of those, is there.
macro_rules! named {
    ($text:literal $($feature:literal)*) => {
        if cfg!(any($(feature = $feature),*)) { $text } else { "" }
    };
}

const FEATURES: [&str; 6] = [
    named!(" timing-wheel" "timing-wheel"),
    named!(" macros" "macros"),
    named!(" metrics" "metrics"),
    named!(" debugging" "debugging"),
    named!(" simulation" "simulation"),
    named!(" (for tests of the crate)" "audit" "bench"),
];

const PARTS: [&str; 13] = {
    let [wheel, macros, metrics, debugging, simulation, tests] = FEATURES;
    let comma = if REVISION.is_empty() {
        ""
    } else {
        ", revision "
    };
    let features = if length(&FEATURES) > 0 {
        ", features"
    } else {
        ", no features"
    };
    [
        "glommio ",
        env!("CARGO_PKG_VERSION"),
        ", ",
        RELEASE,
        comma,
        REVISION,
        features,
        wheel,
        macros,
        metrics,
        debugging,
        simulation,
        tests,
    ]
};

const BYTES: [u8; length(&PARTS)] = {
    let mut bytes = [0; length(&PARTS)];
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

const fn length(parts: &[&str]) -> usize {
    let (mut part, mut sum) = (0, 0);
    while part < parts.len() {
        sum += parts[part].len();
        part += 1;
    }
    sum
}

/// The abbreviated revision in the path of a package that Cargo has checked out:
/// `$CARGO_HOME/git/checkouts/REPOSITORY/REVISION/..`. Where the path is of another form there is none.
const fn revision(path: &str) -> Option<&str> {
    let Some((_, rest)) = split(path, "/git/checkouts/") else {
        return None;
    };
    let Some((_, rest)) = split(rest, "/") else {
        return None;
    };
    let revision = match split(rest, "/") {
        Some((revision, _)) => revision,
        None => rest,
    };
    let mut at = 0;
    while at < revision.len() {
        if !revision.as_bytes()[at].is_ascii_hexdigit() {
            return None;
        }
        at += 1;
    }
    if revision.is_empty() {
        None
    } else {
        Some(revision)
    }
}

/// `str::split_once`, which is not `const`.
const fn split<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let (text_bytes, mark) = (text.as_bytes(), mark.as_bytes());
    let mut at = 0;
    while at + mark.len() <= text_bytes.len() {
        let mut same = 0;
        while same < mark.len() && text_bytes[at + same] == mark[same] {
            same += 1;
        }
        if same == mark.len() {
            let (before, rest) = text.split_at(at);
            let (_, after) = rest.split_at(mark.len());
            return Some((before, after));
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revision_is_that_of_a_checkout_of_cargo() {
        let of_git = "/home/a/.cargo/git/checkouts/glommio-4f1c9d/1a2b3c4/glommio";
        assert_eq!(revision(of_git), Some("1a2b3c4"));
        assert_eq!(revision("/c/git/checkouts/r-1/abcdef0"), Some("abcdef0"));
        for other in [
            "",
            "/home/a/glommio/glommio",
            "/c/git/checkouts/",
            "/c/git/checkouts/r-1",
            "/c/git/checkouts/r-1/",
            "/c/git/checkouts/r-1/main/glommio",
            "/c/git/checkouts/r-1/é/glommio",
        ] {
            assert_eq!(revision(other), None, "{other}");
        }
    }
}
