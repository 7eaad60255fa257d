//! Semaphore, lock and mutex under random operations, against one model: units, first come, first
//! served, handed over when they are released. A lock is units of which a reader takes one and a
//! writer all.

use std::collections::VecDeque;

use glommio::sync::{
    Mutex, MutexGuard, Permit, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore,
};

use crate::common::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Semaphore,
    RwLock,
    Mutex,
}

enum Subject {
    Semaphore(Semaphore),
    RwLock(RwLock<u64>),
    Mutex(Mutex<u64>),
}

#[expect(dead_code, reason = "guards are held")]
enum Hold {
    Units(Permit<'static>),
    Read(RwLockReadGuard<'static, u64>),
    Write(RwLockWriteGuard<'static, u64>),
    Mutex(MutexGuard<'static, u64>),
}

impl Kind {
    /// All units that there are.
    fn total(self) -> u64 {
        match self {
            Kind::Semaphore => 4,
            Kind::RwLock => 1 << 32,
            Kind::Mutex => 1,
        }
    }

    fn subject(self) -> Subject {
        match self {
            Kind::Semaphore => Subject::Semaphore(Semaphore::new(self.total())),
            Kind::RwLock => Subject::RwLock(RwLock::new(0)),
            Kind::Mutex => Subject::Mutex(Mutex::new(0)),
        }
    }

    /// Some units that one asks for.
    fn units(self, random: u64) -> u64 {
        match self {
            Kind::Semaphore => random % (self.total() + 1),
            Kind::RwLock if !random.is_multiple_of(3) => 1,
            Kind::RwLock | Kind::Mutex => self.total(),
        }
    }
}

impl Subject {
    async fn hold(&'static self, units: u64) -> Result<Hold, GlommioError<()>> {
        Ok(match self {
            Subject::Semaphore(it) => Hold::Units(it.acquire_permit(units).await?),
            Subject::RwLock(it) if units == 1 => Hold::Read(it.read().await?),
            Subject::RwLock(it) => Hold::Write(it.write().await?),
            Subject::Mutex(it) => Hold::Mutex(it.lock().await?),
        })
    }

    fn try_hold(&'static self, units: u64) -> Result<Hold, GlommioError<()>> {
        Ok(match self {
            Subject::Semaphore(it) => Hold::Units(it.try_acquire_permit(units)?),
            Subject::RwLock(it) if units == 1 => Hold::Read(it.try_read()?),
            Subject::RwLock(it) => Hold::Write(it.try_write()?),
            Subject::Mutex(it) => Hold::Mutex(it.try_lock()?),
        })
    }

    fn close(&self) -> bool {
        match self {
            Subject::Semaphore(it) => it.close(),
            Subject::RwLock(it) => return it.close().is_ok(),
            Subject::Mutex(it) => it.close(),
        }
        true
    }
}

/// What should be.
#[derive(Default)]
struct Model {
    available: u64,
    is_closed: bool,
    waiting: VecDeque<(u64, u64)>,
    served: BTreeMap<u64, u64>,
}

impl Model {
    fn release(&mut self, units: u64) {
        self.available += units;
        self.serve();
    }

    fn serve(&mut self) {
        while let Some(&(id, units)) = self.waiting.front()
            && units <= self.available
        {
            self.available -= units;
            self.waiting.pop_front();
            self.served.insert(id, units);
        }
    }

    /// What a future gives up when it is done or dropped.
    fn leave(&mut self, id: u64) {
        self.waiting.retain(|&(waiting, _)| waiting != id);
        if let Some(units) = self.served.remove(&id) {
            self.available += units;
        }
        self.serve();
    }

    fn try_take(&mut self, units: u64) -> bool {
        let is_possible = !self.is_closed && self.waiting.is_empty() && units <= self.available;
        if is_possible {
            self.available -= units;
        }
        is_possible
    }
}

type Acquisition = Polled<'static, Result<Hold, GlommioError<()>>>;

pub struct Run {
    kind: Kind,
    subject: &'static Subject,
    model: Model,
    futures: BTreeMap<u64, (u64, Acquisition)>,
    holds: Vec<(u64, Hold)>,
    next: u64,
    numbers: Numbers,
}

impl Run {
    pub fn new(kind: Kind, seed: u64) -> Run {
        Run {
            kind,
            // Futures and hooks of wakers borrow it, and outlive each other.
            subject: Box::leak(Box::new(kind.subject())),
            model: Model {
                available: kind.total(),
                ..Model::default()
            },
            futures: BTreeMap::new(),
            holds: Vec::new(),
            next: 0,
            numbers: Numbers::new(seed),
        }
    }

    /// Does so many random operations, and checks after each.
    pub fn operate(&mut self, operations: u64) {
        for _ in 0..operations {
            let number = self.numbers.below(1 << 32);
            match number % 16 {
                0..=4 if self.futures.len() < 8 => self.start(self.kind.units(number >> 8)),
                5..=8 => self.poll_some(number >> 8),
                9..=10 => self.drop_some(number >> 8),
                11 => self.try_hold(self.kind.units(number >> 8)),
                12 => self.poll_woken(),
                _ => self.release_some(number >> 8),
            }
            self.check();
        }
    }

    fn start(&mut self, units: u64) {
        let (id, subject) = (self.next, self.subject);
        self.next += 1;
        let is_immediate = self.kind == Kind::Semaphore && units == 0 && !self.model.is_closed;
        let is_ready = is_immediate || self.model.is_closed || self.model.try_take(units);
        // On each wake: something that changes nothing, and sometimes a panic.
        let mut future = Polled::hooked(subject.hold(units), move || {
            drop(subject.try_hold(1));
            if id.is_multiple_of(7) {
                quiet_panic();
            }
        });
        match future.poll() {
            Poll::Ready(result) => {
                assert!(is_ready, "it was to wait");
                assert_eq!(result.is_err(), self.model.is_closed);
                self.holds.extend(result.ok().map(|hold| (units, hold)));
            }
            Poll::Pending => {
                assert!(!is_ready, "it was not to wait");
                self.model.waiting.push_back((id, units));
                self.model.serve();
                self.futures.insert(id, (units, future));
            }
        }
    }

    fn some(&self, number: u64) -> Option<u64> {
        let at = number as usize % self.futures.len().max(1);
        self.futures.keys().copied().nth(at)
    }

    fn poll_some(&mut self, number: u64) {
        let Some(id) = self.some(number) else { return };
        let (units, future) = self.futures.get_mut(&id).unwrap();
        if number.is_multiple_of(5) {
            future.change_waker();
        }
        let polled = future.poll();
        let is_served = self.model.served.contains_key(&id);
        assert_eq!(polled.is_ready(), is_served || self.model.is_closed);
        let Poll::Ready(result) = polled else { return };
        assert_eq!(result.is_err(), self.model.is_closed);
        match result {
            Ok(hold) => {
                self.model.served.remove(&id);
                self.holds.push((*units, hold));
            }
            Err(_) => self.model.leave(id),
        }
        self.futures.remove(&id);
    }

    fn poll_woken(&mut self) {
        let woken = self.futures.iter().position(|(_, (_, it))| it.is_woken());
        if let Some(at) = woken {
            self.poll_some(at as u64);
        }
    }

    fn drop_some(&mut self, number: u64) {
        if let Some(id) = self.some(number) {
            self.futures.remove(&id);
            self.model.leave(id);
        }
    }

    fn release_some(&mut self, number: u64) {
        if !self.holds.is_empty() {
            let (units, hold) = self.holds.swap_remove(number as usize % self.holds.len());
            drop(hold);
            self.model.release(units);
        }
    }

    fn try_hold(&mut self, units: u64) {
        let hold = self.subject.try_hold(units);
        assert_eq!(hold.is_ok(), self.model.try_take(units));
        self.holds.extend(hold.ok().map(|hold| (units, hold)));
    }

    /// All that should have been woken was.
    fn check(&self) {
        if let Subject::Semaphore(semaphore) = self.subject {
            assert_eq!(semaphore.available(), self.model.available);
        }
        for (id, (_, future)) in &self.futures {
            let has_news = self.model.is_closed || self.model.served.contains_key(id);
            assert!(future.is_woken() || !has_news, "a wake-up was lost");
        }
    }

    /// Closes it and ends.
    pub fn close(mut self) {
        if self.kind == Kind::RwLock && !self.holds.is_empty() {
            assert!(!self.subject.close());
            while !self.holds.is_empty() {
                self.release_some(0);
                self.check();
            }
        }
        assert!(self.subject.close());
        self.model.is_closed = true;
        self.model.waiting.clear();
        self.check();
        self.operate(100);
        while !self.futures.is_empty() {
            self.poll_woken();
        }
    }
}

/// One seed.
pub fn run(kind: Kind, seed: u64, operations: u64) {
    let mut run = Run::new(kind, seed);
    run.operate(operations);
    run.close();
}
