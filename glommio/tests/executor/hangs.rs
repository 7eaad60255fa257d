//! What hung or starved with 0.9, one test for each report, named after its symptom.
//!
//! Slices last an hour here unless a test is about short ones, and none of these tests measures
//! time: what waits for the end of a slice where something else should have ended its wait is met
//! by the watchdog. More of the kind, in bulk: foreign wakes in `storms.rs`, sleeps in
//! `sleeping.rs`.

use futures_lite::future::FutureExt;

use crate::common::prelude::*;
use crate::faults::forbid;
use crate::storms::Counter;

const AN_HOUR: Duration = Duration::from_secs(3600);

fn queue(shares: usize) -> TaskQueueHandle {
    executor().create_task_queue(Shares::Static(shares), Latency::NotImportant, "a queue")
}

#[run_test]
fn run_hung_with_a_preempt_timer_of_one_nanosecond() {
    let executor = with_slices_of(Duration::from_nanos(1));
    for _ in 0..1000 {
        executor.run(async {});
    }
}

#[run_test]
fn an_executor_preempted_before_any_task_ran_went_to_sleep() {
    for slice in [Duration::ZERO, Duration::from_nanos(1), AN_HOUR] {
        let executor = with_slices_of(slice);
        // A wake from elsewhere asks for preemption before the first task of the next run has its
        // turn.
        let parking = Parking::default();
        executor.run(async {
            spawn_local(parking.clone()).detach();
            for _ in 0..3 {
                spawn_local(async {
                    loop {
                        yield_now().await;
                    }
                })
                .detach();
            }
        });
        let waker = parking.waker().expect("spawned tasks are polled at once");
        for _ in 0..1000 {
            thread::scope(|scope| {
                scope.spawn(|| waker.wake_by_ref());
            });
            executor.run(async {});
            executor.run(yield_now());
        }
    }
}

/// Starts tasks that are never idle.
type KeepBusy = fn() -> Vec<Task<()>>;

fn in_a_queue_of_its_own(busy: impl Future<Output = ()> + 'static) -> Task<()> {
    spawn_in(queue(1000), busy)
}

fn yields_the_queue() -> Vec<Task<()>> {
    vec![in_a_queue_of_its_own(async {
        loop {
            executor().yield_task_queue_now().await;
        }
    })]
}

fn yields_to_its_queue() -> Vec<Task<()>> {
    let busy = async || loop {
        yield_now().await;
    };
    vec![spawn_local(busy()), in_a_queue_of_its_own(busy())]
}

/// Each task wakes the next; none wakes itself.
fn wake_each_other() -> Vec<Task<()>> {
    let wakers: Rc<[Cell<Option<Waker>>; 3]> = Rc::default();
    let is_started = Rc::new(Cell::new(0));
    let ring = |me: usize| {
        let (wakers, is_started) = (Rc::clone(&wakers), Rc::clone(&is_started));
        poll_fn(move |cx| {
            wakers[me].set(Some(cx.waker().clone()));
            is_started.set(is_started.get() + 1);
            if is_started.get() >= wakers.len()
                && let Some(next) = wakers[(me + 1) % wakers.len()].take()
            {
                next.wake();
            }
            Poll::<()>::Pending
        })
    };
    (0..3).map(|me| spawn_local(ring(me))).collect()
}

/// The queue is never empty, though no task runs twice.
fn spawn_their_successors() -> Vec<Task<()>> {
    struct Successor(Rc<Cell<bool>>);
    impl Drop for Successor {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    fn successor(is_over: Rc<Cell<bool>>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            if !is_over.get() {
                spawn_in(executor().current_task_queue(), successor(is_over)).detach();
            }
        })
    }
    let is_over = Rc::new(Cell::new(false));
    spawn_in(queue(1000), successor(Rc::clone(&is_over))).detach();
    vec![spawn_local(async move {
        let _ends = Successor(is_over);
        pending().await
    })]
}

/// Computes, asks, and yields when it is told to.
fn yields_if_needed() -> Vec<Task<()>> {
    vec![in_a_queue_of_its_own(async {
        loop {
            (0..100).for_each(|_| std::hint::spin_loop());
            yield_if_needed().await;
        }
    })]
}

