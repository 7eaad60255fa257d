//! Statistics: what is counted, for which queue, and until when.

use std::io::{Read, Write};

use glommio::{RingIoStats, TaskQueueStats};

use crate::common::prelude::*;

fn queue() -> TaskQueueHandle {
    executor().create_task_queue(Shares::default(), Latency::NotImportant, "a queue")
}

/// Sets everything back to zero.
fn reset() {
    executor().executor_stats();
    executor().all_task_queue_stats(Vec::new());
}

fn runtime_of(queue: TaskQueueHandle) -> Duration {
    let stats = executor().task_queue_stats(queue).expect("it exists");
    stats.runtime()
}

#[run_test]
fn computing_is_counted_and_sleeping_is_not() {
    for spin in [Duration::ZERO, Duration::from_millis(500)] {
        let handle = LocalExecutorBuilder::new(Placement::Fixed(0))
            .spin_before_park(spin)
            .spawn(|| async {
                let stats = executor().executor_stats();
                assert_eq!(
                    stats.total_runtime(),
                    Duration::ZERO,
                    "right after the start"
                );
                assert_eq!(stats.executor_runtime(), Duration::ZERO);
                compute(Duration::from_millis(200));
                executor().yield_task_queue_now().await;
                let stats = executor().executor_stats();
                assert!(stats.total_runtime() >= Duration::from_millis(200));
                assert!(stats.executor_runtime() >= Duration::from_millis(200));
                // A machine that stands still in the middle of a turn makes that turn long.
                let is_not_counted = async || {
                    sleep(Duration::from_secs(1)).await;
                    executor().executor_stats().total_runtime() < Duration::from_millis(400)
                };
                let mut attempts = 1;
                while !is_not_counted().await {
                    attempts += 1;
                    assert!(attempts <= 10, "sleeping or spinning is counted");
                }
            })
            .expect("CPU 0 exists");
        handle.join().expect("it ends in good order");
    }
}

#[run_test]
async fn the_executor_polls_between_rounds_and_that_is_counted_too() {
    reset();
    // Each ends its round: a slice is over then.
    for _ in 0..3 {
        compute(Duration::from_millis(101));
        executor().yield_task_queue_now().await;
    }
    let stats = executor().executor_stats();
    assert!(stats.executor_runtime() >= Duration::from_millis(303));
    assert!(stats.total_runtime() > stats.executor_runtime());
}

#[test]
fn the_time_of_queues_that_compete_is_divided_without_a_rest() {
    let started = Instant::now();
    run(async move {
        let totals = [(); 3].map(|()| Rc::new(Cell::new(Duration::ZERO)));
        let queues = [(); 3].map(|()| queue());
        reset();
        let tasks: Vec<_> = queues
            .into_iter()
            .zip(&totals)
            .map(|(queue, total)| {
                let total = Rc::clone(total);
                let work = async move {
                    for _ in 0..20 {
                        let started = Instant::now();
                        compute(Duration::from_millis(2));
                        total.set(total.get() + started.elapsed());
                        executor().yield_task_queue_now().await;
                    }
                };
                spawn_in(queue, work)
            })
            .collect();
        join_all(tasks).await;
        let all = executor().all_task_queue_stats(Vec::new());
        let stats = executor().executor_stats();
        assert!(stats.total_runtime() <= started.elapsed());
        let sum: Duration = all.iter().map(TaskQueueStats::runtime).sum();
        assert_eq!(sum, stats.executor_runtime());
        for (queue, total) in queues.into_iter().zip(&totals) {
            let stats = all.iter().find(|stats| stats.index() == queue);
            let stats = stats.expect("it exists");
            assert!(stats.runtime() >= total.get(), "{stats:?} for {total:?}");
            assert!(stats.queue_selected() >= 20);
        }
    });
}

/// A waker that takes [`LONG`].
struct Slow;

const LONG: Duration = Duration::from_millis(200);

impl Wake for Slow {
    fn wake(self: Arc<Self>) {
        compute(LONG);
    }
}

#[run_test]
fn queues_that_compete_do_not_pay_for_what_the_loop_does() {
    let executor = LocalExecutor::default();
    let other = executor.run(async { queue() });
    // One of the queues that compete may have its turn while the machine stands still.
    let is_fair = || executor.run(loop_takes_long_beside(other));
    assert!(std::iter::repeat_with(is_fair).take(5).any(|it| it));
}

/// Whether what a slow waker takes, called by the loop, is nothing that a queue has run.
async fn loop_takes_long_beside(other: TaskQueueHandle) -> bool {
    let waker = Waker::from(Arc::new(Slow));
    let mut timer = Timer::new(Duration::from_secs(3600));
    let polled = pin!(&mut timer).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    let is_over = Rc::new(Cell::new(false));
    let until = Rc::clone(&is_over);
    let competitor = async move {
        while !until.get() {
            executor().yield_task_queue_now().await;
        }
    };
    let competitor = spawn_in(other, competitor);
    reset();
    timer.reset(Duration::from_millis(1));
    let is_fair = loop {
        executor().yield_task_queue_now().await;
        let stats = executor().executor_stats();
        let ran = stats.executor_runtime();
        if ran >= LONG || stats.total_runtime() - ran >= LONG {
            break ran < LONG;
        }
    };
    is_over.set(true);
    competitor.await;
    is_fair
}

