//! Descriptors: none is left behind by what fails, and running out of them is an error and no more.

use super::clients::in_child_with_clients;
use super::deaf::closed_port;
use super::*;

fn is_refused(connected: Result<TcpStream>) {
    let error = connected.expect_err("no socket listens");
    assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED));
}

#[run_test(run_alone)]
async fn a_port_refuses_a_thousand_connections_and_the_next_one_serves() {
    let closed = closed_port();
    let before = open_descriptors();
    for _ in 0..1000 {
        is_refused(TcpStream::connect(closed).await);
    }
    for _ in 0..10 {
        let attempts: Vec<_> = (0..100)
            .map(|number| {
                spawn_local(async move {
                    match number % 2 {
                        0 => TcpStream::connect(closed).await,
                        _ => TcpStream::connect_timeout(closed, PATIENCE).await,
                    }
                })
            })
            .collect();
        for attempt in attempts {
            is_refused(attempt.await);
        }
    }
    back_to(before).await;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?).await?;
    listener.accept().await?.write_all(b"open").await?;
    let mut greeting = String::new();
    client.read_to_string(&mut greeting).await?;
    assert_eq!(greeting, "open");
}

#[run_test(run_alone)]
async fn connects_that_take_too_long_close_their_sockets() {
    const LIMIT: Duration = Duration::from_millis(20);
    let deaf = Deaf::new();
    let address = deaf.address;
    let before = open_descriptors();
    let attempts: Vec<_> = (0..100)
        .map(|_| {
            spawn_local(async move {
                let started = Instant::now();
                let connected = TcpStream::connect_timeout(address, LIMIT).await;
                (started.elapsed(), connected)
            })
        })
        .collect();
    for attempt in attempts {
        let (lasted, connected) = attempt.await;
        assert!(lasted >= LIMIT, "{lasted:?}");
        let error = connected.expect_err("the peer does not answer");
        assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT));
    }
    back_to(before).await;
    Ok(())
}

fn is_out_of_descriptors<T: std::fmt::Debug>(result: Result<T>) {
    let error = result.expect_err("no descriptor is left");
    assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
}

/// A hundred clients come to a server with descriptors for some sixty at a time: in the end all
/// have been served, and other calls that need a descriptor meanwhile fail.
#[run_test(alone)]
fn a_server_short_of_descriptors_serves_all_clients_in_turn() {
    const CLIENTS: usize = 100;
    in_child_with_clients(|clients| {
        set_limit(Resource::RLIMIT_NOFILE, 64);
        run(async move {
            let mut clients = clients.bind_to_executor();
            let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
            let address = listener.local_addr()?;
            clients.connect(address, CLIENTS).await?;
            let before = open_descriptors();
            let mut served = 0;
            let mut rounds = 0;
            while served < CLIENTS {
                rounds += 1;
                let mut streams = Vec::new();
                loop {
                    match listener.accept().await {
                        Ok(stream) => streams.push(stream),
                        Err(error) => {
                            assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
                            break;
                        }
                    }
                    if served + streams.len() == CLIENTS {
                        break;
                    }
                }
                assert!(!streams.is_empty(), "some fit each time");
                served += streams.len();
                if served < CLIENTS {
                    nothing_can_be_opened(&listener, address).await;
                    the_executor_works().await;
                }
                // A client's number is all that it says. Reading needs no descriptor.
                for stream in &mut streams {
                    stream.read_exact(&mut [0; 4]).await?;
                }
            }
            assert!(rounds > 1, "or it has shown nothing");
            clients.close().await?;
            back_to(before).await;
            let fresh = TcpStream::connect(address).await?;
            assert_eq!(listener.accept().await?.peer_addr()?, fresh.local_addr()?);
            Ok(())
        });
    });
}

/// Every call that needs a descriptor fails. Each accept that waits for a connection fails too, and
/// a stream of connections goes on after the error.
async fn nothing_can_be_opened(listener: &Rc<TcpListener>, address: SocketAddr) {
    is_out_of_descriptors(listener.shared_accept().await);
    is_out_of_descriptors(std::future::poll_fn(|cx| listener.poll_accept(cx)).await);
    let mut incoming = listener.incoming();
    for _ in 0..3 {
        is_out_of_descriptors(incoming.next().await.expect("it never ends"));
    }
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let listener = Rc::clone(listener);
            spawn_local(async move { listener.accept().await })
        })
        .collect();
    for waiter in waiting {
        is_out_of_descriptors(waiter.await);
    }
    is_out_of_descriptors(TcpStream::connect(address).await);
    is_out_of_descriptors(TcpStream::connect_timeout(address, PATIENCE).await);
    let anywhere = (Ipv4Addr::LOCALHOST, 0);
    is_out_of_descriptors(TcpListener::bind(anywhere));
    is_out_of_descriptors(UdpSocket::bind(anywhere));
}

/// Timers, tasks, and wakes from other threads need no descriptor.
async fn the_executor_works() {
    let started = Instant::now();
    sleep(Duration::from_millis(5)).await;
    assert!(started.elapsed() >= Duration::from_millis(5));
    assert_eq!(spawn_local(async { 1 }).await, 1);
    let far = executor().spawn_blocking(|| std::thread::sleep(Duration::from_millis(5)));
    far.await;
}