/// Computes without an `await` for as long as it may.
fn spins_until_preempted() -> Vec<Task<()>> {
    vec![in_a_queue_of_its_own(async {
        loop {
            spin_until_preempted();
            yield_now().await;
        }
    })]
}

const QUEUE_YIELDERS: [KeepBusy; 1] = [yields_the_queue];
const SELF_WAKERS: [KeepBusy; 3] = [yields_to_its_queue, wake_each_other, spawn_their_successors];
const COOPERATIVE: [KeepBusy; 2] = [yields_if_needed, spins_until_preempted];

/// Awaits what `wait` makes, ten times, beside each kind of busy tasks. Each time it comes to an
/// end although no slice does.
fn beside<F: Future<Output = ()>>(kinds: &[KeepBusy], wait: impl Fn() -> F) {
    let _watchdog = watchdog();
    for keep_busy in kinds {
        with_slices_of(AN_HOUR).run(async {
            let _busy = keep_busy();
            for _ in 0..10 {
                wait().await;
            }
        });
    }
}

/// Waits for a byte that another thread sends once this task is asleep.
async fn wait_for_io() {
    let (listener, address) = bound().expect("a port is free");
    let may_send = Arc::new(AtomicBool::new(false));
    let waits = Arc::clone(&may_send);
    let peer = thread::spawn(move || {
        let mut peer = std::net::TcpStream::connect(address).expect("the listener is bound");
        wait_until(|| waits.load(Ordering::SeqCst));
        std::io::Write::write_all(&mut peer, b"!").expect("the peer is there");
    });
    let mut stream = listener.accept().await.expect("the thread connects");
    let mut byte = [0];
    let mut read = Box::pin(stream.read(&mut byte));
    poll_fn(|cx| {
        let read = read.poll(cx);
        // Not before: what is there at the first poll is read without asking the ring.
        may_send.store(true, Ordering::SeqCst);
        read
    })
    .await
    .expect("the byte arrives");
    peer.join().expect("it has sent");
}

/// Waits for a wake that another thread gives once this task is asleep.
async fn wait_for_a_foreign_wake() {
    let is_open = Arc::new(AtomicBool::new(false));
    let mut thread = None;
    poll_fn(|cx| {
        if is_open.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        let (waker, opens) = (cx.waker().clone(), Arc::clone(&is_open));
        thread.get_or_insert_with(|| {
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(1));
                opens.store(true, Ordering::SeqCst);
                waker.wake();
            })
        });
        Poll::Pending
    })
    .await;
    let thread = thread.expect("no other thread opens");
    thread.join().expect("it only wakes");
}

async fn wait_for_a_timer() {
    sleep(Duration::from_millis(1)).await;
}

async fn wait_for_a_blocking_call() {
    executor()
        .spawn_blocking(|| thread::sleep(Duration::from_millis(1)))
        .await;
}

/// 0.9 let the yielding queue run on until the preempt timer, some 1,000,000 yields. Each counts
/// for 10 µs at least, so that only so many make up for a turn of the other queue.
#[run_test]
fn yield_task_queue_now_in_a_loop_starved_other_queues() {
    const LEAST: Duration = Duration::from_micros(10);
    for shares in [1000, 100] {
        with_slices_of(AN_HOUR).run(async {
            let has_run = Rc::new(Cell::new(false));
            let runs = Rc::clone(&has_run);
            let _other = spawn_local_into(
                async move {
                    loop {
                        let started = Instant::now();
                        runs.set(true);
                        while started.elapsed() < Duration::from_millis(2) {
                            std::hint::spin_loop();
                        }
                        executor().yield_task_queue_now().await;
                    }
                },
                queue(shares),
            );
            let mut bound = u128::MAX;
            for _ in 0..20 {
                let mut yields = 0;
                // At least what the other turn counts for, also if the thread has lost its CPU between both.
                let turn = loop {
                    let yielded = Instant::now();
                    executor().yield_task_queue_now().await;
                    yields += 1;
                    if has_run.take() {
                        break yielded.elapsed();
                    }
                };
                assert!(yields <= bound, "{yields} yields, at most {bound}");
                let weighted = turn.as_nanos() * 1000 / shares as u128;
                bound = weighted / LEAST.as_nanos() + 2;
            }
        });
    }
}