#[run_test]
async fn turns_and_polls_are_counted_one_by_one() {
    let default = TaskQueueHandle::default();
    reset();
    for _ in 0..100 {
        executor().yield_task_queue_now().await;
    }
    let (stats, queue) = (
        executor().executor_stats(),
        executor().task_queue_stats(default).expect("it exists"),
    );
    assert_eq!(stats.tasks_executed(), 100);
    assert_eq!(queue.queue_selected(), 100);
    assert!(stats.scheduler_runs() >= 100);
    for _ in 0..100 {
        executor().yield_now().await;
    }
    let (stats, queue) = (
        executor().executor_stats(),
        executor().task_queue_stats(default).expect("it exists"),
    );
    assert_eq!(stats.tasks_executed(), 100);
    assert!(
        queue.queue_selected() < 100,
        "in one turn there are several"
    );
    assert!(stats.scheduler_runs() >= queue.queue_selected());
}

#[run_test]
async fn the_scheduler_also_looks_in_vain() {
    let mut looks_in_vain = 0;
    for _ in 0..1000 {
        reset();
        sleep(Duration::from_millis(1)).await;
        let stats = executor().executor_stats();
        // None if the sleep was over before it was polled; and none in vain if it was before
        // the turn ended.
        assert!(stats.tasks_executed() <= 1, "{stats:?}");
        looks_in_vain += stats.scheduler_runs() - stats.tasks_executed();
        if looks_in_vain >= 10 {
            return;
        }
    }
    panic!("{looks_in_vain} looks in vain in a thousand sleeps");
}

#[run_test]
async fn the_poll_inside_spawn_local_is_not_counted() {
    reset();
    let has_run = Rc::new(Cell::new(false));
    let mark = Rc::clone(&has_run);
    spawn_local(async move { mark.set(true) }).detach();
    assert!(has_run.get());
    assert_eq!(executor().executor_stats().tasks_executed(), 0);
    let queued = async {};
    let task = spawn_in(TaskQueueHandle::default(), queued);
    task.await;
    let stats = executor().executor_stats();
    assert_eq!(
        stats.tasks_executed(),
        2,
        "it, and the task that awaited it"
    );
}

#[run_test]
async fn reading_resets_all_but_number_and_shares() {
    let queue =
        executor().create_task_queue(Shares::Static(5000), Latency::NotImportant, "immodest");
    let work = async { compute(Duration::from_millis(1)) };
    spawn_in(queue, work).await;
    let mut read = executor().task_queue_stats(queue).expect("it exists");
    assert!(read.runtime() >= Duration::from_millis(1));
    assert_eq!(read.queue_selected(), 1);
    for _ in 0..2 {
        assert_eq!(read.index(), queue);
        assert_eq!(read.current_shares(), 1000);
        read = executor().task_queue_stats(queue).expect("it exists");
        assert_eq!(read.runtime(), Duration::ZERO);
        assert_eq!(read.queue_selected(), 0);
    }
    let stats = executor().executor_stats();
    assert!(stats.tasks_executed() > 0 && stats.scheduler_runs() > 0);
    let stats = executor().executor_stats();
    assert_eq!(stats.total_runtime(), Duration::ZERO);
    assert_eq!(stats.executor_runtime(), Duration::ZERO);
    assert_eq!((stats.tasks_executed(), stats.scheduler_runs()), (0, 0));
}

#[run_test]
async fn the_shares_are_those_of_the_last_look() {
    struct Falling(Cell<usize>);
    impl SharesManager for Falling {
        fn shares(&self) -> usize {
            self.0.get()
        }
        fn adjustment_period(&self) -> Duration {
            Duration::ZERO
        }
    }
    let manager = Rc::new(Falling(Cell::new(7)));
    let shares = Shares::Dynamic(manager.clone());
    let queue = executor().create_task_queue(shares, Latency::NotImportant, "falling");
    let current = || {
        let stats = executor().task_queue_stats(queue).expect("it exists");
        stats.current_shares()
    };
    assert_eq!(current(), 7);
    manager.0.set(0);
    assert_eq!(current(), 7, "it was not read");
    sleep(Duration::from_millis(1)).await;
    spawn_in(queue, async {}).await;
    assert_eq!(current(), 1);
}

