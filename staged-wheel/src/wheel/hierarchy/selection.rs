//! What a selection knows: how far its passes have come, the sample, and the window that it takes
//! (`silence.rs` says what for).

use crate::wheel::entry::{Order, PAGE, Record, RecordState};
use crate::wheel::slab::Slab;

/// A selection of what is due at a time.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) until_ns: u64,
    /// Nothing up to here is in a list.
    pub(super) after: Order,
    /// What the pass under way takes, or nothing while it takes a sample.
    pub(super) window: Option<Order>,
    /// The page that the pass has come to.
    pub(super) page: usize,
    pub(super) looks_left: usize,
    /// Polls that it took.
    pub(super) polls: u32,
    sample: Vec<Order>,
    /// Of so many timers that were looked at, one is in the sample.
    gap: usize,
    seed: u64,
    /// Where in the sample the window ends, and by how much the next one is longer.
    end: usize,
    step: usize,
}

impl Selection {
    /// Of what is due at `now_ns` and comes after `after`, in the memory of one that is over.
    pub(super) fn new(before: Vec<Order>, now_ns: u64, after: Order, looks: usize) -> Self {
        let mut sample = before;
        sample.clear();
        sample.reserve_exact(SAMPLE);
        Selection {
            until_ns: now_ns,
            after,
            window: None,
            page: 0,
            looks_left: looks,
            polls: 1,
            sample,
            gap: 1,
            seed: now_ns,
            end: 0,
            step: 1,
        }
    }

    /// Its memory, for the next one.
    pub(super) fn into_memory(self) -> Vec<Order> {
        self.sample
    }

    /// What it takes to come to the first window's end, in looks.
    pub(super) fn looks_to_first<T>(slab: &Slab<T>) -> usize {
        (PAGE + LOOKS_PER_SAMPLED_PAGE) * slab.table_len()
    }

    /// Takes a sample of what is due. True when it has been through all pages, and the first window
    /// is open.
    pub(super) fn take_sample<T>(&mut self, slab: &Slab<T>) -> bool {
        while self.page < slab.table_len() {
            if self.looks_left == 0 {
                return false;
            }
            self.looks_left = self.looks_left.saturating_sub(LOOKS_PER_SAMPLED_PAGE);
            let number = self.page;
            self.page += 1;
            let Some(memory) = slab.page(number) else {
                continue;
            };
            for position in (self.random(STRIDE)..PAGE).step_by(STRIDE) {
                let deadline_ns = memory.links[position].deadline_ns;
                if deadline_ns > self.after.deadline_ns && deadline_ns <= self.until_ns {
                    self.draw(deadline_ns, &memory.records[position]);
                }
            }
        }
        self.sample.sort_unstable();
        // What they stand for are so many timers each.
        self.step = FIRST_WINDOW.div_ceil(STRIDE * self.gap);
        self.open_window();
        true
    }

    /// Puts a timer into the sample, or one of several.
    fn draw<T>(&mut self, deadline_ns: u64, record: &Record<T>) {
        if record.state != RecordState::Listed || self.random(self.gap) > 0 {
            return;
        }
        if self.sample.len() == SAMPLE {
            let mut is_kept = false;
            self.sample.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.gap *= 2;
        }
        self.sample.push(Order {
            deadline_ns,
            seq: record.seq,
        });
    }

    /// A number below `end`, so that no pattern in the order of arming is met (Knuth's MMIX).
    fn random(&mut self, end: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005);
        self.seed = self.seed.wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % end
    }

    /// The next window, with which a pass begins.
    pub(super) fn open_window(&mut self) {
        self.end += self.step.max(1);
        self.step *= 2;
        let border = self.sample.get(self.end).copied();
        // Of equal timers in the sample, the next are not before the last window's end.
        let border = border.filter(|&border| border > self.after);
        self.window = Some(border.unwrap_or(Order::last_at(self.until_ns)));
        self.page = 0;
    }

    /// Where on the page the timers of `window` are that are in a list, and how many.
    #[inline]
    pub(super) fn look_through<T>(
        &mut self,
        slab: &Slab<T>,
        window: Order,
        found: &mut [u8; PAGE],
    ) -> usize {
        let mut looks = PAGE;
        let mut count = 0;
        if let Some(memory) = slab.page(self.page) {
            let first_ns = self.after.deadline_ns;
            let span_ns = window.deadline_ns - first_ns;
            for (position, link) in memory.links.iter().enumerate() {
                if link.deadline_ns.wrapping_sub(first_ns) > span_ns {
                    continue;
                }
                looks += LOOKS_PER_RECORD;
                let record = &memory.records[position];
                let order = Order {
                    deadline_ns: link.deadline_ns,
                    seq: record.seq,
                };
                if record.state == RecordState::Listed && order <= window {
                    found[count] = position as u8;
                    count += 1;
                }
            }
        }
        self.looks_left = self.looks_left.saturating_sub(looks);
        count
    }
}

/// A look at a record, after one at its deadline, takes as long as so many.
const LOOKS_PER_RECORD: usize = 2;
/// Of so many timers one is looked at for the sample.
const STRIDE: usize = if PAGE < 32 { PAGE } else { 32 };
/// That they lie apart costs more.
const LOOKS_PER_SAMPLED_PAGE: usize = 8 * (PAGE / STRIDE);
/// Timers in a sample, at most.
const SAMPLE: usize = 512;
/// Timers that are to be in the first window.
const FIRST_WINDOW: usize = 512;