#[test]
fn yield_task_queue_now_in_a_loop_starved_io() {
    beside(&QUEUE_YIELDERS, wait_for_io);
}

#[test]
fn yield_task_queue_now_in_a_loop_starved_timers_and_wakes() {
    beside(&QUEUE_YIELDERS, wait_for_a_timer);
    beside(&QUEUE_YIELDERS, wait_for_a_foreign_wake);
    beside(&QUEUE_YIELDERS, wait_for_a_blocking_call);
}

#[test]
fn self_waking_tasks_starved_timers() {
    beside(&SELF_WAKERS, wait_for_a_timer);
}

#[test]
fn self_waking_tasks_starved_io() {
    beside(&SELF_WAKERS, wait_for_io);
}

#[test]
fn self_waking_tasks_starved_foreign_wakes() {
    beside(&SELF_WAKERS, wait_for_a_foreign_wake);
    beside(&SELF_WAKERS, wait_for_a_blocking_call);
}

#[test]
fn a_foreign_wake_to_a_busy_executor_waited_for_the_preempt_timer() {
    beside(&COOPERATIVE, wait_for_a_foreign_wake);
    beside(&COOPERATIVE, wait_for_a_blocking_call);
}

#[test]
fn timers_and_io_of_a_busy_executor_waited_for_the_preempt_timer() {
    beside(&COOPERATIVE, wait_for_a_timer);
    beside(&COOPERATIVE, wait_for_io);
}

/// 0.9 registered its process for `membarrier` before its first sleep, which takes 30 to 80 ms once
/// there are threads. Nothing of the kind can be late that does not happen.
#[run_test(in_child)]
fn the_first_sleep_of_a_process_was_late_by_its_setup() {
    forbid(libc::SYS_membarrier);
    glommio::early_init();
    let counter = Arc::new(Counter::default());
    let hunter = Arc::clone(&counter);
    let thread = thread::spawn(move || hunter.hunt(100));
    LocalExecutor::default().run(async {
        sleep(Duration::from_millis(1)).await;
        counter.serve(100).await;
        executor().spawn_blocking(|| ()).await;
    });
    thread.join().expect("all were answered");
}

#[run_test]
fn a_foreign_wake_was_lost_on_an_executor_going_to_sleep() {
    let counter = Arc::new(Counter::default());
    let hunter = Arc::clone(&counter);
    let thread = thread::spawn(move || hunter.hunt(20_000));
    with_slices_of(AN_HOUR).run(counter.serve(20_000));
    thread.join().expect("all were answered");
}

/// Two executors hand numbers over; one of them sleeps before each.
fn hand_over(producer_naps: Duration, consumer_naps: Duration) {
    const ROUNDS: usize = 30;
    let _watchdog = watchdog();
    let counter = Arc::new(Counter::default());
    let raising = Arc::clone(&counter);
    let producer = spawn_executor(move || async move {
        for _ in 0..ROUNDS {
            sleep(producer_naps).await;
            raising.raise();
        }
    });
    LocalExecutor::default().run(async {
        for round in 0..ROUNDS {
            sleep(consumer_naps).await;
            poll_fn(|cx| counter.poll_beyond(round, cx)).await;
        }
    });
    producer.join().expect("it ends in good order");
}

#[test]
fn a_consumer_hung_whose_producer_went_to_sleep_first() {
    hand_over(Duration::from_millis(3), Duration::from_micros(1));
}

#[test]
fn a_consumer_hung_that_went_to_sleep_before_its_producer() {
    hand_over(Duration::from_micros(1), Duration::from_millis(3));
}