#[run_test]
fn neither_the_time_between_two_runs_nor_a_panic_upsets_the_times() {
    let executor = LocalExecutor::default();
    let begun = Instant::now();
    let panics = executor.run(async {
        let queue = queue();
        reset();
        (
            queue,
            spawn_local_into(
                async {
                    sleep(Duration::from_millis(1)).await;
                    compute(Duration::from_millis(20));
                    panic!("on purpose");
                },
                queue,
            ),
        )
    });
    let (queue, panics) = panics;
    panics.expect("it exists").detach();
    let ended = catch_unwind(AssertUnwindSafe(|| {
        executor.run(std::future::pending::<()>());
    }));
    let in_run = begun.elapsed();
    assert!(ended.is_err());
    std::thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    executor.run(async {
        let of_queue = runtime_of(queue);
        assert!(of_queue >= Duration::from_millis(20), "{of_queue:?}");
        let stats = glommio::executor().executor_stats();
        assert!(stats.executor_runtime() >= of_queue);
        assert!(stats.total_runtime() <= in_run + begun.elapsed());
    });
}

#[track_caller]
fn assert_not_found<T>(result: Result<T, GlommioError<()>>, handle: TaskQueueHandle) {
    match result.err().expect("there is no such queue") {
        GlommioError::ExecutorError(ExecutorErrorKind::QueueError { index, kind }) => {
            assert_eq!(index, handle.index());
            assert!(matches!(kind, QueueErrorKind::NotFound));
        }
        other => panic!("not about a queue: {other:?}"),
    }
}

#[run_test]
async fn a_queue_that_is_not_there_has_no_statistics() {
    let handle = queue();
    assert_eq!(executor().all_task_queue_stats(Vec::new()).len(), 2);
    executor().remove_task_queue(handle).expect("it is idle");
    assert_not_found(executor().task_queue_stats(handle), handle);
    assert_not_found(executor().task_queue_io_stats(handle), handle);
    assert_eq!(executor().all_task_queue_stats(Vec::new()).len(), 1);
}

/// A collection whose `extend` comes back to the executor.
#[derive(Default)]
struct Inquisitive(Vec<TaskQueueStats>);

impl Extend<TaskQueueStats> for Inquisitive {
    fn extend<I: IntoIterator<Item = TaskQueueStats>>(&mut self, stats: I) {
        for stats in stats {
            let again = executor().task_queue_stats(stats.index());
            assert_eq!(again.expect("it exists").queue_selected(), 0);
            executor().remove_task_queue(queue()).expect("it is idle");
            queue();
            executor().executor_stats();
            executor().all_task_queue_stats(Vec::new());
            spawn_local(async {}).detach();
            self.0.push(stats);
        }
    }
}

#[run_test]
async fn all_queues_are_reported_once_and_the_collection_may_use_the_executor() {
    let mut expected: Vec<_> = (0..3).map(|_| queue().index()).collect();
    expected.push(0);
    let mut indexes: Vec<_> = executor()
        .all_task_queue_stats(Inquisitive::default())
        .0
        .iter()
        .map(|stats| stats.index().index())
        .collect();
    indexes.sort_unstable();
    expected.sort_unstable();
    assert_eq!(indexes, expected);
    assert_eq!(executor().all_task_queue_stats(Vec::new()).len(), 8);
}

#[run_test]
async fn a_collection_that_panics_does_no_harm() {
    struct Full;
    impl Extend<TaskQueueStats> for Full {
        fn extend<I: IntoIterator<Item = TaskQueueStats>>(&mut self, _: I) {
            panic!("on purpose");
        }
    }
    let thrown = catch_unwind(|| executor().all_task_queue_stats(Full));
    assert!(thrown.is_err());
    assert_eq!(executor().all_task_queue_stats(Vec::new()).len(), 1);
    queue();
}

#[track_caller]
fn assert_no_io(stats: &RingIoStats) {
    assert_eq!((stats.files_opened(), stats.files_closed()), (0, 0));
    for volume in [
        stats.file_reads(),
        stats.file_deduped_reads(),
        stats.file_buffered_reads(),
        stats.file_writes(),
        stats.file_buffered_writes(),
    ] {
        assert_eq!(volume, (0, 0));
    }
    assert_eq!(stats.io_latency_us().count(), 0);
}

#[run_test]
fn sockets_are_not_counted_and_a_queue_without_files_has_zeros() {
    let executor = LocalExecutorBuilder::default()
        .record_io_latencies(true)
        .make()
        .expect("io_uring is there");
    executor.run(async {
        let (listener, address) = bound().expect("loopback is there");
        let client = std::thread::spawn(move || {
            let mut stream = std::net::TcpStream::connect(address).expect("the listener is bound");
            stream.write_all(b"ping").expect("it is connected");
            let mut answer = [0; 4];
            stream.read_exact(&mut answer).expect("it answers");
        });
        let mut stream = listener.accept().await.expect("a client connects");
        let mut question = [0; 4];
        stream.read_exact(&mut question).await.expect("four bytes");
        stream.write_all(&question).await.expect("it is connected");
        let stats = glommio::executor().io_stats();
        for ring in [&stats.main_ring, &stats.latency_ring, &stats.poll_ring] {
            assert_no_io(ring);
        }
        for queue in [TaskQueueHandle::default(), queue()] {
            let stats = glommio::executor().task_queue_io_stats(queue);
            assert_no_io(&stats.expect("it exists").all_rings());
        }
        client.join().expect("it ends in good order");
    });
}
