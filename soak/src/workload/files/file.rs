//! A file that is read and written past the page cache, or through it.

use glommio::io::{BufferedFile, DmaFile, OpenOptions, ReadResult};

use crate::workload::prelude::*;

pub(super) type Result<T> = std::result::Result<T, GlommioError<()>>;

pub(super) enum File {
    Direct(Rc<DmaFile>),
    Buffered(BufferedFile),
}

/// Does the same with either.
macro_rules! either {
    ($file:expr, $it:ident => $does:expr) => {
        match $file {
            File::Direct($it) => $does,
            File::Buffered($it) => $does,
        }
    };
}

impl File {
    /// Opens the file, or makes it.
    pub(super) async fn open(path: &Path, is_direct: bool) -> Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        Ok(if is_direct {
            File::Direct(Rc::new(options.dma_open(path).await?))
        } else {
            File::Buffered(options.buffered_open(path).await?)
        })
    }

    /// What positions and lengths of writes are multiples of.
    pub(super) fn unit(&self) -> usize {
        match self {
            File::Direct(file) => file.alignment() as usize,
            File::Buffered(_) => 1,
        }
    }

    pub(super) fn is_direct(&self) -> bool {
        matches!(self, File::Direct(_))
    }

    pub(super) async fn write_at(&self, data: Vec<u8>, at: u64) -> Result<usize> {
        match self {
            File::Direct(file) => {
                let mut buffer = file.alloc_dma_buffer(data.len());
                buffer.as_bytes_mut().copy_from_slice(&data);
                file.write_at(buffer, at).await
            }
            File::Buffered(file) => file.write_at(data, at).await,
        }
    }

    pub(super) async fn read_at(&self, at: u64, size: usize) -> Result<ReadResult> {
        either!(self, it => it.read_at(at, size).await)
    }

    pub(super) async fn truncate(&self, bytes: u64) -> Result<()> {
        either!(self, it => it.truncate(bytes).await)
    }

    pub(super) async fn fdatasync(&self) -> Result<()> {
        either!(self, it => it.fdatasync().await)
    }

    pub(super) async fn size(&self) -> Result<u64> {
        match self {
            File::Direct(file) => file.file_size().await,
            File::Buffered(file) => Ok(file.stat().await?.file_size),
        }
    }

    pub(super) async fn rename(&mut self, to: &Path) -> Result<()> {
        either!(self, it => it.rename(to).await)
    }

    pub(super) async fn close(self) -> Result<()> {
        match self {
            File::Direct(file) => file.close_rc().await.map(drop),
            File::Buffered(file) => file.close().await,
        }
    }
}
