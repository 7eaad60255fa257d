//! What every crate with glommio's API can run.

#[path = "glommio.rs"]
pub mod adapter;
#[path = "glommio_channels.rs"]
mod channel_adapter;
#[path = "glommio_files.rs"]
mod file_adapter;
#[path = "glommio_net.rs"]
mod sockets;

use adapter::Glommio;
use workloads::Case;
use workloads::cases::{
    actions, bulk_reads, channels, common, cooperative, files, listing, locks, meshes, network,
    streams,
};

/// All of it.
pub fn menu() -> Vec<Case> {
    [
        common::<Glommio>(),
        cooperative::<Glommio>(),
        actions::<Glommio>(),
        network::<Glommio>(),
        channels::<Glommio>(),
        meshes::<Glommio>(),
        locks::<Glommio>(),
        files::<Glommio>(),
        streams::<Glommio>(),
        bulk_reads::<Glommio>(),
        listing::<Glommio>(),
    ]
    .concat()
}
