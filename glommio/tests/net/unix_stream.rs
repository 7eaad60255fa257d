//! Unix streams: connecting, and that they are streams in every respect.

use std::io::Read;
use std::net::Shutdown;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream as StdStream;

use super::unix_listener::{Full, Place};
use super::{abandon, io_kind, leaves_no_descriptor, run, run_in_child};
use crate::common::prelude::*;

#[run_test]
async fn a_pair_talks_both_ways_and_has_no_names() {
    let (mut one, mut other) = UnixStream::pair()?;
    for address in [one.local_addr()?, one.peer_addr()?, other.peer_addr()?] {
        assert!(address.is_unnamed());
    }
    let mut buf = [0; 5];
    for _ in 0..100 {
        one.write_all(b"there").await?;
        other.read_exact(&mut buf).await?;
        other.write_all(&buf).await?;
        one.read_exact(&mut buf).await?;
    }
    assert_eq!(&buf, b"there");
    assert!(format!("{one:?}").starts_with("UnixStream { fd: "));
}

#[run_test]
async fn both_ends_know_where_the_listener_is() {
    let place = Place::new();
    let listener = UnixListener::bind(place.path())?;
    let client = UnixStream::connect(place.path()).await?;
    let server = listener.accept().await?;
    assert_eq!(client.peer_addr()?.as_pathname(), Some(place.path()));
    assert_eq!(server.local_addr()?.as_pathname(), Some(place.path()));
    assert!(server.peer_addr()?.is_unnamed());
    assert!(client.local_addr()?.is_unnamed());
}

#[run_test]
async fn connecting_fails_with_what_is_wrong() {
    let place = Place::new();
    let refused = UnixStream::connect(place.path()).await;
    let error = refused.expect_err("there is nothing");
    assert_eq!(io_kind(&error), io::ErrorKind::NotFound);
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));

    drop(std::os::unix::net::UnixListener::bind(place.path())?);
    let refused = UnixStream::connect(place.path()).await;
    let error = refused.expect_err("no socket listens on the file");
    assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);

    for path in impossible_paths() {
        let error = UnixStream::connect(&path).await.expect_err("no such path");
        assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput, "{path:?}");
    }
}

/// Too long, with a NUL in the middle, and both for abstract names, of which only the length
/// counts.
pub(super) fn impossible_paths() -> Vec<PathBuf> {
    let mut too_long_name = vec![b'x'; 109];
    too_long_name[0] = 0;
    [vec![b'x'; 108], b"a/b\0c".to_vec(), too_long_name]
        .map(|bytes| PathBuf::from(std::ffi::OsString::from_vec(bytes)))
        .into()
}

/// The kernel returns `EAGAIN` to calls that do not wait; this one waits.
#[run_test]
async fn a_connect_waits_for_room_in_the_backlog() {
    let full = Full::new();
    let path = full.path().to_owned();
    let waits = spawn_local(async move { UnixStream::connect(path).await });
    rests().await;
    let (_place, listener) = full.into_listener();
    let _first = listener.accept().await?;
    let mut client = waits.await?;
    client.write_all(b"in").await?;
    loop {
        let mut server = listener.accept().await?;
        let mut buf = [0; 2];
        if server.read(&mut buf).await? == 2 {
            assert_eq!(&buf, b"in");
            return Ok(());
        }
    }
}

/// The executor has nothing to do for a while, whatever waits.
pub(super) async fn rests() {
    let cpu = || {
        let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
        Duration::from(clock.now().expect("every thread has a clock"))
    };
    let before = cpu();
    sleep(Duration::from_millis(300)).await;
    let used = cpu() - before;
    // One that spins has what others leave it, which beside other tests is not all.
    let limit = patient(Duration::from_millis(30)).min(Duration::from_millis(150));
    assert!(used < limit, "busy for {used:?} of 300 ms");
}

/// Threads of the kernel that work for what this thread has submitted.
fn kernel_threads() -> usize {
    let name = format!("iou-wrk-{}", nix::unistd::gettid());
    let tasks = std::fs::read_dir("/proc/self/task").expect("there is /proc");
    // Others may end meanwhile.
    let names = tasks.filter_map(|it| std::fs::read_to_string(it.ok()?.path().join("comm")).ok());
    names.filter(|it| it.trim_end() == name).count()
}

