//! Reads and writes of all that was asked for, and reads into memory of the caller.

use std::io;

use super::BufferedFile;
use crate::io::Result;
use crate::io::long_read::to_allocate;
use crate::io::read_result::ReadResult;
use crate::memory::DmaBuffer;
use crate::reactor::budget;
use crate::reactor::op::Bytes;

impl BufferedFile {
    /// As [`DmaFile::read_exact_at`](crate::io::DmaFile::read_exact_at).
    pub async fn read_exact_at(&self, pos: u64, size: usize) -> Result<ReadResult> {
        let read = self.read_exact(pos, size).await;
        Ok(ReadResult::new(self.file.named(read, "Reading")?))
    }

    async fn read_exact(&self, pos: u64, size: usize) -> io::Result<DmaBuffer> {
        if to_allocate(&self.file, pos, size).await? < size {
            return budget::checked(Err(io::ErrorKind::UnexpectedEof.into())).await;
        }
        let buffer = budget::checked(self.file.submitter().try_allocate(size)).await?;
        let (read, buffer) = self.read_into(buffer, pos, true).await;
        if read? == size {
            Ok(buffer)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    /// As [`DmaFile::read_at_into`](crate::io::DmaFile::read_at_into), through the page cache: nothing
    /// need be aligned.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::io::BufferedFile;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// let file = BufferedFile::create(&path).await?;
    /// file.write_all_at(b"header and body".to_vec(), 0).await?;
    /// file.close().await?;
    ///
    /// let file = BufferedFile::open(&path).await?;
    /// assert_eq!(&*file.read_exact_at(11, 4).await?, b"body");
    /// assert!(file.read_exact_at(11, 5).await.is_err());
    /// let buffer = glommio::allocate_dma_buffer(6);
    /// let (read, buffer) = file.read_at_into(buffer, 0).await;
    /// assert_eq!(&buffer.as_bytes()[..read?], b"header");
    /// file.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn read_at_into(&self, buf: DmaBuffer, pos: u64) -> (Result<usize>, DmaBuffer) {
        let (read, buffer) = self.read_into(buf, pos, false).await;
        (self.file.named(read, "Reading"), buffer)
    }

    /// As [`DmaFile::write_all_at`](crate::io::DmaFile::write_all_at), also of what is not aligned. A file
    /// may be opened with [`append`](crate::io::OpenOptions::append): the kernel ignores `pos` then.
    pub async fn write_all_at(&self, buf: Vec<u8>, pos: u64) -> Result<()> {
        let written = self.write_all(Bytes::Vec(buf), pos).await;
        self.file.named(written, "Writing")
    }

    async fn write_all(&self, mut bytes: Bytes, pos: u64) -> io::Result<()> {
        let len = bytes.as_slice().len();
        let mut done = 0;
        if len == 0 {
            budget::consume().await;
        }
        while done < len {
            let position = pos.saturating_add(done as u64);
            let started = budget::checked(self.start_write(bytes, done, position)).await;
            let written = started?.await?;
            bytes = written.bytes;
            match written.count? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => done += count,
            }
        }
        Ok(())
    }
}
