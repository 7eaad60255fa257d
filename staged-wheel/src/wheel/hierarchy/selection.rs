//! What a selection knows: how far its passes have come, the sample, and the window that it takes
//! (`silence.rs` says what for).

use crate::wheel::entry::{Order, PAGE, Record, RecordState};
use crate::wheel::run::{Bucket, Buckets};
use crate::wheel::slab::Slab;

/// A selection of what is due at a time.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) until_ns: u64,
    /// Nothing up to here is in a list.
    pub(super) after: Order,
    /// What the pass under way takes, or nothing while the end of the next window is looked for.
    pub(super) window: Option<Order>,
    /// The pages whose first timers give the next window, or more than [`FIRST_PAGES_MAX`] once the
    /// sample does.
    first_pages: u16,
    is_sampled: bool,
    /// The page that the pass has come to.
    pub(super) page: usize,
    pub(super) looks_left: usize,
    /// Polls that it took.
    pub(super) polls: u32,
    memory: Memory,
    /// Of so many timers that were looked at, one is in the sample.
    gap: usize,
    seed: u64,
    /// Where in the sample the window ends, and by how much the next one is longer.
    end: usize,
    step: usize,
}

/// What a selection allocates.
#[derive(Debug, Default)]
pub(super) struct Memory {
    sample: Vec<Order>,
    /// Those of the window.
    buckets: Buckets,
}

impl Selection {
    /// Of what is due at `now_ns` and comes after `after`, in the memory of one that is over.
    pub(super) fn new(mut memory: Memory, now_ns: u64, after: Order, looks: usize) -> Self {
        memory.sample.clear();
        memory.sample.reserve_exact(SAMPLE);
        memory.buckets.cut(after.deadline_ns, now_ns, 0);
        Selection {
            until_ns: now_ns,
            after,
            window: None,
            first_pages: FIRST_PAGES_MIN,
            is_sampled: false,
            page: 0,
            looks_left: looks,
            polls: 1,
            memory,
            gap: 1,
            // A crowd that comes again is cut alike, and takes no more memory than before.
            seed: 1,
            end: 0,
            step: 1,
        }
    }

    /// Its memory, for the next one.
    pub(super) fn into_memory(self) -> Memory {
        self.memory
    }

    /// What it takes to come to the first window's end, in looks.
    pub(super) fn looks_to_first<T>(slab: &Slab<T>) -> usize {
        (PAGE + LOOKS_PER_SAMPLED_PAGE) * slab.table_len()
    }

    /// Looks for the end of the next window. True when it is open, and a pass may begin.
    pub(super) fn find_window<T>(&mut self, slab: &Slab<T>) -> bool {
        if usize::from(self.first_pages) > FIRST_PAGES_MAX {
            return self.take_sample(slab);
        }
        if self.looks_left == 0 {
            return false;
        }
        let looks = slab.firsts().len() / PAGES_PER_LOOK;
        self.looks_left = self.looks_left.saturating_sub(looks);
        self.window = self.first_of_pages(slab);
        self.first_pages = match self.window {
            Some(_) => 2 * self.first_pages,
            None => u16::MAX,
        };
        true
    }

    /// The end of a window that begins on as many pages as are wanted. `None` if too few are known to
    /// have timers that are due.
    fn first_of_pages<T>(&self, slab: &Slab<T>) -> Option<Order> {
        let mut firsts = [Order::LAST; FIRST_PAGES_MAX];
        let firsts = &mut firsts[..usize::from(self.first_pages)];
        let (mut known, mut unknown) = (0, 0);
        for &first in slab.firsts() {
            if first.deadline_ns > self.until_ns {
                continue;
            }
            if first <= self.after {
                // That timer is gone.
                unknown += 1;
                continue;
            }
            known += 1;
            if first < firsts[firsts.len() - 1] {
                let at = firsts.partition_point(|&it| it < first);
                firsts[at..].rotate_right(1);
                firsts[at] = first;
            }
        }
        // Where they are few, or may not be the first, a window may have far more timers than pages.
        let is_known = known >= 2 * firsts.len() && unknown <= known;
        is_known.then(|| firsts[firsts.len() - 1])
    }

    /// A pass has ended, for which there was a window.
    pub(super) fn close_window(&mut self, window: Order) {
        self.after = window;
        self.window = None;
        self.page = 0;
        self.memory
            .buckets
            .cut(window.deadline_ns, self.until_ns, 0);
        if self.is_sampled {
            self.open_window();
        }
    }

    /// Takes a sample of what is due. True when it has been through all pages, and the first window
    /// is open.
    fn take_sample<T>(&mut self, slab: &Slab<T>) -> bool {
        while self.page < slab.table_len() {
            if self.looks_left == 0 {
                return false;
            }
            self.looks_left = self.looks_left.saturating_sub(LOOKS_PER_SAMPLED_PAGE);
            let number = self.page;
            self.page += 1;
            if slab.firsts()[number].deadline_ns > self.until_ns {
                continue;
            }
            let Some(memory) = slab.page(number) else {
                continue;
            };
            for position in (self.random(STRIDE)..PAGE).step_by(STRIDE) {
                let deadline_ns = memory.links[position].deadline_ns;
                // Of a deadline within which a window has ended there may be most of the crowd left.
                if (self.after.deadline_ns..=self.until_ns).contains(&deadline_ns) {
                    self.draw(deadline_ns, &memory.records[position]);
                }
            }
        }
        self.memory.sample.sort_unstable();
        // What they stand for are so many timers each.
        self.step = FIRST_WINDOW.div_ceil(STRIDE * self.gap);
        self.is_sampled = true;
        self.open_window();
        true
    }

