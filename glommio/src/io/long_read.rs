//! Reads of more than the kernel brings at once.
//!
//! They are made of several, one after the other, into the same memory. As that may be more than
//! there is, and more than the file has, it is cut to the size of the file before.

use std::io;

use super::open_file::OpenFile;
use crate::reactor::op::MAX_TRANSFER_BYTES;

/// Whether a read goes on that has brought `count` bytes, `read` in all, of `len`: it was cut short
/// by nothing but its own length.
pub(super) fn goes_on(read: usize, count: usize, len: usize) -> bool {
    read < len && count == MAX_TRANSFER_BYTES
}

/// How many of the `size` bytes at `position` memory is needed for.
///
/// # Errors
///
/// What `statx(2)` gives.
pub(super) async fn to_allocate(file: &OpenFile, position: u64, size: usize) -> io::Result<usize> {
    if size <= MAX_TRANSFER_BYTES {
        return Ok(size);
    }
    let statx = file.statx().await?;
    Ok(if statx.is_regular() {
        within(statx.size(), position, size)
    } else {
        size
    })
}

/// As [`to_allocate`], of a file as large as this machine knows it to be: no server is asked.
pub(super) fn to_allocate_now(file: &OpenFile, position: u64, size: usize) -> usize {
    if size <= MAX_TRANSFER_BYTES {
        return size;
    }
    let file_size = file.known_size();
    file_size.map_or(size, |file_size| within(file_size, position, size))
}

/// As much of a long read as is in a file of `file_size` bytes.
fn within(file_size: u64, position: u64, size: usize) -> usize {
    let left = match file_size {
        // It may be one that has content and does not say how much, as those of /proc.
        0 => MAX_TRANSFER_BYTES as u64,
        _ => file_size.saturating_sub(position),
    };
    size.min(usize::try_from(left).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: usize = 1 << 30;

    #[test]
    fn memory_is_for_what_the_file_has() {
        assert_eq!(within(5, 0, usize::MAX), 5);
        assert_eq!(within(5, 3, usize::MAX), 2);
        assert_eq!(within(5, 6, usize::MAX), 0);
        assert_eq!(within(u64::MAX, 0, 3 * GIB), 3 * GIB);
        assert_eq!(within(0, 7, usize::MAX), GIB);
    }

    #[test]
    fn only_what_was_cut_by_its_length_goes_on() {
        assert!(goes_on(GIB, GIB, 3 * GIB));
        assert!(goes_on(2 * GIB, GIB, 3 * GIB));
        assert!(!goes_on(3 * GIB, GIB, 3 * GIB));
        assert!(!goes_on(GIB + 5, 5, 3 * GIB), "the file ends");
        assert!(!goes_on(GIB, GIB, GIB));
    }
}
