//! Files of the crates whose operations take a buffer and return it. `parts`, beside it, says which crate that is.

use std::mem::take;
use std::path::{Path, PathBuf};

use workloads::files::{Aligned, Files, Mode, Reader, Writer};

use super::parts::{File, OpenOptions, Peer, past_the_cache, read_at, write_at};

impl Files for Peer {
    type Reader = Reading;
    type Writer = Writing;

    async fn open(path: PathBuf, mode: Mode, bytes: usize) -> Reading {
        let mut options = OpenOptions::new();
        options.read(true);
        if mode == Mode::Direct {
            past_the_cache(&mut options);
        }
        Reading {
            file: options.open(path).await.expect(THERE),
            buffer: Aligned::new(bytes),
        }
    }

    async fn create(path: PathBuf) -> Writing {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        past_the_cache(&mut options);
        Writing(options.open(path).await.expect(WRITABLE))
    }

    async fn open_stat_close(path: &Path) -> u64 {
        let file = File::open(path).await.expect(THERE);
        let bytes = file.metadata().await.expect(THERE).len();
        file.close().await.expect(THERE);
        bytes
    }
}

/// A file, and the buffer that travels into each operation and back.
pub struct Reading {
    file: File,
    buffer: Aligned,
}

impl Reader for Reading {
    async fn read_at(&mut self, position: u64) -> usize {
        let Aligned {
            memory,
            start,
            bytes,
        } = &mut self.buffer;
        let place = *start..*start + *bytes;
        let (read, returned) = read_at(&self.file, take(memory), place, position).await;
        *memory = returned;
        read.expect("the disk is sound")
    }
}

/// A file that is written.
pub struct Writing(File);

impl Writer for Writing {
    async fn write_at(&self, position: u64, bytes: usize) {
        let Aligned { memory, start, .. } = Aligned::new(bytes);
        let written = write_at(&self.0, memory, start..start + bytes, position).await;
        assert_eq!(written.expect(WRITABLE), bytes);
    }

    async fn sync(&self) {
        self.0.sync_data().await.expect(WRITABLE);
    }
}

const THERE: &str = "the workload has made it";
const WRITABLE: &str = "the disk has room";
