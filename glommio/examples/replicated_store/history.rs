//! What clients have seen of each register, and whether one register could have shown it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// All reads and writes so far.
#[derive(Default)]
pub(crate) struct History {
    /// Counts what begins and what ends.
    now: Cell<u64>,
    writes: RefCell<Vec<Write>>,
    reads: RefCell<Vec<Read>>,
}

struct Write {
    key: u64,
    value: u64,
    began: u64,
    ended: Option<u64>,
}

struct Read {
    key: u64,
    value: u64,
    began: u64,
    ended: u64,
}

/// When the operations on one value were: the end of the first of them that ended, and the start of the last one that
/// began. All of them took place at moments from one to the other, in some order.
struct Zone {
    ends_first: u64,
    begins_last: u64,
}

impl Zone {
    fn add(&mut self, began: u64, ended: u64) {
        self.ends_first = self.ends_first.min(ended);
        self.begins_last = self.begins_last.max(began);
    }

    /// The register has this value all the time between.
    fn is_forward(&self) -> bool {
        self.ends_first < self.begins_last
    }

    /// From the earlier one to the later one.
    fn span(&self) -> (u64, u64) {
        let (one, other) = (self.ends_first, self.begins_last);
        (one.min(other), one.max(other))
    }
}

impl History {
    /// A moment after all before.
    pub(crate) fn tick(&self) -> u64 {
        self.now.set(self.now.get() + 1);
        self.now.get()
    }

    pub(crate) fn write_begins(&self, key: u64, value: u64) -> usize {
        let began = self.tick();
        let mut writes = self.writes.borrow_mut();
        writes.push(Write {
            key,
            value,
            began,
            ended: None,
        });
        writes.len() - 1
    }

    pub(crate) fn write_ends(&self, number: usize) {
        self.writes.borrow_mut()[number].ended = Some(self.tick());
    }

    pub(crate) fn has_read(&self, key: u64, value: u64, began: u64) {
        let ended = self.tick();
        self.reads.borrow_mut().push(Read {
            key,
            value,
            began,
            ended,
        });
    }

    /// Whether the history is linearizable, where no two writes have the same value (Gibbons and Korach, *Testing Shared
    /// Memories*, SIAM Journal on Computing 1997, section 4).
    pub(crate) fn check(&self) -> Result<(), String> {
        // By key and value. Each register has the value zero first.
        let mut zones = BTreeMap::new();
        for it in &*self.writes.borrow() {
            let zone = Zone {
                ends_first: it.ended.unwrap_or(u64::MAX),
                begins_last: it.began,
            };
            zones.insert((it.key, it.value), zone);
        }
        for it in &*self.reads.borrow() {
            let zone = match zones.get_mut(&(it.key, it.value)) {
                Some(zone) => zone,
                None if it.value == 0 => zones.entry((it.key, 0)).or_insert(Zone {
                    ends_first: 0,
                    begins_last: 0,
                }),
                None => return Err(format!("{:#x} was read and never written", it.value)),
            };
            zone.add(it.began, it.ended);
        }
        for write in &*self.writes.borrow() {
            let zone = &zones[&(write.key, write.value)];
            if zone.ends_first < write.began {
                return Err(format!("{:#x} was read before it was written", write.value));
            }
        }
        for ((key, value), zone) in zones.iter().filter(|(_, zone)| zone.is_forward()) {
            let (start, end) = zone.span();
            let others = zones
                .iter()
                .filter(|(it, _)| it.0 == *key && it.1 != *value);
            for ((_, other), it) in others {
                let (from, to) = it.span();
                let is_broken = match it.is_forward() {
                    true => from < end && start < to,
                    false => start < from && to < end,
                };
                if is_broken {
                    return Err(format!(
                        "register {key}: {value:#x} was seen before and after {other:#x}"
                    ));
                }
            }
        }
        Ok(())
    }
}
