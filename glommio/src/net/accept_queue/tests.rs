//! How many operations are submitted: from outside only the cost shows it.

use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::time::Duration;

use futures_lite::future::{poll_once, yield_now};

use super::*;
use crate::executor::{LocalExecutor, spawn_local};
use crate::reactor::current;
use crate::timer::{sleep, timeout};

fn run(test: impl AsyncFnOnce(&TcpListener, &Acceptor)) {
    let patience = Duration::from_secs(60);
    let in_time = LocalExecutor::default().run(timeout(patience, async {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let acceptor = Acceptor::new(current::current(), listener.as_raw_fd());
        test(&listener, &acceptor).await;
        Ok(())
    }));
    in_time.expect("it does not hang");
}

fn connect(listener: &TcpListener) -> std::net::TcpStream {
    let address = listener.local_addr().expect("it is bound");
    std::net::TcpStream::connect(address).expect("it listens")
}

/// Which operation is in flight: no two are the same.
fn accept_state(acceptor: &Acceptor) -> String {
    format!("{:?}", acceptor.queue.state.borrow().accept)
}

/// Waits until nothing is in flight, which takes turns of the reactor alone.
async fn until_idle(acceptor: &Acceptor) {
    while accept_state(acceptor) != "Idle" {
        sleep(Duration::from_micros(50)).await;
    }
}

/// Accepts two connections one after the other, and waits for a third.
async fn warm_up<'a>(listener: &TcpListener, acceptor: &'a Acceptor) -> Pin<Box<Accept<'a>>> {
    for _ in 0..2 {
        let mut accept = pin!(acceptor.accept());
        assert!(poll_once(&mut accept).await.is_none());
        let _client = connect(listener);
        accept.await.expect("it is accepted");
    }
    let mut held = Box::pin(acceptor.accept());
    assert!(poll_once(&mut held).await.is_none());
    let state = accept_state(acceptor);
    assert!(state.starts_with("One"), "{state}");
    held
}

/// Beside a task that is always runnable, the cancellation is submitted a turn later.
#[run_test(run)]
async fn an_operation_that_was_cancelled_is_followed_by_one_other(
    listener: &TcpListener,
    acceptor: &Acceptor,
) {
    let _busy = spawn_local(async {
        loop {
            yield_now().await;
        }
    });
    for yields in 0..4 {
        drop(warm_up(listener, acceptor).await);
        let first = accept_state(acceptor);
        for _ in 0..yields {
            yield_now().await;
        }
        let mut accept = pin!(acceptor.accept());
        assert!(poll_once(&mut accept).await.is_none());
        while accept_state(acceptor) == "Cancelled" {
            yield_now().await;
        }
        let second = accept_state(acceptor);
        assert_ne!(second, "Idle", "an accept waits");
        if yields == 0 {
            assert_eq!(second, first, "it was back in time");
        }
        for _ in 0..20 {
            sleep(Duration::from_micros(50)).await;
            assert_eq!(accept_state(acceptor), second);
        }
        let _client = connect(listener);
        accept.await.expect("it is accepted");
        until_idle(acceptor).await;
    }
}

/// Accepts that are dropped before the round ends keep the operation of the first.
#[run_test(run)]
async fn any_number_of_accepts_that_are_dropped_is_one_operation(
    _: &TcpListener,
    acceptor: &Acceptor,
) {
    assert!(poll_once(acceptor.accept()).await.is_none());
    let first = accept_state(acceptor);
    for _ in 0..10_000 {
        assert!(poll_once(acceptor.accept()).await.is_none());
    }
    assert_eq!(accept_state(acceptor), first);
    until_idle(acceptor).await;
}
