//! Values of a fixed width.

use std::array;

/// A value whose bytes are always as many: what files hold. Little-endian.
///
/// Implemented for integers, floats, `bool`, `()`, and arrays and tuples of records.
///
/// # Examples
///
/// ```
/// use timelog::Record;
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
///     fn type_name() -> String {
///         <(f64, u32)>::type_name()
///     }
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
    /// The number of bytes. In a durable log at most 64 KiB.
    const BYTES: usize;

    /// Whether this is [`Raw`](crate::Raw), whose bytes are as many as the log says.
    #[doc(hidden)]
    const IS_RAW: bool = false;

    /// The name of the type, which a durable log stores: it is not opened with values of another name.
    /// So it must stay the same as long as the bytes mean the same. With the name of a type of
    /// numbers, as in the example above, other programs can read the values, as the command `timelog`
    /// does.
    fn type_name() -> String;

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

            fn type_name() -> String {
                stringify!($number).to_owned()
            }

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

    fn type_name() -> String {
        format!("[{}; {N}]", T::type_name())
    }

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

            fn type_name() -> String {
                format!("({})", [$($item::type_name()),*].join(", "))
            }

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

    fn type_name() -> String {
        "()".to_owned()
    }

    fn encode(&self, _: &mut [u8]) {}

    fn decode(_: &[u8]) -> Self {}
}

impl Record for bool {
    const BYTES: usize = 1;

    fn type_name() -> String {
        "bool".to_owned()
    }

    fn encode(&self, bytes: &mut [u8]) {
        bytes[0] = (*self).into();
    }

    fn decode(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
}

/// The bytes of a value, for programs that do not know its type: a durable log of any type can be
/// opened with it, and none be made. One with another number of bytes than those of the log is cut, or
/// filled with zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw(pub Box<[u8]>);

impl Record for Raw {
    const BYTES: usize = 0;
    const IS_RAW: bool = true;

    fn type_name() -> String {
        "any".to_owned()
    }

    fn encode(&self, bytes: &mut [u8]) {
        for (place, byte) in bytes.iter_mut().zip(&self.0) {
            *place = *byte;
        }
    }

    fn decode(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}
