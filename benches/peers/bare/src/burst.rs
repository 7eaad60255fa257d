//! Tasks that end in their next poll: what it takes to poll and free them, without an executor or a timer queue.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use fastrand::Rng;
use workloads::machine::process_cpu;
use workloads::report;
use workloads::samples::nanoseconds;

const TASKS: usize = 100_000;
/// Between making and running them, so that no cache has them.
const PAUSE: Duration = Duration::from_millis(700);
/// How many tasks ahead the memory of one is asked for, and how much of it.
const AHEAD: usize = 8;
const LINES: usize = 3;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// `burst-cpu`, ms: 100,000 futures, each in a box of its own, do in a random order what the tasks of the case
/// `expire-burst` do when their timers have fired, and are dropped.
pub fn one_by_one() {
    report("burst-cpu", run(false));
}

/// `burst-ahead-cpu`, ms: the same, with the memory of each asked for before its turn.
pub fn asked_for_ahead() {
    report("burst-ahead-cpu", run(true));
}

/// The CPU time in ms.
fn run(is_asked_for: bool) -> f64 {
    let mut context = Context::from_waker(Waker::noop());
    let mut tasks = tasks(&mut context);
    Rng::with_seed(1).shuffle(&mut tasks);
    let addresses: Vec<*const ()> = tasks
        .iter()
        .map(|task| (&raw const **task).cast())
        .collect();
    std::thread::sleep(PAUSE);
    let before = process_cpu();
    for (nth, mut task) in tasks.into_iter().enumerate() {
        if is_asked_for && let Some(&soon) = addresses.get(nth + AHEAD) {
            prefetch(soon);
        }
        assert!(task.as_mut().poll(&mut context).is_ready());
    }
    nanoseconds(process_cpu() - before) / 1e6
}

/// As many, polled once.
fn tasks(context: &mut Context<'_>) -> Vec<Task> {
    let late_ns = Rc::new(RefCell::new(Vec::with_capacity(TASKS)));
    let due = Instant::now();
    (0..TASKS)
        .map(|_| {
            let late_ns = late_ns.clone();
            let mut task: Task = Box::pin(async move {
                // As large as a timer.
                let timer = black_box([0_u64; 8]);
                let mut is_due = false;
                poll_fn(|_| match std::mem::replace(&mut is_due, true) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                })
                .await;
                black_box(&timer);
                late_ns.borrow_mut().push(due.elapsed().as_nanos() as u64);
            });
            assert!(task.as_mut().poll(context).is_pending());
            task
        })
        .collect()
}

fn prefetch(address: *const ()) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..LINES {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = address.cast::<i8>().wrapping_add(64 * line);
        // SAFETY: a hint, which reads nothing, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, LINES);
}
