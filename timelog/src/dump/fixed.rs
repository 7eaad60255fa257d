//! Values of a fixed number of bytes.

/// A value that takes the same number of bytes each time: std's numbers, `bool`, arrays of bytes,
/// and pairs of such values. Little-endian.
///
/// # Examples
///
/// ```
/// use timelog::dump::Fixed;
///
/// #[derive(Clone)]
/// struct Trade { price: f64, amount: u32 }
///
/// impl Fixed for Trade {
///     const BYTES: usize = <(f64, u32)>::BYTES;
///
///     fn put(&self, out: &mut Vec<u8>) {
///         (self.price, self.amount).put(out);
///     }
///
///     fn get(bytes: &[u8]) -> Option<Self> {
///         let (price, amount) = <(f64, u32)>::get(bytes)?;
///         Some(Self { price, amount })
///     }
/// }
/// # let mut bytes = Vec::new();
/// # Trade { price: 1.5, amount: 7 }.put(&mut bytes);
/// # assert_eq!(bytes.len(), Trade::BYTES);
/// # assert_eq!(Trade::get(&bytes).unwrap().amount, 7);
/// ```
pub trait Fixed: Sized {
    /// The number of bytes.
    const BYTES: usize;

    /// Adds as many bytes to `out`.
    fn put(&self, out: &mut Vec<u8>);

    /// The value of as many bytes; `None` if there is none.
    fn get(bytes: &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Fixed for $number {
            const BYTES: usize = size_of::<$number>();

            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn get(bytes: &[u8]) -> Option<Self> {
                Some(Self::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )*};
}

numbers!(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128, f32, f64);

impl Fixed for bool {
    const BYTES: usize = 1;

    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn get(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl Fixed for () {
    const BYTES: usize = 0;

    fn put(&self, _out: &mut Vec<u8>) {}

    fn get(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(())
    }
}

impl<const N: usize> Fixed for [u8; N] {
    const BYTES: usize = N;

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn get(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

impl<A: Fixed, B: Fixed> Fixed for (A, B) {
    const BYTES: usize = A::BYTES + B::BYTES;

    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn get(bytes: &[u8]) -> Option<Self> {
        let (a, b) = bytes.split_at_checked(A::BYTES)?;
        Some((A::get(a)?, B::get(b)?))
    }
}
