//! Listing a directory with the published crates, which do it in one call that blocks.

use std::path::PathBuf;

use workloads::files::Listing;

use crate::all::adapter::Glommio;
use crate::rt;

impl Listing for Glommio {
    async fn list(path: PathBuf) -> usize {
        let directory = rt::io::Directory::open(path).await;
        let directory = directory.expect("the workload has made it");
        let names = directory.sync_read_dir().expect("it is there");
        let count = names.count();
        directory.close().await.expect("it is open");
        count
    }
}
