//! The three queues against a sorted map, and their rooms against their own invariants.

use proptest::prelude::ProptestConfig;

mod bounds;
mod differential;
mod memory;
mod model;
mod regressions;
mod rooms;

/// Calls a law for each queue: in both stages of the staged one, and in the geometry that moves its
/// timers most.
macro_rules! every_queue {
    ($law:ident) => {
        $law($crate::timer_queue::tests::model::Pair::<
            $crate::timer_queue::classic::ClassicQueue<usize>,
        >::new());
        every_wheel!($law);
    };
}

/// The same for the wheels only.
macro_rules! every_wheel {
    ($law:ident) => {{
        use $crate::timer_queue::staged::StagedWheel;
        use $crate::timer_queue::tests::model::{Pair, SmallStagedWheel, SmallWheel};
        use $crate::timer_queue::timing_wheel::TimingWheel;
        $law(Pair::<TimingWheel<usize>>::new());
        $law(Pair::<StagedWheel<usize>>::new());
        $law(Pair::<StagedWheel<usize>>::crowded());
        $law(Pair::<SmallWheel>::new());
        $law(Pair::<SmallStagedWheel>::crowded());
    }};
}

use {every_queue, every_wheel};

/// Short by default; the environment variable `PROPTEST_CASES` asks for more.
fn cases() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 100;
    }
    config
}
