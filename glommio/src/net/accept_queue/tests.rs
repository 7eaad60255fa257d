//! How many orders the kernel is given: none of this shows from outside but in the cost.

use std::future::poll_fn;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::time::Duration;

use futures_lite::future::{poll_once, yield_now};

use super::*;
use crate::executor::{LocalExecutor, spawn_local};
use crate::reactor::current;
use crate::timer::{sleep, timeout};

/// Runs `test` where the kernel accepts many with one order.
fn run(test: impl AsyncFnOnce(&TcpListener, &Acceptor)) {
    let patience = Duration::from_secs(60);
    let in_time = LocalExecutor::default().run(timeout(patience, async {
        let reactor = current::current();
        let has_many = |reactor: Rc<Reactor>| reactor.has(Feature::AcceptMulti);
        if !reactor.upgrade().is_some_and(has_many) {
            eprintln!("skipped: this kernel accepts one connection at a time, or is told to");
            return Ok(());
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let acceptor = Acceptor::new(reactor, listener.as_raw_fd());
        test(&listener, &acceptor).await;
        Ok(())
    }));
    in_time.expect("it does not hang");
}

fn connect(listener: &TcpListener) -> std::net::TcpStream {
    let address = listener.local_addr().expect("it is bound");
    std::net::TcpStream::connect(address).expect("it listens")
}

/// Which order stands: no two are the same.
fn order(acceptor: &Acceptor) -> String {
    format!("{:?}", acceptor.queue.state.borrow().order)
}

async fn wait_for(acceptor: &Acceptor) {
    let waits = poll_once(acceptor.accept()).await;
    assert!(waits.is_none(), "nobody has connected");
}

#[test]
fn one_order_is_for_all_connections() {
    run(async |listener, acceptor| {
        wait_for(acceptor).await;
        let first = order(acceptor);
        assert!(first.starts_with("Many"), "{first}");
        for _ in 0..20 {
            let mut accept = pin!(acceptor.accept());
            assert!(poll_once(&mut accept).await.is_none());
            let _client = connect(listener);
            accept.await.expect("it is accepted");
            assert_eq!(order(acceptor), first);
        }
    });
}

#[test]
fn a_batch_for_one_who_comes_back_for_more_ends_no_order() {
    run(async |listener, acceptor| {
        let poll_accept = || poll_fn(|cx| acceptor.poll_accept(cx));
        wait_for(acceptor).await;
        let first = order(acceptor);
        for is_poller in [false, true, false, true] {
            let clients: Vec<_> = (0..10).map(|_| connect(listener)).collect();
            for _ in &clients {
                let accepted = if is_poller {
                    poll_accept().await
                } else {
                    acceptor.accept().await
                };
                accepted.expect("it is accepted");
            }
            assert_eq!(order(acceptor), first);
        }
    });
}

/// Also if somebody waits again before the first has ended: beside a task that is always runnable, the
/// kernel hears of the end a turn later.
#[test]
fn an_order_that_was_stopped_is_followed_by_one_other() {
    run(async |listener, acceptor| {
        let _busy = spawn_local(async {
            loop {
                yield_now().await;
            }
        });
        // One for nobody, and too many for somebody who does not come.
        for count in [1, MOST_UNCLAIMED] {
            wait_for(acceptor).await;
            let mut held = pin!(acceptor.accept());
            if count > 1 {
                assert!(poll_once(&mut held).await.is_none());
            }
            let first = order(acceptor);
            let clients: Vec<_> = (0..count).map(|_| connect(listener)).collect();
            while order(acceptor) == first {
                yield_now().await;
            }
            held.await.expect("it is there");
            for _ in &clients[1..] {
                acceptor.accept().await.expect("it is there");
            }
            let mut accept = pin!(acceptor.accept());
            assert!(poll_once(&mut accept).await.is_none());
            while !order(acceptor).starts_with("Many") || order(acceptor) == first {
                yield_now().await;
            }
            let second = order(acceptor);
            for _ in 0..20 {
                sleep(Duration::from_micros(50)).await;
                assert_eq!(order(acceptor), second);
            }
            let _client = connect(listener);
            accept.await.expect("it is accepted");
            assert_eq!(order(acceptor), second);
        }
    });
}
