//! Values whose destructors count, and some of which panic.

use std::sync::atomic::AtomicI64;

use crate::common::prelude::*;

/// How many of them are alive.
#[derive(Clone, Default)]
pub struct Alive(Arc<AtomicI64>);

impl Alive {
    pub fn payload(&self, number: u64) -> Payload {
        self.0.fetch_add(1, Ordering::Relaxed);
        Payload {
            number,
            alive: self.0.clone(),
        }
    }

    pub fn count(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Panics when it is dropped, if its number is a multiple of 5.
pub struct Payload {
    pub number: u64,
    alive: Arc<AtomicI64>,
}

impl Clone for Payload {
    fn clone(&self) -> Self {
        Alive(self.alive.clone()).payload(self.number)
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
        if self.number.is_multiple_of(5) && !std::thread::panicking() {
            quiet_panic();
        }
    }
}

/// Does something in which a payload may be dropped.
pub fn dropping<R>(f: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(f)).ok()
}

/// Panics whenever it is dropped, also while another panic unwinds.
#[derive(Clone)]
pub struct Bomb(pub Rc<Cell<u32>>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        quiet_panic();
    }
}
