//! What the scheduler counts instead of looking at each queue.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::*;
use crate::shares::{Latency, Shares};
use crate::timer::sleep;

thread_local! {
    /// Comparisons made by this thread.
    static COMPARED: Cell<u32> = const { Cell::new(0) };
}

impl Core {
    /// Between two turns: compares what is counted with what a look at each of the queues finds.
    pub(super) fn compare_with_scan(&self) {
        let queues = self.queues.all();
        let runnable: u64 = queues.iter().map(|it| it.runnable()).sum();
        assert_eq!(self.progress.runnable(), runnable);
        let epoch = self.progress.epoch();
        let expected: u64 = queues.iter().map(|it| it.queued_before(epoch)).sum();
        assert_eq!(self.progress.expected(), expected);
        let default = self.queues.slices().default();
        let slices = queues
            .iter()
            .filter(|it| it.is_active.get())
            .map(|it| match it.latency() {
                Latency::Matters(latency) => latency,
                Latency::NotImportant => default,
            });
        let least = slices.min().unwrap_or(default);
        assert_eq!(self.queues.least_slice(), least);
        COMPARED.set(COMPARED.get() + 1);
    }
}

/// Numbers that look random and are the same in every run (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[test]
fn what_is_counted_is_what_a_look_at_each_queue_finds() {
    const TASKS: usize = 60;
    let executor = LocalExecutorBuilder::default()
        .preempt_timer(Duration::from_micros(300))
        .make()
        .expect("io_uring is there");
    executor.run(async {
        let latencies = [50, 200, 200, 1000].map(|us| Latency::Matters(Duration::from_micros(us)));
        let queues: Vec<_> = latencies
            .into_iter()
            .chain([Latency::NotImportant; 4])
            .enumerate()
            .map(|(i, latency)| {
                let shares = Shares::Static(if i % 3 == 0 { 1 } else { 1000 });
                super::executor().create_task_queue(shares, latency, "")
            })
            .collect();
        let parked: Rc<RefCell<Vec<Waker>>> = Rc::default();
        let tasks: Vec<_> = (0..TASKS)
            .map(|seed| {
                let (parked, queue) = (Rc::clone(&parked), queues[seed % queues.len()]);
                let mut numbers = Numbers(seed as u64);
                let work = async move {
                    for _ in 0..200 {
                        match numbers.below(8) {
                            0 => sleep(Duration::from_micros(numbers.below(300) as u64)).await,
                            1 => super::executor().spawn_blocking(|| ()).await,
                            2 => super::executor().yield_task_queue_now().await,
                            3 => parked.borrow_mut().drain(..).for_each(Waker::wake),
                            4 if parked.borrow().len() < TASKS / 2 => {
                                let mut is_parked = false;
                                poll_fn(|cx| {
                                    if std::mem::replace(&mut is_parked, true) {
                                        return Poll::Ready(());
                                    }
                                    parked.borrow_mut().push(cx.waker().clone());
                                    Poll::Pending
                                })
                                .await;
                            }
                            5 => drop(spawn_local(sleep(Duration::from_secs(1)))),
                            _ => super::executor().yield_now().await,
                        }
                    }
                };
                spawn_local_into(work, queue).expect("it was just made")
            })
            .collect();
        for task in tasks {
            // The last tasks may wait for others that have ended.
            let waker = spawn_local({
                let parked = Rc::clone(&parked);
                async move {
                    loop {
                        sleep(Duration::from_millis(1)).await;
                        parked.borrow_mut().drain(..).for_each(Waker::wake);
                    }
                }
            });
            task.await;
            drop(waker);
        }
    });
    assert!(COMPARED.get() > 100, "{} turns", COMPARED.get());
}

#[test]
fn a_task_that_panics_upsets_no_count() {
    let executor = LocalExecutor::default();
    for _ in 0..3 {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            executor.run(async {
                let queue = TaskQueueHandle::default();
                let others =
                    [(); 3].map(|()| spawn_local_into(sleep(Duration::from_millis(1)), queue));
                let panics = async {
                    sleep(Duration::from_millis(1)).await;
                    panic!("on purpose");
                };
                let panics = spawn_local_into(panics, queue).expect("it exists");
                for other in others {
                    other.expect("it exists").detach();
                }
                panics.await
            })
        }));
        assert!(panicked.is_err());
        executor.run(sleep(Duration::from_millis(3)));
    }
}