#[run_test]
async fn connects_to_a_slow_server_take_no_thread_each() {
    const CLIENTS: usize = 100;
    let full = Full::new();
    let before = kernel_threads();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let path = full.path().to_owned();
            spawn_local(async move { UnixStream::connect(path).await })
        })
        .collect();
    sleep(Duration::from_millis(50)).await;
    let threads = kernel_threads() - before;
    assert_eq!(threads, 0, "for {CLIENTS} clients that wait");
    let all = full.clients() + CLIENTS;
    let (_place, listener) = full.into_listener();
    for _ in 0..all {
        listener.accept().await?;
    }
    for client in clients {
        client.await?;
    }
}

#[run_test]
async fn a_connect_that_waits_hears_that_the_listener_is_gone() {
    let full = Full::new();
    let path = full.path().to_owned();
    let waits = spawn_local(async move { UnixStream::connect(path).await });
    sleep(Duration::from_millis(20)).await;
    // The file stays, as it does without us.
    let (_place, listener) = full.into_listener();
    drop(listener);
    let error = waits.await.expect_err("the listener was closed");
    assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);
    Ok(())
}

#[run_test]
async fn a_connect_given_up_leaves_no_client_behind() {
    let full = Full::new();
    for milliseconds in [0, 0, 1, 10] {
        let mut given_up = Box::pin(UnixStream::connect(full.path()));
        assert!(poll_once(&mut given_up).await.is_none());
        sleep(Duration::from_millis(milliseconds)).await;
        assert!(poll_once(&mut given_up).await.is_none());
    }
    sleep(Duration::from_millis(20)).await;
    let clients = full.clients();
    let (_place, listener) = full.into_listener();
    for _ in 0..clients {
        drop(listener.accept().await?);
    }
    abandon(listener.accept()).await;
}

#[run_test(leaves_no_descriptor)]
fn sockets_are_closed_with_what_they_waited_for() {
    LocalExecutor::default().run(async {
        let full = Full::new();
        for _ in 0..20 {
            abandon(UnixStream::connect(full.path())).await;
        }
        let (mut one, _other) = UnixStream::pair().expect("sockets can be made");
        abandon(one.read(&mut [0; 8])).await;
        abandon(one.peek(&mut [0; 8])).await;
        let (place, listener) = full.into_listener();
        drop(listener.shared_accept().await);
        drop((place, listener));
        let listener = UnixListener::bind("").expect("the kernel finds a name");
        abandon(listener.accept()).await;
        let migrates = one.into_accepted().bind_to_executor();
        drop(migrates);
    });
}

#[run_test]
async fn a_shutdown_ends_waits_here_and_there() {
    let (one, mut other) = UnixStream::pair()?;
    let one = Rc::new(one);
    let waiting = Rc::clone(&one);
    let here = spawn_local(async move { waiting.peek(&mut [0]).await });
    let there = spawn_local(async move { other.read(&mut [0]).await });
    sleep(Duration::from_millis(2)).await;
    one.shutdown(Shutdown::Read).await?;
    assert_eq!(here.await?, 0);
    poll_fn(|cx| one.poll_shutdown(cx, Shutdown::Both)).await?;
    assert_eq!(there.await?, 0);

    let plain = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    let never_connected = UnixStream::from(plain);
    never_connected.shutdown(Shutdown::Both).await?;
    let error = never_connected.peer_addr().expect_err("there is no peer");
    assert_eq!(io_kind(&error), io::ErrorKind::NotConnected);
}

#[run_test(run_in_child)]
async fn the_peer_is_the_process_that_connected() {
    let place = Place::new();
    let listener = UnixListener::bind(place.path())?;
    let ours = UnixStream::connect(place.path()).await?;
    let own = i32::try_from(std::process::id()).ok();
    for peer in [ours.peer_cred()?, listener.accept().await?.peer_cred()?] {
        assert_eq!(peer.pid(), own);
        // SAFETY: these calls take nothing.
        let own = unsafe { (libc::geteuid(), libc::getegid()) };
        assert_eq!((peer.uid(), peer.gid()), own);
    }
    // SAFETY: the forked process has one thread, connects, waits, and ends.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        let is_served = StdStream::connect(place.path()).and_then(|mut it| it.read(&mut [0]));
        // SAFETY: always allowed. No destructors of what belongs to the parent.
        unsafe { libc::_exit(i32::from(is_served.is_err())) };
    }
    let theirs = listener.accept().await?.buffered();
    assert_eq!(theirs.peer_cred()?.pid(), Some(forked));
    drop(theirs);
    // SAFETY: the call is given no memory to write to.
    let waited = unsafe { libc::waitpid(forked, std::ptr::null_mut(), 0) };
    assert_eq!(waited, forked);
}
