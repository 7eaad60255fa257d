//! Blocking calls that wait for each other, and those of the library beside the user's.

use futures_lite::StreamExt as _;

use crate::blocking::{occupy, with_threads};
use crate::blocking_ends::{in_child_with_large_stacks, no_threads};
use crate::common::log::{Heard, hearing_everywhere};
use crate::common::prelude::*;

/// Threads of a pool for which no placement is given, at most.
const MOST: usize = 64;

#[run_test]
async fn calls_that_meet_end_however_often_they_do() {
    for meeting in [3, 2, 10, 1, MOST] {
        let barrier = Arc::new(Barrier::new(meeting));
        let calls: Vec<_> = (0..meeting)
            .map(|_| {
                let barrier = Arc::clone(&barrier);
                spawn_local(executor().spawn_blocking(move || barrier.wait().is_leader()))
            })
            .collect();
        let mut leaders = 0;
        for call in calls {
            leaders += usize::from(call.await);
        }
        assert_eq!(leaders, 1);
    }
}

/// It is not the executor that sees to it.
#[run_test]
fn calls_that_wait_for_each_other_end_while_the_executor_does_not_run() {
    let meeting_calls = || {
        let barrier = Arc::new(Barrier::new(3));
        let call = move |barrier: Arc<Barrier>| {
            executor().spawn_blocking_send(move || barrier.wait().is_leader())
        };
        [(); 3].map(|()| call(Arc::clone(&barrier)))
    };
    let executor = LocalExecutor::default();
    // Neither when it has ended, nor while a task keeps its thread.
    let calls = executor.run(async { meeting_calls() });
    let leaders = calls.map(|it| usize::from(block_on(it)));
    assert_eq!(leaders.iter().sum::<usize>(), 1);
    executor.run(async {
        let leaders = meeting_calls().map(|it| usize::from(block_on(it)));
        assert_eq!(leaders.iter().sum::<usize>(), 1);
    });
}

#[run_test(in_child)]
fn at_the_limit_calls_wait_and_the_log_is_told_once() {
    let heard = hearing_everywhere();
    let before = threads();
    let executor = LocalExecutor::default();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let go_on = Arc::new(AtomicBool::new(false));
    let calls: Vec<_> = executor.run(async {
        let calls = (0..3 * MOST).map(|_| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            let go_on = Arc::clone(&go_on);
            spawn_local(glommio::executor().spawn_blocking(move || {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                wait_until(|| go_on.load(Ordering::SeqCst));
                running.fetch_sub(1, Ordering::SeqCst);
            }))
        });
        calls.collect()
    });
    wait_until(|| running.load(Ordering::SeqCst) == MOST);
    // One more waits as the others do.
    let last = executor.run(async {
        let mut last = Box::pin(glommio::executor().spawn_blocking(|| 1));
        assert!(poll_once(&mut last).await.is_none());
        sleep(Duration::from_millis(20)).await;
        last
    });
    assert_eq!(threads(), before + MOST);
    go_on.store(true, Ordering::SeqCst);
    executor.run(async {
        join_all(calls).await;
        assert_eq!(last.await, 1);
    });
    assert_eq!(most.load(Ordering::SeqCst), MOST);
    let told = heard()
        .iter()
        .filter(|it| it.message.contains("threads are blocked"))
        .count();
    assert_eq!(told, 1);
    drop(executor);
    wait_until(|| threads() == before);
}

/// Also if that means that calls which depend on each other hang.
#[run_test(in_child)]
fn an_explicit_placement_of_one_thread_is_one_thread() {
    let before = threads();
    with_threads(1).run(async {
        let (first, go_on) = occupy();
        let first = spawn_local(first);
        let mut second = spawn_local(executor().spawn_blocking(|| ()));
        sleep(Duration::from_millis(50)).await;
        assert_eq!(threads(), before + 1);
        assert!(poll_once(&mut second).await.is_none(), "it waits its turn");
        go_on.store(true, Ordering::SeqCst);
        first.await;
        second.await;
        assert_eq!(threads(), before + 1);
    });
}

