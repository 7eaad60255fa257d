//! Calls on the blocking pool that their callers have given up.

use std::sync::mpsc;

use futures_lite::future::{block_on, poll_once};

use super::*;

/// Gives a call of either kind up before the pool's one thread comes to it. Whether it ran.
fn runs_when_given_up(is_asked: bool) -> bool {
    let settings = PoolSettings {
        thread_name: String::from("test"),
        affinity: vec![None],
    };
    let pool = BlockingPool::new(settings, None);
    let (go_on, told) = mpsc::channel::<()>();
    let (note, ran) = mpsc::channel();
    block_on(async {
        let mut busy = pool.call(move || told.recv().expect("the test goes on"));
        assert!(poll_once(&mut busy).await.is_none());
        let second = note.clone();
        let noted = move || note.send(1);
        let mut given_up = if is_asked {
            pool.ask(noted)
        } else {
            pool.call(noted)
        };
        assert!(poll_once(&mut given_up).await.is_none());
        // One that is waited for runs, of either kind.
        let mut heard = pool.ask(move || second.send(2));
        assert!(poll_once(&mut heard).await.is_none());
        drop(given_up);
        go_on.send(()).expect("the call waits");
        busy.await.expect("there is a thread");
        heard
            .await
            .expect("there is a thread")
            .expect("it is heard");
    });
    let ran: Vec<_> = ran.iter().collect();
    assert_eq!(ran.last(), Some(&2));
    ran.len() == 2
}

#[test]
fn a_call_runs_whether_it_is_heard_or_not() {
    assert!(runs_when_given_up(false));
}

#[test]
fn a_question_that_nothing_waits_for_is_not_asked() {
    assert!(!runs_when_given_up(true));
}

/// Sends when it is dropped.
struct Told(mpsc::Sender<()>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// A file that it holds would stay open otherwise, until a thread comes to it.
#[test]
fn a_question_that_is_given_up_holds_nothing_from_then_on() {
    let settings = PoolSettings {
        thread_name: String::from("test"),
        affinity: vec![None],
    };
    let pool = BlockingPool::new(settings, None);
    let (go_on, told) = mpsc::channel::<()>();
    let (note, dropped) = mpsc::channel();
    block_on(async {
        let mut busy = pool.call(move || told.recv().expect("the test goes on"));
        assert!(poll_once(&mut busy).await.is_none());
        let held = Told(note);
        let mut given_up = pool.ask(move || drop(held));
        assert!(poll_once(&mut given_up).await.is_none());
        assert!(dropped.try_recv().is_err());
        drop(given_up);
        assert_eq!(dropped.try_recv(), Ok(()), "while the thread is busy");
        go_on.send(()).expect("the call waits");
        busy.await.expect("there is a thread");
        // The thread comes to what is left of the other one, and lives.
        assert_eq!(pool.ask(|| 7).await.expect("there is a thread"), 7);
    });
    assert!(dropped.recv().is_err(), "once");
}

/// The caller hears of it, and what was to be called is dropped, when the pool is closed.
#[test]
fn a_call_that_is_discarded_is_dropped_with_its_pool() {
    let settings = PoolSettings {
        thread_name: String::from("test"),
        affinity: vec![None],
    };
    let pool = BlockingPool::new(settings, None);
    let (go_on, told) = mpsc::channel::<()>();
    let (note, dropped) = mpsc::channel();
    let (begin, begun) = mpsc::channel();
    block_on(async {
        let mut busy = pool.call(move || {
            begin.send(()).expect("the test waits");
            told.recv().expect("the test goes on");
        });
        assert!(poll_once(&mut busy).await.is_none());
        begun.recv().expect("there is a thread");
        let held = Told(note);
        let mut waiting = pool.call(move || drop(held));
        assert!(poll_once(&mut waiting).await.is_none());
        pool.close(&mut FirstPanic::default());
        assert_eq!(dropped.try_recv(), Ok(()));
        let error = waiting.await.expect_err("it was not made");
        assert_eq!(error.kind(), std::io::ErrorKind::NotConnected);
        go_on.send(()).expect("the call waits");
        busy.await.expect("it had begun");
    });
}
