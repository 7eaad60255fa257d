//! The published glommio-ng 0.12, which calls glommio's `timer::timeout` `try_timeout`.

#[path = "../../glommio_all.rs"]
mod all;
#[path = "../../published_listing.rs"]
mod listing;
#[path = "../../glommio_notices.rs"]
mod notice_adapter;

use all::adapter::Glommio;

/// The crate under measurement.
mod rt {
    pub use glommio::*;

    pub mod timer {
        pub use glommio::timer::{Timer, TimerActionOnce, try_timeout as timeout};
    }
}

fn main() {
    workloads::main(&[&all::menu(), &workloads::cases::notices::<Glommio>()]);
}