/// There is no thread to be had for the second; the one that there is goes on.
#[run_test(in_child_with_large_stacks)]
fn calls_are_made_by_the_threads_that_there_are_if_there_are_no_more() {
    let executor = LocalExecutor::default();
    executor.run(async { glommio::executor().spawn_blocking(|| ()).await });
    let no_threads = no_threads();
    let (sender, receiver) = mpsc::channel();
    let (task, dependent) = executor.run(async {
        let calls: Vec<_> = (0..100)
            .map(|i| spawn_local(glommio::executor().spawn_blocking(move || i)))
            .collect();
        let mut sum = 0;
        for call in calls {
            sum += call.await;
        }
        assert_eq!(sum, 4950);
        // These need a second thread, which comes when there is one.
        let first = spawn_local(glommio::executor().spawn_blocking(move || receiver.recv()));
        let second = spawn_local(glommio::executor().spawn_blocking(move || sender.send(7)));
        yield_now().await;
        (first, second)
    });
    drop(no_threads);
    executor.run(async {
        dependent.await.expect("the other waits");
        assert_eq!(task.await, Ok(7));
    });
}

/// The thread that watches the queue finds no other to follow it when it takes a call itself, and that one
/// waits for the next in the queue. No further call comes.
fn more_calls_meet_than_there_are_threads(is_running_when_refused: bool) {
    let heard = hearing_everywhere();
    let before = threads();
    let executor = LocalExecutor::default();
    // Two threads or more: one that makes calls, and one that watches, or has made one.
    let first = || spawn_local(glommio::executor().spawn_blocking(|| ()));
    executor.run(async { futures_lite::future::zip(first(), first()).await });
    let no_threads = no_threads();
    let count = threads() - before + 1;
    let is_refused = || {
        let refused = |it: &Heard| it.message.contains("one more blocking thread failed");
        heard().iter().any(refused)
    };
    let barrier = Arc::new(Barrier::new(count));
    let calls: Vec<_> = executor.run(async {
        let calls = (0..count).map(|_| {
            let barrier = Arc::clone(&barrier);
            spawn_local(glommio::executor().spawn_blocking(move || {
                barrier.wait();
            }))
        });
        let calls = calls.collect();
        yield_now().await;
        while is_running_when_refused && !is_refused() {
            sleep(Duration::from_millis(1)).await;
        }
        calls
    });
    wait_until(is_refused);
    drop(no_threads);
    executor.run(async {
        join_all(calls).await;
    });
}

#[test]
fn calls_that_wait_for_each_other_end_when_the_system_has_threads_again() {
    in_child_with_large_stacks(|| more_calls_meet_than_there_are_threads(true));
}

#[test]
fn calls_for_which_there_was_no_thread_between_runs_end_in_the_next() {
    in_child_with_large_stacks(|| more_calls_meet_than_there_are_threads(false));
}

#[run_test]
fn calls_of_the_library_do_not_wait_behind_those_of_the_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, [7; 8192]).expect("the folder is ours");
    for executor in [with_threads(1), LocalExecutor::default()] {
        executor.run(async {
            let occupied: Vec<_> = (0..2 * MOST).map(|_| occupy()).collect();
            let (calls, go_on): (Vec<_>, Vec<_>) = occupied.into_iter().unzip();
            let calls: Vec<_> = calls.into_iter().map(spawn_local).collect();
            let directory = Directory::open(folder.path()).await.expect("it exists");
            let mut names = directory.read_dir().expect("it is open");
            while let Some(entry) = names.next().await {
                entry.expect("it can be read");
            }
            directory.close().await.expect("it is open");
            let from = DmaFile::open(&path).await.expect("it exists");
            let to = DmaFile::create(path.with_extension("copy"))
                .await
                .expect("it is ours");
            let lock = to.try_lock_exclusive().await.expect("no other has it");
            assert_eq!(
                to.copy_file_range_aligned(&from, 0, 8192, 0).await.ok(),
                Some(8192)
            );
            lock.unlock().await.expect("it is locked");
            from.close().await.expect("it is open");
            to.close().await.expect("it is open");
            let mut calls = calls;
            for call in &mut calls {
                assert!(poll_once(call).await.is_none(), "none has ended");
            }
            go_on.iter().for_each(|it| it.store(true, Ordering::SeqCst));
            join_all(calls).await;
        });
    }
}
