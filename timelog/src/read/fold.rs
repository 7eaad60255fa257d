//! Rows summed up by windows of time.

use std::fmt;
use std::iter::FusedIterator;

use super::Rows;
use crate::column::Span;
use crate::search::all_or_gallop;
use crate::{ConfigError, Ts};

/// Windows of one width that follow each other: for [`Snapshot::fold`](crate::Snapshot::fold).
///
/// # Examples
///
/// ```
/// use timelog::Every;
///
/// let minutes = Every::ticks(60)?.origin(30);
/// assert_eq!(minutes.window_of(100), (90, 149));
/// assert_eq!(minutes.window_of(-1), (-30, 29));
/// # Ok::<(), timelog::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    ticks: u64,
    origin: Ts,
}

impl Every {
    /// Windows of so many ticks; one begins at 0.
    ///
    /// # Errors
    /// If `ticks` is 0.
    pub fn ticks(ticks: u64) -> Result<Self, ConfigError> {
        ConfigError::unless(ticks > 0, "ticks", ticks, "1 tick or more")?;
        Ok(Self { ticks, origin: 0 })
    }

    /// The same windows, so that one begins at `origin`.
    pub fn origin(self, origin: Ts) -> Self {
        Self { origin, ..self }
    }

    /// The first and the last timestamp of the window that `ts` is in. At both ends of time a
    /// window is cut.
    pub fn window_of(self, ts: Ts) -> (Ts, Ts) {
        // The difference of two timestamps need not fit into one.
        let (origin, ticks) = (i128::from(self.origin), i128::from(self.ticks));
        let first = origin + (i128::from(ts) - origin).div_euclid(ticks) * ticks;
        let clamp = |ts: i128| ts.clamp(Ts::MIN.into(), Ts::MAX.into()) as Ts;
        (clamp(first), clamp(first + ticks - 1))
    }
}

/// A number that can be summed up: std's integers of up to 64 bits, whose sums never overflow, and
/// its floating-point numbers.
pub trait Number: Copy {
    /// What a sum is kept in.
    type Sum: Copy + Default + fmt::Debug;

    /// `sum + self`.
    fn add_to(self, sum: Self::Sum) -> Self::Sum;

    /// The lesser one; a number rather than NaN.
    fn least(self, other: Self) -> Self;

    /// The greater one; a number rather than NaN.
    fn greatest(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($sum:ty: $($number:ty),*) => {$(
        impl Number for $number {
            type Sum = $sum;

            #[inline]
            fn add_to(self, sum: $sum) -> $sum {
                sum + self as $sum
            }

            #[inline]
            fn least(self, other: Self) -> Self {
                self.min(other)
            }

            #[inline]
            fn greatest(self, other: Self) -> Self {
                self.max(other)
            }
        }
    )*};
}

numbers!(i128: i8, i16, i32, i64, isize);
numbers!(u128: u8, u16, u32, u64, usize);
numbers!(f64: f32, f64);

/// The rows of one window, summed up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket<N: Number> {
    /// The first timestamp of the window.
    pub first: Ts,
    /// The last timestamp of the window, inside it.
    pub end: Ts,
    /// The number of its rows, 1 or more.
    pub count: u64,
    /// The sum of their numbers.
    pub sum: N::Sum,
    /// The least number.
    pub min: N,
    /// The greatest number.
    pub max: N,
    /// The number of the last row: the newest of those with the greatest timestamp.
    pub last: N,
}

impl<N: Number> Bucket<N> {
    fn new((first, end): (Ts, Ts), number: N) -> Self {
        Self {
            first,
            end,
            count: 0,
            sum: N::Sum::default(),
            min: number,
            max: number,
            last: number,
        }
    }
}

/// The windows of a range that have rows, in order, from
/// [`Snapshot::fold`](crate::Snapshot::fold).
pub struct Buckets<'s, V, F> {
    rows: Rows<'s, V>,
    rest: Option<Span<'s, V>>,
    every: Every,
    number: F,
}

impl<V, F> fmt::Debug for Buckets<'_, V, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buckets")
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

impl<'s, V, F> Buckets<'s, V, F> {
    pub(crate) fn new(rows: Rows<'s, V>, every: Every, number: F) -> Self {
        Self {
            rows,
            rest: None,
            every,
            number,
        }
    }
}

impl<V, N: Number, F: FnMut(&V) -> N> Iterator for Buckets<'_, V, F> {
    type Item = Bucket<N>;

    fn next(&mut self) -> Option<Bucket<N>> {
        let mut next = self.rest.take().or_else(|| self.rows.next_slice());
        let span = next?;
        let window = self.every.window_of(span.first());
        let first = (self.number)(&span.values()[0]);
        let mut bucket = Bucket::new(window, first);
        // The function may count its calls: it has one for each row.
        let mut called = Some(first);
        while let Some(span) = next.filter(|span| span.first() <= bucket.end) {
            let here = all_or_gallop(span.timestamps(), |ts| ts <= bucket.end);
            let (inside, after) = span.split_at(here);
            for value in inside.values() {
                let number = called.take().unwrap_or_else(|| (self.number)(value));
                bucket.sum = number.add_to(bucket.sum);
                bucket.min = bucket.min.least(number);
                bucket.max = bucket.max.greatest(number);
                bucket.last = number;
            }
            bucket.count += inside.len() as u64;
            next = if after.is_empty() {
                self.rows.next_slice()
            } else {
                Some(after)
            };
        }
        self.rest = next;
        Some(bucket)
    }
}

impl<V, N: Number, F: FnMut(&V) -> N> FusedIterator for Buckets<'_, V, F> {}
