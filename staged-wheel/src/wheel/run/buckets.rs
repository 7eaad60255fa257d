//! The buckets into which a crowd is dealt (`deal.rs`).

/// A time that is cut into buckets, all of one width.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    in_order: Vec<Bucket>,
    /// Buckets to a nanosecond, times 2^64.
    per_ns: u64,
}

/// A part of a crowd that is dealt: timers from a deadline on up to the next bucket's.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) begin_ns: u64,
    /// The chunk that was filled last, which may hold something else by now.
    pub(super) chunk: usize,
}

impl Buckets {
    /// Cuts the time from `begin_ns` to `last_ns`, in which some `timers` are due.
    pub(super) fn cut(&mut self, begin_ns: u64, last_ns: u64, timers: usize) {
        let span_ns = last_ns.saturating_sub(begin_ns).max(1);
        let count = (timers.div_ceil(BUCKET).clamp(1, BUCKETS_MAX) as u64).min(span_ns);
        // Less than one: there are at least two nanoseconds.
        let per_ns = ((u128::from(count) << 64) / (u128::from(span_ns) + 1)) as u64;
        let begins = (0..count).map(|nth| {
            let offset_ns = (u128::from(nth) << 64) / u128::from(per_ns);
            begin_ns + offset_ns as u64
        });
        self.in_order.clear();
        // A crowd that comes again takes no more memory than before.
        self.in_order.reserve_exact(BUCKETS_MAX);
        self.in_order.extend(begins.map(|begin_ns| Bucket {
            begin_ns,
            chunk: usize::MAX,
        }));
        self.per_ns = per_ns;
    }

    /// Whether the first of them begins there.
    #[inline]
    pub(super) fn begin_with(&self, begin_ns: u64) -> bool {
        self.in_order
            .first()
            .is_some_and(|it| it.begin_ns == begin_ns)
    }

    /// Where a timer due at that time goes, which is no earlier than the first bucket.
    #[inline]
    pub(super) fn bucket(&mut self, deadline_ns: u64) -> &mut Bucket {
        let offset_ns = u128::from(deadline_ns - self.in_order[0].begin_ns);
        let nth = (offset_ns * u128::from(self.per_ns)) >> 64;
        // The last one has what comes after it as well.
        let last = self.in_order.len() - 1;
        &mut self.in_order[last.min(nth as usize)]
    }
}

/// Timers in a bucket where they are evenly spread: so few that its chunk seldom overflows.
const BUCKET: usize = 320;
/// Those of a larger crowd have more.
const BUCKETS_MAX: usize = 512;
