//! Files of every crate with glommio's API.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use futures_lite::{AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt, stream};
use workloads::files::{
    BulkReads, Files, GAP_BYTES_MAX, MERGED_BYTES_MAX, Mode, Reader, Streams, Writer,
};

use super::adapter::Glommio;
use crate::rt::io::{
    BufferedFile, DmaFile, DmaStreamReaderBuilder, DmaStreamWriterBuilder, MergedBufferLimit,
    ReadAmplificationLimit, StreamReaderBuilder, StreamWriterBuilder,
};

impl Files for Glommio {
    type Reader = Reading;
    type Writer = Writing;

    async fn open(path: PathBuf, mode: Mode, bytes: usize) -> Reading {
        match mode {
            Mode::Direct => {
                let file = DmaFile::open(path).await.expect(THERE);
                Reading::Direct(file, bytes)
            }
            Mode::Buffered => {
                let file = BufferedFile::open(path).await.expect(THERE);
                Reading::Buffered(file, bytes)
            }
        }
    }

    async fn create(path: PathBuf) -> Writing {
        Writing(DmaFile::create(path).await.expect(WRITABLE))
    }

    async fn open_stat_close(path: &Path) -> u64 {
        let file = BufferedFile::open(path).await.expect(THERE);
        let bytes = file.file_size().await.expect(THERE);
        file.close().await.expect(THERE);
        bytes
    }
}

/// A file, and how much is read at a time.
pub enum Reading {
    Direct(DmaFile, usize),
    Buffered(BufferedFile, usize),
}

impl Reader for Reading {
    async fn read_at(&mut self, position: u64) -> usize {
        let read = match self {
            Reading::Direct(file, bytes) => file.read_at_aligned(position, *bytes).await,
            Reading::Buffered(file, bytes) => file.read_at(position, *bytes).await,
        };
        read.expect(READABLE).len()
    }
}

/// A file that is written.
pub struct Writing(DmaFile);

impl Writer for Writing {
    async fn write_at(&self, position: u64, bytes: usize) {
        let mut buffer = self.0.alloc_dma_buffer(bytes);
        buffer.as_bytes_mut().fill(0);
        let written = self.0.write_at(buffer, position).await;
        assert_eq!(written.expect(WRITABLE), bytes);
    }

    async fn sync(&self) {
        self.0.fdatasync().await.expect(WRITABLE);
    }
}

impl Streams for Glommio {
    async fn read_stream(path: PathBuf, buffer_bytes: usize) -> u64 {
        let file = DmaFile::open(path).await.expect(THERE);
        let mut reader = DmaStreamReaderBuilder::new(file)
            .with_buffer_size(buffer_bytes)
            .build();
        let mut bytes = 0;
        loop {
            let buffer = reader.get_buffer_aligned(buffer_bytes as u64).await;
            match buffer.expect(READABLE).len() {
                0 => break,
                count => bytes += count as u64,
            }
        }
        reader.close().await.expect(READABLE);
        bytes
    }

    async fn write_stream(path: PathBuf, buffer_bytes: usize, bytes: u64) {
        let file = DmaFile::create(path).await.expect(WRITABLE);
        let writer = DmaStreamWriterBuilder::new(file)
            .with_buffer_size(buffer_bytes)
            .build();
        fill(writer, buffer_bytes, bytes).await;
    }

    async fn read_cached_stream(path: PathBuf, buffer_bytes: usize) -> u64 {
        let file = BufferedFile::open(path).await.expect(THERE);
        let mut reader = StreamReaderBuilder::new(file)
            .with_buffer_size(buffer_bytes)
            .build();
        let mut piece = vec![0; buffer_bytes];
        let mut bytes = 0;
        loop {
            match reader.read(&mut piece).await.expect(READABLE) {
                0 => break,
                count => bytes += count as u64,
            }
        }
        reader.close().await.expect(READABLE);
        bytes
    }

    async fn write_cached_stream(path: PathBuf, buffer_bytes: usize, bytes: u64) {
        let file = BufferedFile::create(path).await.expect(WRITABLE);
        let writer = StreamWriterBuilder::new(file)
            .with_buffer_size(buffer_bytes)
            .build();
        fill(writer, buffer_bytes, bytes).await;
    }
}

async fn fill(mut writer: impl AsyncWrite + Unpin, buffer_bytes: usize, bytes: u64) {
    let piece = vec![0; buffer_bytes];
    for _ in 0..bytes / buffer_bytes as u64 {
        writer.write_all(&piece).await.expect(WRITABLE);
    }
    writer.close().await.expect(WRITABLE);
}

impl BulkReads for Glommio {
    async fn read_many(path: PathBuf, ranges: Vec<(u64, usize)>) -> u64 {
        let file = Rc::new(DmaFile::open(path).await.expect(THERE));
        let mut reads = file.read_many(
            stream::iter(ranges),
            MergedBufferLimit::Custom(MERGED_BYTES_MAX),
            ReadAmplificationLimit::Custom(GAP_BYTES_MAX),
        );
        let mut bytes = 0;
        while let Some(read) = reads.next().await {
            let (_, data) = read.expect(READABLE);
            bytes += data.len() as u64;
        }
        drop(reads);
        file.close_rc().await.expect(READABLE);
        bytes
    }
}

const THERE: &str = "the workload has made it";
const READABLE: &str = "the disk is sound";
const WRITABLE: &str = "the disk has room";
