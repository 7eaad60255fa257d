//! The published glommio 0.9.0, the yardstick.

use std::path::PathBuf;

use adapter::Glommio;
use workloads::cases::{
    actions, bulk_reads, channels, common, cooperative, files, listing, locks, meshes, network,
    streams,
};
use workloads::files::Listing;

#[path = "../../glommio.rs"]
mod adapter;
#[path = "../../glommio_channels.rs"]
mod channel_adapter;
#[path = "../../glommio_files.rs"]
mod file_adapter;
#[path = "../../glommio_net.rs"]
mod sockets;

/// The crate under measurement.
mod rt {
    pub use glommio::*;

    pub use glommio::timer::timeout;
}

fn main() {
    workloads::main(&[
        &common::<Glommio>(),
        &cooperative::<Glommio>(),
        &actions::<Glommio>(),
        &network::<Glommio>(),
        &channels::<Glommio>(),
        &meshes::<Glommio>(),
        &locks::<Glommio>(),
        &files::<Glommio>(),
        &streams::<Glommio>(),
        &bulk_reads::<Glommio>(),
        &listing::<Glommio>(),
    ]);
}

impl Listing for Glommio {
    async fn list(path: PathBuf) -> usize {
        let directory = rt::io::Directory::open(path).await;
        let directory = directory.expect("the workload has made it");
        // It has no other.
        let names = directory.sync_read_dir().expect("it is there");
        let count = names.count();
        directory.close().await.expect("it is open");
        count
    }
}
