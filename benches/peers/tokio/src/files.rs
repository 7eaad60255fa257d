//! tokio's files, which are system calls on its blocking threads.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::spawn_blocking;
use workloads::files::{Aligned, Files, Listing, Mode, Reader, Writer};

use crate::Tokio;

impl Files for Tokio {
    type Reader = Reading;
    type Writer = Writing;

    async fn open(path: PathBuf, mode: Mode, bytes: usize) -> Reading {
        let file = mode.options().read(true).open(path).expect(THERE);
        Reading {
            file: Arc::new(file),
            buffer: Some(Aligned::new(bytes)),
        }
    }

    async fn create(path: PathBuf) -> Writing {
        let mut options = Mode::Direct.options();
        options.write(true).create(true).truncate(true);
        Writing(Arc::new(options.open(path).expect(WRITABLE)))
    }

    async fn open_stat_close(path: &Path) -> u64 {
        let file = tokio::fs::File::open(path).await.expect(THERE);
        let metadata = file.metadata().await.expect(THERE);
        metadata.len()
    }
}

/// `tokio::fs::File` has one position for all, and moving it is a call on a blocking thread, too. So this is what one
/// writes for reads at any position.
pub struct Reading {
    file: Arc<File>,
    buffer: Option<Aligned>,
}

impl Reader for Reading {
    async fn read_at(&mut self, position: u64) -> usize {
        let (file, buffer) = (Arc::clone(&self.file), self.buffer.take());
        let reading = spawn_blocking(move || {
            let mut buffer = buffer.expect("one read at a time");
            (file.read_at(buffer.as_mut_slice(), position), buffer)
        });
        let (read, buffer) = reading.await.expect("it does not panic");
        self.buffer = Some(buffer);
        read.expect("the disk is sound")
    }
}

/// A file that is written.
pub struct Writing(Arc<File>);

impl Writer for Writing {
    async fn write_at(&self, position: u64, bytes: usize) {
        let file = Arc::clone(&self.0);
        let mut buffer = Aligned::new(bytes);
        let writing = spawn_blocking(move || file.write_all_at(buffer.as_mut_slice(), position));
        let written = writing.await.expect("it does not panic");
        written.expect(WRITABLE);
    }

    async fn sync(&self) {
        let file = Arc::clone(&self.0);
        let syncing = spawn_blocking(move || file.sync_data());
        let synced = syncing.await.expect("it does not panic");
        synced.expect(WRITABLE);
    }
}

impl Listing for Tokio {
    async fn list(path: PathBuf) -> usize {
        let mut names = tokio::fs::read_dir(path).await.expect(THERE);
        let mut count = 0;
        while names.next_entry().await.expect(THERE).is_some() {
            count += 1;
        }
        count
    }
}

const THERE: &str = "the workload has made it";
const WRITABLE: &str = "the disk has room";
