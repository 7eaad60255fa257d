//! Defects planted on purpose, each of which a test of a rule must catch.
//!
//! `--cfg timelog_fault` builds the library with all of them, of which the environment variable
//! `TIMELOG_FAULT` names the one to show; `timelog/planted` does so. In an ordinary build
//! [`planted!`] is `false`, and nothing of what it guards is left.

/// Whether the defect of this name is to be shown.
macro_rules! planted {
    ($name:literal) => {
        cfg!(timelog_fault) && $crate::planted::is_chosen($name)
    };
}
pub(crate) use planted;

#[cfg(timelog_fault)]
pub(crate) fn is_chosen(name: &str) -> bool {
    static CHOSEN: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var("TIMELOG_FAULT").unwrap_or_default());
    *CHOSEN == name
}

#[cfg(not(timelog_fault))]
pub(crate) const fn is_chosen(_: &str) -> bool {
    false
}
