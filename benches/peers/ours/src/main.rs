//! The glommio of this repository.

use workloads::cases::{actions, common, cooperative};

#[path = "../../glommio.rs"]
mod adapter;

/// The crate under measurement.
mod rt {
    pub use glommio::*;

    pub use glommio::timer::timeout;
}

fn main() {
    use adapter::Glommio;
    workloads::main(&[
        &common::<Glommio>(),
        &cooperative::<Glommio>(),
        &actions::<Glommio>(),
    ]);
}
