//! Executors that leave a listener they share: what becomes of the connections that they have not taken.

use std::io::Read;
use std::net::TcpStream;

use glommio::net::BalancedTcpListener;

use super::balance::{accept_for_a_while, client_of, hand_on, two_on_one};
use super::{PATIENCE, leaves_no_descriptor, run};
use crate::common::prelude::*;

/// It was given a connection that it never asked for.
#[run_test]
async fn what_an_executor_has_not_taken_when_it_goes_is_served_by_another() {
    let (listener, mut one, other) = two_on_one()?;
    let (first, second) = (client_of(&listener)?, client_of(&listener)?);
    let (stream, _guard) = one.accept().await?;
    assert_eq!(stream.peer_addr()?, first.local_addr()?);
    // Accepted here and handed on, which is all that there is to do.
    hand_on(&mut one, &other).await;
    assert_eq!((one.connections(), other.connections()), (1, 1));
    drop(other);
    assert_eq!(one.connections(), 2);
    let (stream, _guard) = one.accept().await?;
    assert_eq!(stream.peer_addr()?, second.local_addr()?);
}

#[run_test(leaves_no_descriptor)]
fn nothing_is_left_open_when_the_last_has_gone() {
    run(async {
        let (listener, mut one, other) = two_on_one()?;
        let mut clients = [client_of(&listener)?, client_of(&listener)?];
        let (stream, guard) = one.accept().await?;
        hand_on(&mut one, &other).await;
        drop((stream, one));
        drop((other.leave().await, guard));
        for client in &mut clients {
            assert_eq!(client.read_to_end(&mut Vec::new())?, 0);
        }
        Ok(())
    });
}

/// Executors that are at work all the time, and come and go.
struct Pool {
    leaves: Arc<AtomicBool>,
    executors: Vec<ExecutorJoinHandle<usize>>,
}

impl Pool {
    /// Of two executors that accept from `socket` and greet, until the pool is to leave. Those that none has
    /// taken by then are greeted, too.
    fn start(socket: &std::net::TcpListener) -> Pool {
        let socket = socket.try_clone().expect("there are descriptors");
        let listener = BalancedTcpListener::from(socket);
        let leaves = Arc::new(AtomicBool::new(false));
        let executors = (0..2).map(|shard| {
            let (listener, leaves) = (listener.clone(), leaves.clone());
            let run = move || async move {
                let mut accepts = listener.join(shard).expect("it joins");
                while !leaves.load(Ordering::SeqCst) {
                    if let Some(accepted) = accept_for_a_while(&mut accepts).await {
                        let (mut stream, _guard) = accepted.expect("there are descriptors");
                        let _ = stream.write_all(b"x").await;
                    }
                }
                let unserved = accepts.leave().await;
                let count = unserved.len();
                for stream in unserved {
                    let _ = stream.bind_to_executor().write_all(b"x").await;
                }
                count
            };
            spawn_executor(run)
        });
        let executors = executors.collect();
        Pool { leaves, executors }
    }

    fn leave(self) {
        self.leaves.store(true, Ordering::SeqCst);
        for executor in self.executors {
            executor.join().expect("it has ended");
        }
    }
}

/// Each pool has a listener of its own for the same socket, as a process that is replaced by another.
#[test]
fn a_pool_that_is_replaced_resets_no_client() {
    const REPLACEMENTS: usize = 20;
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = socket.local_addr().expect("it is bound");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients = [(); 4].map(|()| {
            scope.spawn(|| {
                let mut served = 0;
                while !is_over.load(Ordering::SeqCst) {
                    let mut client = TcpStream::connect(address).expect("it listens");
                    client
                        .set_read_timeout(Some(PATIENCE))
                        .expect("it is not zero");
                    client.read_exact(&mut [0]).expect("it is served");
                    served += 1;
                }
                served
            })
        });
        let mut pool = Pool::start(&socket);
        for _ in 0..REPLACEMENTS {
            thread::sleep(Duration::from_millis(5));
            let successor = Pool::start(&socket);
            thread::sleep(Duration::from_millis(5));
            std::mem::replace(&mut pool, successor).leave();
        }
        is_over.store(true, Ordering::SeqCst);
        let served: u64 = clients
            .into_iter()
            .map(|it| it.join().expect("no client is reset"))
            .sum();
        assert!(served > 0);
        pool.leave();
    });
}

/// It was given a connection that it never asked for, and there is no other executor.
#[run_test]
async fn what_the_last_executor_has_not_taken_is_returned_or_waits_for_the_next() {
    for way in 0..3 {
        let (listener, mut one, other) = two_on_one()?;
        let (_first, second) = (client_of(&listener)?, client_of(&listener)?);
        let served = one.accept().await?;
        hand_on(&mut one, &other).await;
        assert!(one.leave().await.is_empty(), "there is another executor");
        let waits = match way {
            0 => other.leave().await,
            1 => {
                drop(other);
                listener.into_parts()?.1
            }
            _ => {
                drop(other);
                let mut next = listener.join(2)?;
                assert_eq!(next.connections(), 1);
                let (stream, _guard) = next.accept().await?;
                assert_eq!(stream.peer_addr()?, second.local_addr()?);
                Vec::new()
            }
        };
        for stream in &waits {
            assert_eq!(stream.peer_addr()?, second.local_addr()?);
        }
        assert_eq!(waits.len(), usize::from(way < 2));
        drop(served);
    }
}

/// The kernel is accepting for it at that moment.
#[run_test]
async fn an_executor_that_is_dropped_while_it_accepts_loses_no_connection() {
    let (listener, mut one, other) = two_on_one()?;
    drop(other);
    for _ in 0..20 {
        {
            let mut accept = pin!(one.accept());
            assert!(poll_once(&mut accept).await.is_none());
            sleep(Duration::from_micros(50)).await;
            let client = client_of(&listener)?;
            assert!(poll_once(&mut accept).await.is_none());
            std::mem::forget(client);
        }
        drop(one);
        one = listener.join(0)?;
        let _served = one.accept().await?;
    }
}
