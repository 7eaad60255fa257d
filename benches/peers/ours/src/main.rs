//! The glommio of this repository.

use workloads::cases::{actions, common, cooperative, network};

#[path = "../../glommio.rs"]
mod adapter;
#[path = "../../glommio_net.rs"]
mod sockets;

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
        &network::<Glommio>(),
    ]);
}
