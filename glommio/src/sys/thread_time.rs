//! How much CPU time the calling thread has had.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};

use crate::clock;

/// What the kernel's scheduler says of the calling thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadTime {
    /// How long it had a CPU.
    pub(crate) on_cpu: Duration,
    /// How often it gave the CPU away of its own accord, since it had to wait.
    pub(crate) waits: libc::c_long,
}

impl ThreadTime {
    /// Two system calls. `None` where they are forbidden, and in a simulation: what they tell is never
    /// the same twice.
    pub(crate) fn now() -> Option<Self> {
        if clock::is_replaced() {
            return None;
        }
        // The usage tells both, but the time only as of the scheduler's last tick.
        let on_cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
        let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
        Some(ThreadTime {
            on_cpu: on_cpu.into(),
            waits: usage.voluntary_context_switches(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn now() -> ThreadTime {
        ThreadTime::now().expect("tests may ask")
    }

    #[test]
    fn computing_is_time_on_the_cpu() {
        let (started, before) = (Instant::now(), now());
        while now().on_cpu < before.on_cpu + Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        assert!(started.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn sleeping_is_a_wait_and_no_time_on_the_cpu() {
        let before = now();
        std::thread::sleep(Duration::from_millis(500));
        let after = now();
        assert!(after.waits > before.waits);
        assert!(after.on_cpu - before.on_cpu < Duration::from_millis(250));
    }
}
