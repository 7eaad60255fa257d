//! FNV-1a with 64 bits (Fowler, Noll and Vo): a byte at a time, and five lines long.
//!
//! It finds accidents, which is all that it is for: a bit that was turned, a piece left out or put twice.

/// A hash of bytes that come in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fnv1a(u64);

impl Fnv1a {
    pub(super) fn new() -> Self {
        Fnv1a(0xCBF2_9CE4_8422_2325)
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }

    pub(super) fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_values() {
        for (bytes, value) in [
            (&b""[..], 0xCBF2_9CE4_8422_2325),
            (b"a", 0xAF63_DC4C_8601_EC8C),
            (b"foobar", 0x8594_4171_F739_67E8),
        ] {
            let mut hash = Fnv1a::new();
            bytes.chunks(2).for_each(|piece| hash.update(piece));
            assert_eq!(hash.value(), value, "{bytes:?}");
        }
    }
}
