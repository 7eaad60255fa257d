//! When a watch stands and when it ends: from outside that shows in nothing but the cost.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Poll, Wake};
use std::time::Duration;

use super::*;
use crate::executor::LocalExecutor;
use crate::reactor::current;
use crate::timer::{sleep, timeout};

fn run(test: impl AsyncFnOnce(&Watch, UnixStream, UnixStream)) {
    let patience = Duration::from_secs(60);
    let in_time = LocalExecutor::default().run(timeout(patience, async {
        let watch = Watch::new(current::current());
        let (watched, peer) = UnixStream::pair().expect("descriptors are free");
        test(&watch, watched, peer).await;
        Ok(())
    }));
    in_time.expect("it does not hang");
}

/// Waits until there are news, and clears them.
async fn news(watch: &Watch, fd: RawFd) {
    poll_fn(|cx| {
        if watch.has_news() {
            return Poll::Ready(());
        }
        watch.wait(fd, cx.waker()).expect("the executor is there");
        Poll::Pending
    })
    .await;
    watch.clear_news();
}

/// The operation in flight, if there is one: no two are the same.
fn watcher(watch: &Watch) -> Option<Rc<Watcher>> {
    watch.news.in_flight.borrow().clone()
}

fn stands(watch: &Watch, before: &Rc<Watcher>) -> bool {
    watcher(watch).is_some_and(|now| Rc::ptr_eq(&now, before))
}

#[test]
fn one_operation_serves_many_waits() {
    run(async |watch, mut watched, mut peer| {
        let fd = watched.as_raw_fd();
        assert!(watcher(watch).is_none(), "nobody waits yet");
        let mut first = None;
        for _ in 0..100 {
            peer.write_all(b"x").expect("there is room");
            news(watch, fd).await;
            watched.read_exact(&mut [0]).expect("there is news of it");
            let first = first.get_or_insert_with(|| watcher(watch).expect("it was waited for"));
            assert!(stands(watch, first));
        }
    });
}

#[test]
fn what_was_there_before_is_news() {
    run(async |watch, watched, mut peer| {
        peer.write_all(b"x").expect("there is room");
        sleep(Duration::from_millis(1)).await;
        news(watch, watched.as_raw_fd()).await;
    });
}

#[test]
fn news_that_nobody_hears_end_it_until_somebody_waits() {
    run(async |watch, mut watched, mut peer| {
        let fd = watched.as_raw_fd();
        peer.write_all(b"x").expect("there is room");
        news(watch, fd).await;
        let first = watcher(watch).expect("it was waited for");
        while stands(watch, &first) {
            peer.write_all(b"x").expect("there is room for a minute");
            sleep(Duration::from_micros(10)).await;
        }
        assert!(watcher(watch).is_none());
        assert!(watch.has_news());
        watched.set_nonblocking(true).expect("it is a socket");
        while watched.read(&mut [0; 64]).is_ok() {}
        watch.clear_news();
        peer.write_all(b"x").expect("there is room");
        news(watch, fd).await;
        assert!(watcher(watch).is_some());
    });
}

/// As after a full completion queue, which ends an operation with a success.
#[test]
fn an_operation_that_is_over_is_followed_by_another() {
    run(async |watch, watched, mut peer| {
        let fd = watched.as_raw_fd();
        poll_fn(|cx| {
            watch.wait(fd, cx.waker()).expect("the executor is there");
            Poll::Ready(())
        })
        .await;
        let first = watcher(watch).expect("somebody waits");
        first.complete(Ok(0), false);
        assert!(watch.has_news() && watcher(watch).is_none());
        // What it may say afterwards is no news.
        watch.clear_news();
        first.complete(Ok(0), false);
        assert!(!watch.has_news());
        peer.write_all(b"x").expect("there is room");
        news(watch, fd).await;
        assert!(!stands(watch, &first));
    });
}

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn the_last_to_wait_is_woken() {
    run(async |watch, watched, mut peer| {
        let fd = watched.as_raw_fd();
        let other = &Waker::from(Arc::new(Nobody));
        watch.wait(fd, other).expect("the executor is there");
        assert!(watch.waiting().is_some_and(|it| it.will_wake(other)));
        peer.write_all(b"x").expect("there is room");
        news(watch, fd).await;
        assert!(watch.waiting().is_none(), "it has been woken");
        poll_fn(|cx| {
            watch.wait(fd, cx.waker()).expect("the executor is there");
            assert!(watch.waiting().is_some_and(|it| it.will_wake(cx.waker())));
            Poll::Ready(())
        })
        .await;
    });
}

#[test]
fn a_watch_that_cannot_be_kept_is_an_error() {
    run(async |watch, watched, _peer| {
        // An open file that cannot be polled is always ready; a number that is no file is an error.
        let nothing = watched.as_raw_fd() + 10_000;
        let error = poll_fn(|cx| match watch.wait(nothing, cx.waker()) {
            Err(error) => Poll::Ready(error),
            Ok(()) => Poll::Pending,
        })
        .await;
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        ready_again(watch, &watched).await;
    });
}

/// A watch goes on after an error, as the socket may have recovered.
async fn ready_again(watch: &Watch, watched: &UnixStream) {
    watch.clear_news();
    poll_fn(|cx| Poll::Ready(watch.wait(watched.as_raw_fd(), cx.waker())))
        .await
        .expect("it has told of its error");
    assert!(watcher(watch).is_some());
}
