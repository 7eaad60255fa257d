//! monoio's files: operations of the ring, with buffers that travel.

#[path = "../../ring_files.rs"]
mod ring_files;

mod parts {
    use std::io;
    use std::ops::Range;
    use std::os::unix::fs::OpenOptionsExt;

    use monoio::buf::{IoBuf, IoBufMut};
    pub use monoio::fs::{File, OpenOptions};
    use workloads::files::O_DIRECT;

    pub(crate) use crate::Monoio as Peer;

    pub fn past_the_cache(options: &mut OpenOptions) {
        options.custom_flags(O_DIRECT);
    }

    pub async fn read_at(
        file: &File,
        memory: Vec<u8>,
        place: Range<usize>,
        position: u64,
    ) -> (io::Result<usize>, Vec<u8>) {
        let (read, place) = file.read_at(memory.slice_mut(place), position).await;
        (read, place.into_inner())
    }

    pub async fn write_at(
        file: &File,
        memory: Vec<u8>,
        place: Range<usize>,
        position: u64,
    ) -> io::Result<usize> {
        file.write_at(memory.slice(place), position).await.0
    }
}
