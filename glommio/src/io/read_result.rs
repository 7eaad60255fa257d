//! What a read has brought.

use std::ops::Deref;
use std::rc::Rc;

use super::shared_read::SharedRead;
use crate::memory::DmaBuffer;

/// The bytes that a read has brought, as a slice.
///
/// A cheap view of the memory that was read into: clones and [slices](Self::slice) share it, and
/// the last of them frees it. It may outlive the file and the executor.
///
/// Its functions are not methods, so that they do not hide those of slices.
///
/// # Examples
///
/// ```
/// use glommio::io::{OpenOptions, ReadResult};
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// std::fs::write(&path, "header and body")?;
/// let file = OpenOptions::new().read(true).buffered_open(&path).await?;
/// let read = file.read_at(0, 100).await?;
/// assert_eq!(&*read, b"header and body");
/// let body = ReadResult::slice(&read, 11, 4).expect("it is that long");
/// assert_eq!(&*body, b"body");
/// // SAFETY: 11 and 15 are no more than the length.
/// let body = unsafe { ReadResult::slice_unchecked(&read, 11, 4) };
/// assert_eq!(&*body, b"body");
/// file.close().await?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct ReadResult {
    memory: Memory,
    start: usize,
    len: usize,
}

/// Whose the bytes are.
#[derive(Clone, Default)]
enum Memory {
    #[default]
    Nothing,
    Own(Rc<DmaBuffer>),
    /// Of a read that has succeeded.
    Shared(Rc<SharedRead>),
}

impl ReadResult {
    /// All of `buffer`.
    pub(super) fn new(buffer: DmaBuffer) -> Self {
        if buffer.is_empty() {
            return Self::default();
        }
        let len = buffer.len();
        ReadResult {
            memory: Memory::Own(Rc::new(buffer)),
            start: 0,
            len,
        }
    }

    /// As much as there is of the `len` bytes at `start` of a read that has succeeded.
    pub(super) fn of_shared(read: &Rc<SharedRead>, start: usize, len: usize) -> Self {
        let whole = read.bytes().len();
        let len = len.min(whole.saturating_sub(start));
        if len == 0 {
            return Self::default();
        }
        ReadResult {
            memory: Memory::Shared(Rc::clone(read)),
            start,
            len,
        }
    }

    /// As much as there is of the `len` bytes at `start`.
    pub(super) fn clip(self, start: usize, len: usize) -> Self {
        let len = len.min(self.len.saturating_sub(start));
        if len == 0 {
            return Self::default();
        }
        ReadResult {
            start: self.start + start,
            len,
            ..self
        }
    }

    /// The `len` bytes from `extra_offset` on, which share the memory. `None` if they are not all
    /// in `this`; no bytes are in it wherever they would be.
    pub fn slice(this: &Self, extra_offset: usize, len: usize) -> Option<Self> {
        if len == 0 {
            return Some(Self::default());
        }
        let end = extra_offset.checked_add(len)?;
        (end <= this.len).then(|| ReadResult {
            memory: this.memory.clone(),
            start: this.start + extra_offset,
            len,
        })
    }

    /// As [`slice`](Self::slice), without the check.
    ///
    /// # Safety
    ///
    /// `extra_offset` and `extra_offset + len` are no more than the length of `this`.
    #[allow(unsafe_code, reason = "declared so by 0.9; reading checks the bounds")]
    pub unsafe fn slice_unchecked(this: &Self, extra_offset: usize, len: usize) -> Self {
        debug_assert!(extra_offset + len <= this.len);
        ReadResult {
            memory: this.memory.clone(),
            start: this.start + extra_offset,
            len,
        }
    }

    /// The whole memory, if it is this result's alone.
    fn into_buffer(self) -> Result<DmaBuffer, Self> {
        let ReadResult { memory, start, len } = self;
        match memory {
            Memory::Own(buffer) if start == 0 => match Rc::try_unwrap(buffer) {
                Ok(mut buffer) => {
                    buffer.trim_to_size(len);
                    Ok(buffer)
                }
                Err(buffer) => Err(ReadResult {
                    memory: Memory::Own(buffer),
                    start,
                    len,
                }),
            },
            memory => Err(ReadResult { memory, start, len }),
        }
    }
}

impl Deref for ReadResult {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let whole = match &self.memory {
            Memory::Nothing => &[],
            Memory::Own(buffer) => buffer.as_bytes(),
            Memory::Shared(read) => read.bytes(),
        };
        &whole[self.start..self.start + self.len]
    }
}

/// Without a copy, if the result begins where the read began and no clone or slice of it is left;
/// else a copy in memory of the ordinary allocator.
impl From<ReadResult> for DmaBuffer {
    fn from(read: ReadResult) -> Self {
        match read.into_buffer() {
            Ok(buffer) => buffer,
            Err(read) => {
                let mut copy = DmaBuffer::of_any_size(read.len());
                copy.as_bytes_mut().copy_from_slice(&read);
                copy
            }
        }
    }
}

impl_debug! {
    /// Says how long, not what is in it.
    ReadResult, it: len; ..
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(len: usize) -> ReadResult {
        let mut buffer = DmaBuffer::of_any_size(len);
        for (at, byte) in buffer.as_bytes_mut().iter_mut().enumerate() {
            *byte = at as u8;
        }
        ReadResult::new(buffer)
    }

    #[test]
    fn slices_are_relative_and_stay_inside() {
        let whole = result(100);
        let middle = ReadResult::slice(&whole, 10, 50).unwrap();
        assert_eq!((middle.len(), middle[0]), (50, 10));
        let inner = ReadResult::slice(&middle, 49, 1).unwrap();
        assert_eq!(*inner, [59]);
        assert!(ReadResult::slice(&middle, 49, 2).is_none());
        assert!(ReadResult::slice(&middle, usize::MAX, 2).is_none());
        assert!(ReadResult::slice(&middle, 1000, 0).unwrap().is_empty());
        assert!(ReadResult::slice(&ReadResult::default(), 0, 1).is_none());
        assert!(ReadResult::slice(&ReadResult::default(), 0, 0).is_some());
    }

    #[test]
    fn clipping_never_reaches_beyond_what_there_is() {
        assert_eq!(*result(10).clip(8, 100), [8, 9]);
        assert_eq!(*result(10).clip(2, 3), [2, 3, 4]);
        assert!(result(10).clip(10, 1).is_empty());
        assert!(result(10).clip(usize::MAX, 1).is_empty());
    }

    #[test]
    fn a_result_of_its_own_becomes_a_buffer_without_a_copy() {
        let alone = result(100);
        let address = alone.as_ptr();
        let buffer = DmaBuffer::from(alone.clip(0, 60));
        assert_eq!((buffer.as_ptr(), buffer.len()), (address, 60));

        let shared = result(100);
        let other = shared.clone();
        let buffer = DmaBuffer::from(shared);
        assert_ne!(buffer.as_ptr(), other.as_ptr());
        assert_eq!(buffer.as_bytes(), &*other);
        let buffer = DmaBuffer::from(result(100).clip(7, 2));
        assert_eq!(buffer.as_bytes(), [7, 8]);
        assert_eq!(buffer.as_ptr().addr() % 4096, 0);
        assert!(DmaBuffer::from(ReadResult::default()).is_empty());
    }
}
