//! Listeners that are given away, or shared: what they have taken from the backlog by then, and
//! what becomes of it.

use glommio::net::AcceptedTcpStream;

use super::accept_on_demand::turns;
use super::*;

type StdListener = std::net::TcpListener;
type StdStream = std::net::TcpStream;

/// Clients that come all at once.
fn connect(address: SocketAddr, count: usize) -> io::Result<Vec<StdStream>> {
    (0..count).map(|_| StdStream::connect(address)).collect()
}

/// Accepts twice, coming back for more: the kernel may take all that come for the accept that
/// follows.
async fn warm_up(listener: &TcpListener) -> Result<Pin<Box<impl Future + use<'_>>>> {
    let address = listener.local_addr()?;
    for _ in 0..2 {
        let mut accept = Box::pin(listener.accept());
        assert!(poll_once(&mut accept).await.is_none());
        let _client = StdStream::connect(address)?;
        accept.await?;
    }
    let mut held = Box::pin(listener.accept());
    assert!(poll_once(&mut held).await.is_none());
    Ok(held)
}

/// Accepts `count` connections from the backlog, where they have to be.
fn take(socket: &StdListener, count: usize) -> io::Result<Vec<StdStream>> {
    socket2::SockRef::from(socket).set_read_timeout(Some(Duration::from_secs(10)))?;
    (0..count).map(|_| Ok(socket.accept()?.0)).collect()
}

/// All clients are served: by the connections that came with the socket, and from its backlog,
/// which holds no more.
async fn assert_served(
    socket: &StdListener,
    accepted: Vec<AcceptedTcpStream>,
    mut clients: Vec<StdStream>,
) -> Result {
    let in_backlog = clients.len() - accepted.len();
    let mut peers = HashSet::new();
    for connection in accepted {
        peers.insert(connection.peer_addr()?);
        connection.bind_to_executor().write_all(b"x").await?;
    }
    for mut connection in take(socket, in_backlog)? {
        peers.insert(connection.peer_addr()?);
        connection.write_all(b"x")?;
    }
    socket.set_nonblocking(true)?;
    let none = socket.accept().expect_err("each client is there once");
    assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
    for client in &mut clients {
        assert!(peers.contains(&client.local_addr()?));
        client.set_read_timeout(Some(PATIENCE))?;
        client.read_exact(&mut [0])?;
    }
    Ok(())
}

#[run_test(run_alone)]
async fn a_listener_comes_apart_without_losing_a_connection() {
    let before = open_descriptors();
    for (count, nonblocking) in [(0, false), (1, false), (50, false), (50, true)] {
        for is_warm in [false, true] {
            for (turns_before, turns_after) in [(0, 0), (0, 1), (1, 0), (3, 0), (3, 3)] {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                let address = listener.local_addr()?;
                socket2::SockRef::from(&listener).set_nonblocking(nonblocking)?;
                let held = if is_warm {
                    Some(warm_up(&listener).await?)
                } else {
                    None
                };
                let mut accept = Box::pin(listener.accept());
                assert!(poll_once(&mut accept).await.is_none());
                let clients = connect(address, count)?;
                for _ in 0..turns_before {
                    turns().await;
                }
                drop((held, accept));
                for _ in 0..turns_after {
                    turns().await;
                }
                let (socket, accepted) = listener.into_parts().await;
                assert_eq!(socket.local_addr()?, address);
                socket.set_nonblocking(false)?;
                assert_served(&socket, accepted, clients).await?;
            }
        }
    }
    back_to(before).await;
}

/// An accept that waits, for all that is known, is never polled nor dropped.
#[run_test(run_alone)]
async fn a_listener_with_a_forgotten_accept_comes_apart() {
    for (turns_before, count) in [(0, 10), (1, 10), (3, 10), (0, 0), (3, 0)] {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        for _ in 0..3 {
            let mut forgotten = Box::pin(listener.accept());
            assert!(poll_once(&mut forgotten).await.is_none());
            std::mem::forget(forgotten);
        }
        let clients = connect(listener.local_addr()?, count)?;
        for _ in 0..turns_before {
            turns().await;
        }
        let (socket, accepted) = listener.into_parts().await;
        assert_served(&socket, accepted, clients).await?;
    }
}

/// Without a call of accept, or a task that has polled and does not come back.
#[run_test(run_alone)]
async fn a_listener_comes_apart_that_no_task_or_only_a_poller_waits_for() {
    for polls in [0, 1, 3] {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        for _ in 0..polls {
            let poller = poll_fn(|cx| listener.poll_accept(cx));
            assert!(poll_once(poller).await.is_none());
            turns().await;
        }
        let clients = connect(listener.local_addr()?, 10)?;
        let (socket, accepted) = listener.into_parts().await;
        assert_served(&socket, accepted, clients).await?;
    }
}

