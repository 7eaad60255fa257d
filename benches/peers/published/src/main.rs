//! The published glommio 0.9.0, the yardstick.

use workloads::cases::{actions, channels, common, cooperative, locks, meshes, network};

#[path = "../../glommio.rs"]
mod adapter;
#[path = "../../glommio_channels.rs"]
mod channel_adapter;
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
        &channels::<Glommio>(),
        &meshes::<Glommio>(),
        &locks::<Glommio>(),
    ]);
}
