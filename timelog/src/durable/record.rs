//! Values of a fixed width.

use std::array;

/// A value whose bytes are always as many: what a durable log stores.
///
/// Implemented for integers, floats, `()`, and arrays and tuples of records.
///
/// # Examples
///
/// ```
/// use timelog::durable::Record;
///
/// #[derive(Clone, Debug, PartialEq)]
/// struct Trade {
///     price: f64,
///     size: u32,
/// }
///
/// impl Record for Trade {
///     const BYTES: usize = <(f64, u32)>::BYTES;
///
///     fn encode(&self, bytes: &mut [u8]) {
///         (self.price, self.size).encode(bytes);
///     }
///
///     fn decode(bytes: &[u8]) -> Self {
///         let (price, size) = Record::decode(bytes);
///         Trade { price, size }
///     }
/// }
///
/// let trade = Trade { price: 1.5, size: 7 };
/// let mut bytes = [0; Trade::BYTES];
/// trade.encode(&mut bytes);
/// assert_eq!(Trade::decode(&bytes), trade);
/// ```
pub trait Record: Clone + 'static {
    /// The number of bytes, at most [`MAX_RECORD_BYTES`](super::MAX_RECORD_BYTES).
    const BYTES: usize;

    /// Writes the value to `bytes`, which are [`BYTES`](Self::BYTES) zeros.
    fn encode(&self, bytes: &mut [u8]);

    /// The value of [`BYTES`](Self::BYTES) bytes that [`encode`](Self::encode) has written. Their
    /// checksum was right; should they be no value all the same, it must return one and not panic.
    fn decode(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Record for $number {
            const BYTES: usize = size_of::<$number>();

            #[inline]
            fn encode(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn decode(bytes: &[u8]) -> Self {
                let bytes = bytes.first_chunk().expect("as many as it has");
                Self::from_le_bytes(*bytes)
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64);

impl<T: Record, const N: usize> Record for [T; N] {
    const BYTES: usize = N * T::BYTES;

    fn encode(&self, bytes: &mut [u8]) {
        for (index, item) in self.iter().enumerate() {
            item.encode(&mut bytes[index * T::BYTES..][..T::BYTES]);
        }
    }

    fn decode(bytes: &[u8]) -> Self {
        array::from_fn(|index| T::decode(&bytes[index * T::BYTES..][..T::BYTES]))
    }
}

macro_rules! tuples {
    ($(($($item:ident)*))*) => {$(
        #[expect(non_snake_case, reason = "an item is named after its type")]
        impl<$($item: Record),*> Record for ($($item,)*) {
            const BYTES: usize = 0 $(+ $item::BYTES)*;

            fn encode(&self, bytes: &mut [u8]) {
                let ($($item,)*) = self;
                let _rest = bytes;
                $(
                    let (item, _rest) = _rest.split_at_mut($item::BYTES);
                    $item.encode(item);
                )*
            }

            fn decode(bytes: &[u8]) -> Self {
                let _rest = bytes;
                $(
                    let (item, _rest) = _rest.split_at($item::BYTES);
                    let $item = $item::decode(item);
                )*
                ($($item,)*)
            }
        }
    )*};
}

tuples!((A B) (A B C) (A B C D));

impl Record for () {
    const BYTES: usize = 0;

    fn encode(&self, _: &mut [u8]) {}

    fn decode(_: &[u8]) -> Self {}
}
