//! The buckets into which the timers of a slot are dealt.

/// A time that is cut into buckets, all of one width.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    in_order: Vec<Bucket>,
    /// Buckets to a nanosecond, times 2^64.
    per_ns: u64,
}

/// Timers of a slot from a deadline on up to the next bucket's.
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
        let count = (timers.div_ceil(BUCKET).min(BUCKETS_MAX) as u64).min(span_ns);
        self.in_order.clear();
        // Where there is but one, no offset comes to a whole bucket.
        self.per_ns = 0;
        let mut bucket = |offset_ns| {
            self.in_order.push(Bucket {
                begin_ns: begin_ns + offset_ns,
                chunk: usize::MAX,
            });
        };
        bucket(0);
        if count > 1 {
            // Less than one: there are at least two nanoseconds.
            self.per_ns = ((u128::from(count) << 64) / (u128::from(span_ns) + 1)) as u64;
            let offset_ns = |nth| (u128::from(nth) << 64) / u128::from(self.per_ns);
            (1..count).for_each(|nth| bucket(offset_ns(nth) as u64));
        }
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

/// Keys of a chunk at most: what sorting and rebuilding may take at a time.
pub(super) const CHUNK: usize = 512;
/// Timers in a bucket where they are evenly spread: so few that its chunk seldom overflows.
const BUCKET: usize = 320;
/// Those of a larger burst have more.
const BUCKETS_MAX: usize = 512;