#[run_test(in_child)]
fn a_panic_in_spawn_blocking_hung_its_caller_and_broke_the_pool() {
    for size in [1, 3] {
        let before = threads();
        let executor = LocalExecutorBuilder::default()
            .blocking_thread_pool_placement(PoolPlacement::Unbound(size))
            .make()
            .expect("an executor");
        // As many as there are threads, one after the other and at once, and more.
        for at_once in [1, size, 3 * size] {
            for _ in 0..size + 1 {
                let heard = executor.run(async {
                    let calls: Vec<_> = (0..at_once).map(|_| panic_in_the_pool()).collect();
                    let mut heard = 0;
                    for call in calls {
                        heard += call.await;
                    }
                    heard
                });
                assert_eq!(heard, at_once);
            }
        }
        assert!(threads() <= before + size, "no thread was replaced");
        let call = async { glommio::executor().spawn_blocking(|| "alive").await };
        assert_eq!(executor.run(call), "alive");
        drop(executor);
        wait_until(|| threads() == before);
    }
}

/// One, once the panic of a blocking call came out where it is awaited.
fn panic_in_the_pool() -> Task<usize> {
    spawn_local(async {
        let call = executor().spawn_blocking(|| panic!("in the pool"));
        let payload = std::panic::AssertUnwindSafe(call)
            .catch_unwind()
            .await
            .expect_err("the call panics");
        usize::from(payload.downcast_ref() == Some(&"in the pool"))
    })
}

#[run_test]
fn run_hung_after_a_caught_panic() {
    let executor = LocalExecutor::default();
    let other = executor.run(async { queue(1000) });
    for queue in [TaskQueueHandle::default(), other] {
        // The panic finds the queue in the middle of its turn, with tasks behind the one that
        // panics.
        let progress = Rc::new(Cell::new(0));
        let moves = Rc::clone(&progress);
        let message = panic_of(|| {
            executor.run(async {
                let panics = spawn_local_into(async { panic!("caught") }, queue);
                let behind = async move {
                    loop {
                        moves.set(moves.get() + 1);
                        yield_now().await;
                    }
                };
                let behind = spawn_in(queue, behind);
                panics.expect("it exists").detach();
                behind.detach();
                pending::<()>().await;
            });
        });
        assert_eq!(message, "caught");
        let before = progress.get();
        executor.run(async {
            while progress.get() < before + 3 {
                sleep(Duration::from_micros(10)).await;
            }
            spawn_in(queue, async {}).await;
        });
    }
}

/// More reads wait than the ring takes at once: first each for a byte that another task sends when
/// it got its own, and then all of them for nothing, with one more behind them that gets what it
/// waits for.
#[run_test]
fn an_executor_slept_with_requests_that_it_had_not_submitted() {
    const CONNECTIONS: usize = 50;
    const ROUNDS: usize = 20;
    for ring_depth in 1..=4 {
        let executor = LocalExecutorBuilder::default()
            .ring_depth(ring_depth)
            .make()
            .expect("an executor");
        executor.run(async {
            let (listener, address) = bound().expect("a port is free");
            let mut tasks = Vec::new();
            for _ in 0..CONNECTIONS {
                let client = TcpStream::connect(address).await.expect("it listens");
                let server = listener.accept().await.expect("there is one");
                tasks.push(spawn_local(bounce(client, ROUNDS, true)));
                tasks.push(spawn_local(bounce(server, ROUNDS, false)));
            }
            let mut idle = Vec::new();
            for task in tasks {
                let mut stream = task.await;
                idle.push(spawn_local(async move { stream.read(&mut [0]).await }));
            }
            wait_for_io().await;
        });
    }
}

/// Reads and writes a byte in turns, beginning with a write if it `serves`. Each read has a
/// timeout.
async fn bounce(mut stream: TcpStream, rounds: usize, serves: bool) -> TcpStream {
    let timeout = stream.set_read_timeout(Some(AN_HOUR));
    timeout.expect("an hour is a timeout");
    let mut ball = [0];
    for _ in 0..rounds {
        if serves {
            stream.write_all(&ball).await.expect("the peer is there");
        }
        stream
            .read_exact(&mut ball)
            .await
            .expect("the peer returns it");
        if !serves {
            stream.write_all(&ball).await.expect("the peer is there");
        }
    }
    stream
}
