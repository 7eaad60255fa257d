//! Control messages: each a header (length, level, type) and data, aligned to a word.

#![forbid(unsafe_code)]

/// Space for control messages of `N` bytes in all.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Control<const N: usize>([u8; N]);

/// The kernel's header, in which the length is a word also where the C library has another type for
/// it.
const HEADER: usize = size_of::<usize>() + 2 * size_of::<libc::c_int>();

impl<const N: usize> Control<N> {
    pub(super) const EMPTY: Self = Control([0; N]);

    /// Writes a message at `at`, where the one before has ended. Returns where the next one goes.
    pub(super) fn put(
        &mut self,
        at: usize,
        level: libc::c_int,
        kind: libc::c_int,
        data: &[u8],
    ) -> usize {
        let length = HEADER + data.len();
        let words = [
            &length.to_ne_bytes()[..],
            &level.to_ne_bytes(),
            &kind.to_ne_bytes(),
            data,
        ];
        let mut end = at;
        for bytes in words {
            self.0[end..end + bytes.len()].copy_from_slice(bytes);
            end += bytes.len();
        }
        at + length.next_multiple_of(size_of::<usize>())
    }
}

/// Level, type and data of each message.
pub(super) struct ControlMessages<'a>(&'a [u8]);

impl<'a> ControlMessages<'a> {
    /// Those in the first `written` bytes.
    pub(super) fn of<const N: usize>(control: &'a Control<N>, written: usize) -> Self {
        ControlMessages(&control.0[..written.min(N)])
    }
}

impl<'a> Iterator for ControlMessages<'a> {
    type Item = (libc::c_int, libc::c_int, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (level, rest) = rest.split_first_chunk()?;
        let (kind, _) = rest.split_first_chunk()?;
        let length = usize::from_ne_bytes(*length);
        let data = self.0.get(HEADER..length)?;
        let next = length.next_multiple_of(size_of::<usize>());
        self.0 = self.0.get(next..).unwrap_or_default();
        Some((
            libc::c_int::from_ne_bytes(*level),
            libc::c_int::from_ne_bytes(*kind),
            data,
        ))
    }
}
