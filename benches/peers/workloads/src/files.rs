//! What a runtime must offer for its files to be measured, and the files themselves.
//!
//! As in [`runtime`](crate::runtime), adapters hold no logic of their own. Reads and writes begin at multiples of
//! their length, so that direct I/O takes them; the memory for them is the adapter's business.

use std::fs::{self, File, OpenOptions};
use std::future::Future;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

use fastrand::Rng;

use crate::Runtime;

/// The flag of `open(2)` for [`Mode::Direct`], for adapters whose crate has no word for it.
pub const O_DIRECT: i32 = nix::libc::O_DIRECT;

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Past the page cache, from the device.
    Direct,
    /// From the page cache, which has all of it.
    Buffered,
}

impl Mode {
    /// What rows and cases are called after.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Direct => "direct",
            Mode::Buffered => "buffered",
        }
    }

    /// What the standard library opens it with.
    pub fn options(self) -> OpenOptions {
        let mut options = OpenOptions::new();
        if self == Mode::Direct {
            options.custom_flags(O_DIRECT);
        }
        options
    }
}

/// Runtimes that read and write files at any position.
pub trait Files: Runtime {
    /// An open file.
    type Reader: Reader + 'static;
    /// A file that is written past the page cache.
    type Writer: Writer + 'static;

    /// Opens a file, to read `bytes` at a time.
    fn open(path: PathBuf, mode: Mode, bytes: usize) -> impl Future<Output = Self::Reader>;
    /// Makes an empty file.
    fn create(path: PathBuf) -> impl Future<Output = Self::Writer>;
    /// Opens a file for reading, asks how long it is, and closes it.
    fn open_stat_close(path: &Path) -> impl Future<Output = u64>;
}

/// An open file and the memory for one read.
pub trait Reader {
    /// Reads at `position`; how many bytes there were.
    fn read_at(&mut self, position: u64) -> impl Future<Output = usize>;
}

/// A file to write to, several writes at a time.
pub trait Writer {
    /// Writes `bytes` zeros, in memory of their own, at `position`.
    fn write_at(&self, position: u64, bytes: usize) -> impl Future<Output = ()>;
    /// `fdatasync`.
    fn sync(&self) -> impl Future<Output = ()>;
}

/// Runtimes that read and write a file from its beginning to its end, ahead of and behind their user.
pub trait Streams: Runtime {
    /// Reads a file past the page cache, in pieces of `buffer_bytes`; how many bytes it has.
    fn read_stream(path: PathBuf, buffer_bytes: usize) -> impl Future<Output = u64>;
    /// Writes `bytes` to a new file past the page cache, in pieces of `buffer_bytes`, and syncs it.
    fn write_stream(path: PathBuf, buffer_bytes: usize, bytes: u64) -> impl Future<Output = ()>;
    /// As [`read_stream`](Self::read_stream), from the page cache.
    fn read_cached_stream(path: PathBuf, buffer_bytes: usize) -> impl Future<Output = u64>;
    /// As [`write_stream`](Self::write_stream), through the page cache.
    fn write_cached_stream(
        path: PathBuf,
        buffer_bytes: usize,
        bytes: u64,
    ) -> impl Future<Output = ()>;
}

/// Runtimes that list directories.
pub trait Listing: Runtime {
    /// How many names a directory has.
    fn list(path: PathBuf) -> impl Future<Output = usize>;
}

/// Runtimes that read many ranges of a file, merging those that are near to each other.
pub trait BulkReads: Runtime {
    /// Reads all of `ranges`, with gaps of up to [`GAP_BYTES_MAX`] read along and merged reads of up to
    /// [`MERGED_BYTES_MAX`]; how many bytes were asked for and came.
    fn read_many(path: PathBuf, ranges: Vec<(u64, usize)>) -> impl Future<Output = u64>;
}

/// Of [`BulkReads::read_many`].
pub const GAP_BYTES_MAX: usize = 1024;
/// Of [`BulkReads::read_many`].
pub const MERGED_BYTES_MAX: usize = 128 << 10;

/// The length of [`data`].
pub const DATA_BYTES: u64 = 256 << 20;

/// A file of random bytes, to be read. It is made once, and lies beside the binaries of the peers.
pub fn data() -> PathBuf {
    let path = directory().join("data");
    if fs::metadata(&path).is_ok_and(|found| found.len() == DATA_BYTES) {
        return path;
    }
    let half_done = scratch("data");
    let mut file = File::create(&half_done).expect("the target directory can be written");
    let mut random = Rng::with_seed(1);
    let mut piece = vec![0; 1 << 20];
    for _ in 0..DATA_BYTES / piece.len() as u64 {
        for word in piece.chunks_exact_mut(8) {
            word.copy_from_slice(&random.u64(..).to_le_bytes());
        }
        file.write_all(&piece).expect("there is room for 256 MiB");
    }
    file.sync_all().expect("the disk takes it");
    fs::rename(&half_done, &path).expect("both are in one directory");
    path
}

/// A directory with so many empty files.
pub fn names(count: usize) -> PathBuf {
    let path = directory().join(format!("names-{count}"));
    if path.is_dir() {
        return path;
    }
    let half_done = scratch("names");
    fs::create_dir(&half_done).expect("the target directory can be written");
    for number in 0..count {
        File::create(half_done.join(format!("name-{number}"))).expect("there are inodes left");
    }
    fs::rename(&half_done, &path).expect("both are in one directory");
    path
}

/// A path for a file of this process.
pub fn scratch(name: &str) -> PathBuf {
    directory().join(format!("{name}-{}", process::id()))
}

fn directory() -> PathBuf {
    let program = std::env::current_exe().expect("procfs is mounted");
    let directory = program.with_file_name("files-data");
    fs::create_dir_all(&directory).expect("the target directory can be written");
    directory
}

/// Reads the file to its end, so that the page cache has it.
pub fn warm(path: &Path) {
    let bytes = std::io::copy(
        &mut File::open(path).expect("it was made"),
        &mut std::io::sink(),
    );
    assert_eq!(bytes.expect("it can be read"), DATA_BYTES);
}

/// Memory whose bytes direct I/O takes, for crates that read into vectors.
#[derive(Debug)]
pub struct Aligned {
    /// Longer than it needs to be.
    pub memory: Vec<u8>,
    /// Where the aligned bytes begin.
    pub start: usize,
    /// How many there are.
    pub bytes: usize,
}

impl Aligned {
    /// Zeros.
    pub fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + ALIGNMENT];
        Self {
            start: memory.as_ptr().align_offset(ALIGNMENT),
            memory,
            bytes,
        }
    }

    /// The bytes.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.bytes]
    }
}

/// What every device is content with.
const ALIGNMENT: usize = 4096;
