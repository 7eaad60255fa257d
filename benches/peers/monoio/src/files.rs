//! monoio's files: operations of the ring, with buffers that travel.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use monoio::buf::{IoBuf, IoBufMut};
use monoio::fs::{File, OpenOptions};
use workloads::files::{Aligned, Files, Mode, O_DIRECT, Reader, Writer};

use crate::Monoio;

impl Files for Monoio {
    type Reader = Reading;
    type Writer = Writing;

    async fn open(path: PathBuf, mode: Mode, bytes: usize) -> Reading {
        let mut options = OpenOptions::new();
        options.read(true);
        if mode == Mode::Direct {
            options.custom_flags(O_DIRECT);
        }
        Reading {
            file: options.open(path).await.expect(THERE),
            buffer: Aligned::new(bytes),
        }
    }

    async fn create(path: PathBuf) -> Writing {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.custom_flags(O_DIRECT);
        Writing(options.open(path).await.expect(WRITABLE))
    }

    async fn open_stat_close(path: &Path) -> u64 {
        let file = File::open(path).await.expect(THERE);
        let bytes = file.metadata().await.expect(THERE).len();
        file.close().await.expect(THERE);
        bytes
    }
}

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
        let place = std::mem::take(memory).slice_mut(*start..*start + *bytes);
        let (read, place) = self.file.read_at(place, position).await;
        *memory = place.into_inner();
        read.expect("the disk is sound")
    }
}

pub struct Writing(File);

impl Writer for Writing {
    async fn write_at(&self, position: u64, bytes: usize) {
        let Aligned { memory, start, .. } = Aligned::new(bytes);
        let (written, _) = self
            .0
            .write_at(memory.slice(start..start + bytes), position)
            .await;
        assert_eq!(written.expect(WRITABLE), bytes);
    }

    async fn sync(&self) {
        self.0.sync_data().await.expect(WRITABLE);
    }
}

const THERE: &str = "the workload has made it";
const WRITABLE: &str = "the disk has room";
