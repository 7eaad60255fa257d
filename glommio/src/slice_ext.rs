//! Copying into and out of byte buffers at an offset, without panics.
//!
//! Both traits hold for everything that is a slice of bytes, so for `Vec<u8>` and
//! arrays as well as for the buffers of `glommio::io`. The invariant: at most as
//! many bytes are copied as either side has, and the count is returned. Cost: one
//! `memmove` or `memset`.

#![forbid(unsafe_code)]

/// Reading from a byte buffer at an offset.
pub trait ByteSliceExt {
    /// Copies from `self[offset..]` to the start of `destination` and returns
    /// how many bytes were copied.
    ///
    /// Stops at the end of the shorter side. An offset at or past the end copies
    /// nothing and returns 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::ByteSliceExt;
    ///
    /// let buffer = [1, 2, 3, 4, 5];
    /// let mut copy = [0; 3];
    /// assert_eq!(buffer.read_at(1, &mut copy), 3);
    /// assert_eq!(copy, [2, 3, 4]);
    /// assert_eq!(buffer.read_at(4, &mut copy), 1);
    /// assert_eq!(buffer.read_at(100, &mut copy), 0);
    /// ```
    fn read_at<D: AsMut<[u8]> + ?Sized>(&self, offset: usize, destination: &mut D) -> usize;
}

impl<T: AsRef<[u8]> + ?Sized> ByteSliceExt for T {
    fn read_at<D: AsMut<[u8]> + ?Sized>(&self, offset: usize, destination: &mut D) -> usize {
        let tail = self.as_ref().get(offset..).unwrap_or_default();
        copy_prefix(tail, destination.as_mut())
    }
}

/// Writing to a byte buffer at an offset.
pub trait ByteSliceMutExt {
    /// Copies from the start of `src` to `self[offset..]` and returns how many
    /// bytes were copied.
    ///
    /// Stops at the end of the shorter side. An offset at or past the end copies
    /// nothing and returns 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::ByteSliceMutExt;
    ///
    /// let mut buffer = [0; 5];
    /// buffer.memset(0xff);
    /// assert_eq!(buffer.write_at(3, &[7, 8, 9]), 2);
    /// assert_eq!(buffer, [0xff, 0xff, 0xff, 7, 8]);
    /// assert_eq!(buffer.write_at(5, &[7]), 0);
    /// ```
    fn write_at<S: AsRef<[u8]> + ?Sized>(&mut self, offset: usize, src: &S) -> usize;

    /// Sets every byte to `value`.
    fn memset(&mut self, value: u8);
}

impl<T: AsMut<[u8]> + ?Sized> ByteSliceMutExt for T {
    fn write_at<S: AsRef<[u8]> + ?Sized>(&mut self, offset: usize, src: &S) -> usize {
        let tail = self.as_mut().get_mut(offset..).unwrap_or_default();
        copy_prefix(src.as_ref(), tail)
    }

    fn memset(&mut self, value: u8) {
        self.as_mut().fill(value);
    }
}

fn copy_prefix(source: &[u8], destination: &mut [u8]) -> usize {
    let copied_bytes = source.len().min(destination.len());
    destination[..copied_bytes].copy_from_slice(&source[..copied_bytes]);
    copied_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For all lengths and offsets up to a few bytes, against the plain loop.
    #[test]
    fn copies_what_a_byte_by_byte_loop_copies() {
        for own_len in 0..5usize {
            for other_len in 0..5usize {
                for offset in (0..7).chain([usize::MAX]) {
                    let expected = own_len.saturating_sub(offset).min(other_len);

                    let own: Vec<u8> = (1..=own_len as u8).collect();
                    let mut destination = vec![0xee; other_len];
                    assert_eq!(own.read_at(offset, &mut destination), expected);
                    for (i, byte) in destination.iter().enumerate() {
                        let wanted = if i < expected { own[offset + i] } else { 0xee };
                        assert_eq!(*byte, wanted);
                    }

                    let mut own = vec![0xee; own_len];
                    let source: Vec<u8> = (1..=other_len as u8).collect();
                    assert_eq!(own.write_at(offset, &source), expected);
                    for (i, byte) in own.iter().enumerate() {
                        let copied = i >= offset && i - offset < expected;
                        let wanted = if copied { source[i - offset] } else { 0xee };
                        assert_eq!(*byte, wanted);
                    }
                }
            }
        }
    }

    #[test]
    fn unsized_buffers_are_taken_on_both_sides() {
        let source: &[u8] = &[1, 2, 3];
        let mut bytes = [0; 2];
        let destination: &mut [u8] = &mut bytes;
        assert_eq!(source.read_at(1, destination), 2);
        assert_eq!(destination.write_at(1, source), 1);
        assert_eq!(bytes, [2, 1]);
    }

    #[test]
    fn memset_fills_everything() {
        let mut buffer = vec![0u8; 33];
        buffer.memset(9);
        assert!(buffer.iter().all(|byte| *byte == 9));
        let empty: &mut [u8] = &mut [];
        empty.memset(9);
    }
}