    /// Puts a timer into the sample, or one of several.
    fn draw<T>(&mut self, deadline_ns: u64, record: &Record<T>) {
        let order = Order {
            deadline_ns,
            seq: record.seq,
        };
        let is_wanted = record.state == RecordState::Listed && order > self.after;
        if !is_wanted || self.random(self.gap) > 0 {
            return;
        }
        let sample = &mut self.memory.sample;
        if sample.len() == SAMPLE {
            let mut is_kept = false;
            sample.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.gap *= 2;
        }
        sample.push(order);
    }

    /// A number below `end`, so that no pattern in the order of arming is met (Knuth's MMIX).
    fn random(&mut self, end: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005);
        self.seed = self.seed.wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % end
    }

    /// The next window, with which a pass begins.
    fn open_window(&mut self) {
        let begin = self.end;
        self.end += self.step.max(1);
        self.step *= 2;
        let sample = &self.memory.sample;
        let border = sample.get(self.end).copied();
        // Of equal timers in the sample, the next are not before the last window's end.
        let border = border.filter(|&border| border > self.after);
        self.window = Some(border.unwrap_or(Order::last_at(self.until_ns)));
        self.page = 0;
        if let Some(last) = border.or(sample.last().copied()) {
            let timers = (self.end.min(sample.len()) - begin.min(sample.len())) * STRIDE * self.gap;
            let begin_ns = self.after.deadline_ns;
            let buckets = &mut self.memory.buckets;
            buckets.cut(begin_ns, last.deadline_ns, timers);
        }
    }

    /// Where a timer of the window goes.
    #[inline]
    pub(super) fn bucket(&mut self, deadline_ns: u64) -> &mut Bucket {
        self.memory.buckets.bucket(deadline_ns)
    }

    /// Where on the page the timers of `window` are that are in a list, how many, and the first timer
    /// after them or a place before it.
    #[inline]
    pub(super) fn look_through<T>(
        &mut self,
        slab: &Slab<T>,
        window: Order,
        found: &mut [u8; PAGE],
    ) -> (usize, Order) {
        let mut looks = PAGE;
        let (mut count, mut first_ns, mut first) = (0, u64::MAX, Order::LAST);
        if let Some(memory) = slab.page(self.page) {
            let begin_ns = self.after.deadline_ns;
            let span_ns = window.deadline_ns - begin_ns;
            // No branches: half of the timers would take them.
            let mut inside = 0;
            for (position, link) in memory.links.iter().enumerate() {
                // Maybe that of a timer which is gone: then the first is earlier than need be.
                let is_behind = link.deadline_ns > window.deadline_ns;
                first_ns = first_ns.min(if is_behind {
                    link.deadline_ns
                } else {
                    u64::MAX
                });
                found[inside] = position as u8;
                inside += usize::from(link.deadline_ns.wrapping_sub(begin_ns) <= span_ns);
            }
            looks += LOOKS_PER_RECORD * inside;
            for nth in 0..inside {
                let position = found[nth];
                let record = &memory.records[usize::from(position)];
                let order = Order {
                    deadline_ns: memory.links[usize::from(position)].deadline_ns,
                    seq: record.seq,
                };
                if record.state != RecordState::Listed {
                    continue;
                }
                if order > window {
                    first = first.min(order);
                } else {
                    found[count] = position;
                    count += 1;
                }
            }
        }
        self.looks_left = self.looks_left.saturating_sub(looks);
        // The records of those were not looked at.
        let behind = Order {
            deadline_ns: first_ns,
            seq: 0,
        };
        (count, first.min(behind))
    }
}

/// A look at a record, after one at its deadline, takes as long as so many.
const LOOKS_PER_RECORD: usize = 2;
/// Of so many timers one is looked at for the sample.
const STRIDE: usize = if PAGE < 32 { PAGE } else { 32 };
/// That they lie apart costs more.
const LOOKS_PER_SAMPLED_PAGE: usize = 8 * (PAGE / STRIDE);
/// Pages whose first timers give the first window, and the last before the sample is taken: with each
/// page come 256 timers, if they were armed in the order of their deadlines.
const FIRST_PAGES_MIN: u16 = 8;
const FIRST_PAGES_MAX: usize = 64;
/// Firsts of pages lie closer together than deadlines: so many are a look.
const PAGES_PER_LOOK: usize = 4;
/// Timers in a sample, at most.
const SAMPLE: usize = 512;
/// Timers that are to be in the first window.
const FIRST_WINDOW: usize = 512;
