//! Tasks that wake themselves while they are polled: those that yield, and those that the
//! cooperative budget refuses.

use glommio::consume_budget;

use crate::common::prelude::*;

/// How a task wakes itself.
#[derive(Clone, Copy, Debug)]
enum Way {
    YieldNow,
    YieldOfOthers,
    YieldIfNeeded,
    YieldQueue,
    Budget,
}

const WAYS: [Way; 5] = [
    Way::YieldNow,
    Way::YieldOfOthers,
    Way::YieldIfNeeded,
    Way::YieldQueue,
    Way::Budget,
];

impl Way {
    /// Computes for `stretch` and wakes itself, for ever.
    async fn go_on(self, stretch: Duration) {
        loop {
            let begun = Instant::now();
            while begun.elapsed() < stretch {
                std::hint::spin_loop();
            }
            match self {
                Way::YieldNow => executor().yield_now().await,
                Way::YieldOfOthers => futures_lite::future::yield_now().await,
                Way::YieldIfNeeded => yield_if_needed().await,
                Way::YieldQueue => executor().yield_task_queue_now().await,
                Way::Budget => consume_budget().await,
            }
        }
    }
}

/// A task in the default queue, as the main future is. `polled` is called as each of its polls
/// begins.
fn spawn(polled: impl Fn() + 'static, future: impl Future<Output = ()> + 'static) -> Task<()> {
    let mut future: Pin<Box<dyn Future<Output = ()>>> = Box::pin(future);
    let polled = poll_fn(move |cx| {
        polled();
        future.as_mut().poll(cx)
    });
    spawn_in(TaskQueueHandle::default(), polled)
}

#[test]
fn a_due_timer_waits_for_no_task_of_its_queue_that_has_woken_itself() {
    for way in WAYS {
        let stretch = match way {
            Way::Budget => Duration::ZERO,
            _ => Duration::from_micros(500),
        };
        for tasks in [1, 5] {
            let least = run(async {
                let due = Rc::new(Cell::new(None::<Instant>));
                let polls_since = Rc::new(Cell::new(0));
                let _busy: Vec<_> = (0..tasks)
                    .map(|_| {
                        let (due, polls_since) = (Rc::clone(&due), Rc::clone(&polls_since));
                        let polled = move || {
                            if due.get().is_some_and(|due| due <= Instant::now()) {
                                polls_since.set(polls_since.get() + 1);
                            }
                        };
                        spawn(polled, way.go_on(stretch))
                    })
                    .collect();
                let mut least = u32::MAX;
                for _ in 0..20 {
                    let wait = Duration::from_millis(2);
                    let timer = Timer::new(wait);
                    due.set(Some(Instant::now() + wait));
                    timer.await;
                    due.set(None);
                    // A poll may begin at the very moment at which the timer comes due.
                    least = least.min(polls_since.take());
                }
                least
            });
            assert_eq!(least, 0, "polls of {tasks} tasks, {way:?}");
        }
    }
}

/// One of the two is runnable, always.
struct Pair {
    turn: Cell<usize>,
    wakers: [RefCell<Option<Waker>>; 2],
}

impl Pair {
    /// One of them: waits for its turn, and hands it on.
    async fn play(self: Rc<Self>, me: usize) {
        loop {
            poll_fn(|cx| {
                if self.turn.get() == me {
                    return Poll::Ready(());
                }
                *self.wakers[me].borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            })
            .await;
            self.turn.set(1 - me);
            if let Some(other) = self.wakers[1 - me].take() {
                other.wake();
            }
        }
    }
}

#[test]
fn tasks_that_wake_themselves_have_turns_beside_those_that_wake_each_other() {
    for (pairs, yielding) in [(1, 1), (1, 100), (10, 1), (10, 100), (100, 10)] {
        run(async {
            let all = Rc::new(Cell::new(0));
            let mut tasks = Vec::new();
            for _ in 0..pairs {
                let pair = Rc::new(Pair {
                    turn: Cell::new(0),
                    wakers: Default::default(),
                });
                for me in [0, 1] {
                    let all = Rc::clone(&all);
                    let polled = move || all.set(all.get() + 1);
                    tasks.push(spawn(polled, Rc::clone(&pair).play(me)));
                }
            }
            let polls: Vec<Rc<Cell<u32>>> = (0..yielding).map(|_| Rc::default()).collect();
            for polls in &polls {
                let (polls, all) = (Rc::clone(polls), Rc::clone(&all));
                let polled = move || {
                    polls.set(polls.get() + 1);
                    all.set(all.get() + 1);
                };
                tasks.push(spawn(polled, Way::YieldNow.go_on(Duration::ZERO)));
            }
            const TURNS: u32 = 200;
            while all.get() < TURNS * (pairs + yielding) {
                executor().yield_now().await;
            }
            // Served in the order in which they came, all would have had as many turns.
            for polls in polls.iter().map(|it| it.get()) {
                assert!(
                    (TURNS / 10..=TURNS + 10).contains(&polls),
                    "{polls} polls, {yielding} tasks beside {pairs} pairs"
                );
            }
        });
    }
}
