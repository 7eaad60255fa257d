//! Which defect of `timelog/planted` a build that has them all is to show.

use std::sync::LazyLock;

/// Whether it is the one that the environment variable `TIMELOG_PLANTED` names.
pub(crate) fn shows(name: &str) -> bool {
    static CHOSEN: LazyLock<String> =
        LazyLock::new(|| std::env::var("TIMELOG_PLANTED").unwrap_or_default());
    *CHOSEN == name
}
