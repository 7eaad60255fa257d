//! Files from their beginning to their end: readers and writers of the traits of `futures-io`.

mod dma_reader;
mod dma_writer;
mod reader;
mod stdin;
mod unread;
mod writer;

use std::io;

pub use dma_reader::{DmaStreamReader, DmaStreamReaderBuilder};
pub(super) use dma_writer::Settings;
pub use dma_writer::{DmaStreamWriter, DmaStreamWriterBuilder};
pub use reader::{StreamReader, StreamReaderBuilder};
pub use stdin::{Stdin, stdin};
pub use writer::{StreamWriter, StreamWriterBuilder};

/// 128 KiB: what devices and the page cache take in one piece.
const DEFAULT_BUFFER_BYTES: usize = 128 << 10;

/// What an operation on a stream that was closed ends with.
fn is_closed() -> io::Error {
    io::Error::other(io::Error::from_raw_os_error(libc::EBADF))
}