/// Again and again, while clients come: each is served by one of the listeners that the socket
/// becomes.
#[run_test(run_alone)]
async fn a_listener_handed_over_under_load_serves_every_client() {
    const CLIENTS: usize = 1000;
    let before = open_descriptors();
    let mut listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let clients: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                (0..CLIENTS / 4).try_for_each(|_| {
                    let mut client = StdStream::connect(address)?;
                    client.set_read_timeout(Some(PATIENCE))?;
                    client.read_exact(&mut [0])
                })
            })
        })
        .collect();
    let mut served = 0;
    for round in 0.. {
        for polls in 0..round % 5 {
            let mut accept = Box::pin(listener.accept());
            for _ in 0..=polls {
                if let Some(stream) = poll_once(&mut accept).await {
                    stream?.write_all(b"x").await?;
                    served += 1;
                    break;
                }
                glommio::executor().yield_task_queue_now().await;
            }
        }
        let (socket, accepted) = listener.into_parts().await;
        for connection in accepted {
            connection.bind_to_executor().write_all(b"x").await?;
            served += 1;
        }
        listener = TcpListener::from(socket);
        if served == CLIENTS {
            break;
        }
    }
    for client in clients {
        client.join().expect("the clients do not panic")?;
    }
    drop(listener);
    back_to(before).await;
}

#[run_test(run_alone)]
async fn a_unix_listener_comes_apart_without_losing_a_connection() {
    const CLIENTS: usize = 20;
    let place = tempfile::tempdir()?;
    let path = place.path().join("socket");
    let listener = UnixListener::bind(&path)?;
    let mut clients = Vec::new();
    {
        let mut held = Box::pin(listener.accept());
        assert!(poll_once(&mut held).await.is_none());
        for _ in 0..CLIENTS {
            clients.push(std::os::unix::net::UnixStream::connect(&path)?);
        }
        turns().await;
    }
    let (socket, accepted) = listener.into_parts().await;
    socket2::SockRef::from(&socket).set_read_timeout(Some(PATIENCE))?;
    let in_backlog = CLIENTS - accepted.len();
    for connection in accepted {
        connection.bind_to_executor().write_all(b"x").await?;
    }
    for _ in 0..in_backlog {
        socket.accept()?.0.write_all(b"x")?;
    }
    for mut client in clients {
        client.set_read_timeout(Some(PATIENCE))?;
        client.read_exact(&mut [0])?;
    }
}

#[run_test(run_alone)]
async fn a_listener_dropped_while_it_comes_apart_is_closed_with_its_connections() {
    let before = open_descriptors();
    for turns_before in 0..3 {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let clients = {
            let held = warm_up(&listener).await?;
            let clients = connect(address, 10)?;
            for _ in 0..turns_before {
                turns().await;
            }
            drop(held);
            clients
        };
        // It may be done at once.
        drop(poll_once(listener.into_parts()).await);
        turns().await;
        clients
            .into_iter()
            .for_each(super::accept_on_demand::assert_ended);
        back_to(before).await;
    }
}

/// The executor that accepted for it is gone: what it has accepted is there, and nothing is waited
/// for.
#[run_test(alone)]
fn a_listener_without_its_executor_comes_apart() {
    let executor = LocalExecutor::default();
    let (listener, clients) = executor.run(async {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it is bound");
        let held = warm_up(&listener).await.expect("clients are accepted");
        let clients = connect(address, 10).expect("it listens");
        turns().await;
        drop(held);
        (listener, clients)
    });
    drop(executor);
    run(async {
        let (socket, accepted) = listener.into_parts().await;
        assert_served(&socket, accepted, clients).await
    });
}

/// What no accept has waited for is left to the next owner of the bare descriptor.
#[run_test(run_alone)]
async fn a_batch_without_accepts_stays_in_the_backlog() {
    const CLIENTS: usize = 50;
    for is_warm in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        if is_warm {
            drop(warm_up(&listener).await?);
        } else {
            poll_and_drop(3, listener.accept()).await;
        }
        turns().await;
        let _clients = connect(address, CLIENTS)?;
        turns().await;
        // SAFETY: the descriptor has just been given up by its owner.
        let socket = unsafe { StdListener::from_raw_fd(listener.into_raw_fd()) };
        take(&socket, CLIENTS)?;
    }
}

/// An accept now and then is for one connection: another process that shares the socket gets the
/// others.
#[run_test(run_alone)]
async fn an_accept_takes_one_connection_of_a_batch() {
    const CLIENTS: usize = 50;
    let socket = StdListener::bind("127.0.0.1:0")?;
    let listener = TcpListener::from(socket.try_clone()?);
    let _clients = connect(socket.local_addr()?, CLIENTS)?;
    for _ in 0..3 {
        listener.accept().await?;
        turns().await;
    }
    take(&socket, CLIENTS - 3)?;
}

/// All tests here once more, with the kernel accepting in the middle of any system call.
#[run_test(alone)]
fn at_any_time() {
    const NAME: &str = "accept_handover::at_any_time";
    crate::common::again_with(NAME, &[("GLOMMIO_RING", "plain")], &["accept_handover::a_"]);
}
