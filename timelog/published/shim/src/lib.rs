//! The published glommio 0.9.0, with the additions to its API that `timelog::durable` uses: `oneshot`,
//! `timeout`, advisory locks, `read_dir`, `write_all_at` and `remove_task_queue`.

use std::ops::Deref;

pub use published::*;

/// As in 0.9.0, and `oneshot`.
pub mod channels {
    pub use published::channels::*;

    /// One value, once.
    pub mod oneshot {
        pub use futures_channel::oneshot::channel as oneshot;
        pub use futures_channel::oneshot::channel as shared;
        pub use futures_channel::oneshot::{
            Receiver, Receiver as SharedReceiver, Sender, Sender as SharedSender,
        };
    }
}

/// Futures with an end.
pub mod future {
    use std::future::Future;
    use std::time::Duration;

    /// An error once the time is over.
    pub async fn timeout<T>(time: Duration, future: impl Future<Output = T>) -> Result<T, ()> {
        let over = async {
            published::timer::sleep(time).await;
            Err(())
        };
        futures_lite::future::or(async { Ok(future.await) }, over).await
    }
}

/// As in 0.9.0, with files that can be locked.
pub mod io {
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::ops::Deref;
    use std::path::{Path, PathBuf};

    use futures_lite::Stream;

    pub use published::io::*;

    type Result<T> = std::result::Result<T, published::GlommioError<()>>;

    /// As `OpenOptions` of 0.9.0.
    #[derive(Default)]
    pub struct OpenOptions(published::io::OpenOptions);

    impl OpenOptions {
        /// None yet.
        pub fn new() -> Self {
            Self::default()
        }

        /// To be read.
        pub fn read(&mut self, is_wanted: bool) -> &mut Self {
            self.0.read(is_wanted);
            self
        }

        /// To be written.
        pub fn write(&mut self, is_wanted: bool) -> &mut Self {
            self.0.write(is_wanted);
            self
        }

        /// Made if it is not there.
        pub fn create(&mut self, is_wanted: bool) -> &mut Self {
            self.0.create(is_wanted);
            self
        }

        /// Made, and an error if it is there.
        pub fn create_new(&mut self, is_wanted: bool) -> &mut Self {
            self.0.create_new(is_wanted);
            self
        }

        /// Opens a file.
        pub async fn dma_open(&self, path: impl AsRef<Path>) -> Result<DmaFile> {
            let path = path.as_ref();
            let file = self.0.dma_open(path).await?;
            Ok(DmaFile(file, path.to_owned()))
        }
    }

    /// A `Directory` of 0.9.0, whose names are a stream.
    #[derive(Debug)]
    pub struct Directory(published::io::Directory);

    impl Directory {
        /// Opens it, or makes it.
        pub async fn create(path: impl AsRef<Path>) -> Result<Self> {
            published::io::Directory::create(path).await.map(Self)
        }

        /// Opens it.
        pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
            published::io::Directory::open(path).await.map(Self)
        }

        /// Makes its names durable.
        pub async fn sync(&self) -> Result<()> {
            self.0.sync().await
        }

        /// Closes it.
        pub async fn close(self) -> Result<()> {
            self.0.close().await
        }

        /// What is in it.
        pub fn read_dir(&self) -> Result<impl Stream<Item = Result<DirEntry>> + Unpin> {
            let entries = self.0.sync_read_dir()?;
            let entry = |entry: io::Result<std::fs::DirEntry>| Ok(DirEntry(entry?.file_name()));
            Ok(futures_lite::stream::iter(entries.map(entry)))
        }
    }

    /// A name in a directory.
    #[derive(Debug)]
    pub struct DirEntry(OsString);

    impl DirEntry {
        /// It, without the path.
        pub fn file_name(&self) -> &OsStr {
            &self.0
        }
    }

    /// A `DmaFile` of 0.9.0, and its path.
    #[derive(Debug)]
    pub struct DmaFile(published::io::DmaFile, PathBuf);

    impl Deref for DmaFile {
        type Target = published::io::DmaFile;

        fn deref(&self) -> &Self::Target {
            &self.0
        }
    }

    impl DmaFile {
        /// Writes all of a buffer.
        pub async fn write_all_at(&self, buffer: DmaBuffer, position: u64) -> Result<()> {
            let length = buffer.len();
            let written = self.0.write_at(buffer, position).await?;
            if written < length {
                // A file that grows on a full disk: what is left would fail as well.
                return Err(io::Error::from(io::ErrorKind::WriteZero).into());
            }
            Ok(())
        }

        /// Closes it.
        pub async fn close(self) -> Result<()> {
            self.0.close().await
        }

        /// Locks it by a descriptor of its own, at once.
        pub async fn try_lock_exclusive(&self) -> Result<AdvisoryLockGuard> {
            let file = std::fs::File::open(&self.1)?;
            match file.try_lock() {
                Ok(()) => Ok(AdvisoryLockGuard(file)),
                Err(error) => Err(io::Error::from(error).into()),
            }
        }
    }

    /// A file that is locked.
    #[derive(Debug)]
    pub struct AdvisoryLockGuard(std::fs::File);

    impl AdvisoryLockGuard {
        /// Unlocks it.
        pub async fn unlock(self) -> Result<()> {
            Ok(self.0.unlock()?)
        }
    }
}

/// As in 0.9.0, with queues that can be given up.
pub fn executor() -> Executor {
    Executor(published::executor())
}

/// The executor of this thread.
#[derive(Debug)]
pub struct Executor(ExecutorProxy);

impl Deref for Executor {
    type Target = ExecutorProxy;

    fn deref(&self) -> &ExecutorProxy {
        &self.0
    }
}

impl Executor {
    /// In 0.9.0 a queue stays until the executor ends.
    pub fn remove_task_queue(&self, _queue: TaskQueueHandle) {}
}
