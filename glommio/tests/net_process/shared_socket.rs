//! Listeners whose socket others accept from as well, by a descriptor of their own, as another process does:
//! a client of which the kernel has told a listener that is gone, or does not wait any more, is theirs.

use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::thread::JoinHandle;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::accept_on_demand::turns;
use super::*;

type StdListener = std::net::TcpListener;
type StdStream = std::net::TcpStream;

/// A thread that waits for a client of `listener` and greets it.
fn waits_for_client(listener: OwnedFd) -> JoinHandle<()> {
    let listener = socket2::Socket::from(listener);
    let (says, said) = mpsc::channel();
    let thread = thread::spawn(move || {
        let own = std::fs::read_link("/proc/thread-self");
        says.send(own).expect("the test waits");
        let mut client = loop {
            match listener.accept() {
                Ok((client, _)) => break client,
                // As on epoll, where all who share the socket share its mode.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut polled = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
                    poll(&mut polled, PollTimeout::NONE).expect("it is open");
                }
                Err(error) => panic!("{error}"),
            }
        };
        client.write_all(b"x").expect("the client waits");
    });
    let own = said
        .recv()
        .expect("it does not panic")
        .expect("it is Linux");
    let stat = std::path::Path::new("/proc").join(own).join("stat");
    let sleeps = || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") S "));
    while !sleeps() {
        thread::sleep(Duration::from_millis(1));
    }
    thread
}

fn connect(address: SocketAddr) -> io::Result<StdStream> {
    let client = StdStream::connect(address)?;
    client.set_read_timeout(Some(PATIENCE / 2))?;
    Ok(client)
}

fn connect_to_path(path: &std::path::Path) -> io::Result<StdUnixStream> {
    let client = StdUnixStream::connect(path)?;
    client.set_read_timeout(Some(PATIENCE / 2))?;
    Ok(client)
}

/// The `first` client is greeted by the thread. Some rings accept in the middle of any system call: then it is closed with the
/// listener, which takes no second.
fn assert_greeted<C: Read>(
    thread: JoinHandle<()>,
    mut first: C,
    connect: impl Fn() -> io::Result<C>,
) -> Result {
    let is_greeted = |client: &mut C| match client.read_exact(&mut [0]).map_err(|it| it.kind()) {
        Ok(()) => true,
        Err(io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => false,
        Err(kind) => panic!("a client waits beside a thread that waits for it: {kind}"),
    };
    if !is_greeted(&mut first) {
        assert!(is_greeted(&mut connect()?));
    }
    thread.join().expect("it has greeted");
    Ok(())
}

/// Has `stop` end the accepting of a listener, of whose socket the kernel tells it first.
async fn stops_beside_a_thread(stop: impl AsyncFnOnce(TcpListener)) -> Result {
    let socket = StdListener::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?;
    let listener = TcpListener::from(socket.try_clone()?);
    let mut accept = Box::pin(listener.accept());
    assert!(poll_once(&mut accept).await.is_none());
    turns().await;
    let thread = waits_for_client(socket.into());
    let client = connect(address)?;
    drop(accept);
    stop(listener).await;
    // What the kernel had accepted by then is closed.
    turns().await;
    assert_greeted(thread, client, || connect(address))
}

#[run_test(run_alone)]
async fn a_client_of_a_listener_that_is_dropped_goes_to_who_shares_the_socket() {
    stops_beside_a_thread(async |listener| drop(listener)).await?;
    let gives_away = async |listener: TcpListener| {
        // SAFETY: nothing else has the descriptor.
        drop(unsafe { OwnedFd::from_raw_fd(listener.into_raw_fd()) });
    };
    stops_beside_a_thread(gives_away).await?;
    stops_beside_a_thread(async |listener| drop(listener.into_parts().await)).await
}

#[run_test(run_alone)]
async fn a_client_of_an_accept_that_is_given_up_goes_to_who_shares_the_socket() {
    let mut kept = None;
    let keeps = async |listener: TcpListener| {
        turns().await;
        drop(poll_once(listener.accept()).await);
        kept = Some(listener);
    };
    stops_beside_a_thread(keeps).await
}

#[run_test(alone)]
fn a_client_of_an_executor_that_ends_goes_to_who_shares_the_socket() {
    let executor = LocalExecutor::default();
    let waiting = executor.run(async {
        let socket = StdListener::bind("127.0.0.1:0")?;
        let address = socket.local_addr()?;
        let listener = Rc::new(TcpListener::from(socket.try_clone()?));
        let accepts = Rc::clone(&listener);
        spawn_local(async move { accepts.accept().await }).detach();
        turns().await;
        let thread = waits_for_client(socket.into());
        Result::Ok((listener, address, thread, connect(address)?))
    });
    let (listener, address, thread, client) = waiting.expect("there is a port");
    drop(executor);
    run(async {
        drop(poll_once(listener.shared_accept()).await);
        Ok(())
    });
    assert_greeted(thread, client, || connect(address)).expect("it listens");
}

#[run_test(run_alone)]
async fn a_client_of_a_unix_listener_that_stops_goes_to_who_shares_the_socket() {
    let place = tempfile::tempdir()?;
    for is_dropped in [false, true] {
        let path = place.path().join(is_dropped.to_string());
        let socket = StdUnixListener::bind(&path)?;
        let others = socket.try_clone()?;
        let listener = UnixListener::from(socket);
        let mut accept = Box::pin(listener.accept());
        assert!(poll_once(&mut accept).await.is_none());
        turns().await;
        let thread = waits_for_client(others.into());
        let client = connect_to_path(&path)?;
        drop(accept);
        let kept = (!is_dropped).then_some(listener);
        turns().await;
        if let Some(listener) = &kept {
            drop(poll_once(listener.accept()).await);
        }
        turns().await;
        assert_greeted(thread, client, || connect_to_path(&path))?;
        if let Some(listener) = &kept {
            // It is as it was.
            let _client = connect_to_path(&path)?;
            listener.accept().await?;
        }
    }
}

/// All tests here once more, with the kernel accepting in the middle of any system call.
#[run_test(alone)]
fn at_any_time() {
    const NAME: &str = "shared_socket::at_any_time";
    crate::common::again_with(NAME, &[("GLOMMIO_RING", "plain")], &["shared_socket::a_"]);
}
