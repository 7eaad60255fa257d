//! The queues against a sorted map, and what both are made of against its own invariants.
//!
//! Three files are for the fuzz target as well: the map (`model.rs`), what can happen
//! (`history.rs`) and how bytes tell it (`bytes.rs`).

#[cfg(test)]
use proptest::prelude::ProptestConfig;

#[cfg(test)]
mod bounds;
mod bytes;
#[cfg(test)]
mod differential;
mod history;
#[cfg(test)]
mod in_order;
// Counts pages of the usual size.
#[cfg(all(test, not(small_wheel)))]
mod memory;
mod model;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod presort;
#[cfg(test)]
mod reentry;
#[cfg(test)]
mod regressions;
#[cfg(test)]
mod stages;

#[cfg(fuzzing)]
pub use bytes::follow_bytes;

/// Calls a law for each queue: in both stages of the staged one.
#[cfg(test)]
macro_rules! every_queue {
    ($law:ident) => {
        $law($crate::tests::model::Pair::<
            $crate::classic::ClassicQueue<usize>,
        >::new());
        every_wheel!($law);
    };
}

/// The same for the wheels only.
#[cfg(test)]
macro_rules! every_wheel {
    ($law:ident) => {{
        use $crate::tests::model::Pair;
        use $crate::wheel::StagedWheel;
        $law(Pair::<StagedWheel<usize>>::wheel());
        $law(Pair::<StagedWheel<usize>>::new());
        $law(Pair::<StagedWheel<usize>>::crowded());
    }};
}

#[cfg(test)]
use {every_queue, every_wheel};

/// Short by default; the environment variable `PROPTEST_CASES` asks for more.
#[cfg(test)]
pub(super) fn cases() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 100;
    }
    config
}
