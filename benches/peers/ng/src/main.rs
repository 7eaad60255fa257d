//! The published glommio-ng 0.12, which calls glommio's `timer::timeout` `try_timeout`.

use workloads::cases::{actions, channels, common, cooperative, locks, meshes, network, notices};

#[path = "../../glommio.rs"]
mod adapter;
#[path = "../../glommio_channels.rs"]
mod channel_adapter;
#[path = "../../glommio_notices.rs"]
mod notice_adapter;
#[path = "../../glommio_net.rs"]
mod sockets;

/// The crate under measurement.
mod rt {
    pub use glommio::*;

    pub use glommio::timer::try_timeout as timeout;
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
        &notices::<Glommio>(),
    ]);
}
