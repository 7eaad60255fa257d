//! A paused clock beside work that takes real time: files, blocking calls, sockets, other threads.

use glommio::channels::shared_channel;
use glommio::future::timeout;
use glommio::io::remove;
use glommio::time;

use super::{SECOND, run_paused};
use crate::common::prelude::*;

const MICROSECOND: Duration = Duration::from_micros(1);

#[run_test(run_paused)]
async fn it_stands_still_until_a_blocking_call_is_over() {
    let start = time::now();
    for _ in 0..20 {
        let call = executor().spawn_blocking(|| thread::sleep(Duration::from_millis(1)));
        assert!(timeout(MICROSECOND, call).await.is_ok());
    }
    let calls: Vec<_> = (0..20)
        .map(|n| spawn_local(timeout(MICROSECOND, executor().spawn_blocking(move || n))))
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.ok(), Some(n));
    }
    assert_eq!(time::now(), start);
    // Also if nothing waits for it.
    let (begun, over) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let call = {
        let (begun, over) = (Arc::clone(&begun), Arc::<AtomicBool>::clone(&over));
        executor().spawn_blocking(move || {
            begun.store(true, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(5));
            over.store(true, Ordering::SeqCst);
        })
    };
    let call = spawn_local(call);
    while !begun.load(Ordering::SeqCst) {
        yield_now().await;
    }
    drop(call);
    sleep(MICROSECOND).await;
    assert!(over.load(Ordering::SeqCst));
}

#[run_test(run_paused)]
async fn it_stands_still_until_file_operations_are_over() {
    let start = time::now();
    let folder = tempfile::tempdir_in(".").expect("the folder of the crate is writable");
    let path = folder.path().join("file");
    let limit = |done: bool| assert!(done, "the clock moved");
    for _ in 0..5 {
        let created = timeout(MICROSECOND, BufferedFile::create(&path)).await;
        let file = created.expect("in time").expect("the folder is there");
        let written = timeout(MICROSECOND, file.write_at(vec![7; 1 << 20], 0)).await;
        limit(written.is_ok());
        limit(timeout(MICROSECOND, file.fdatasync()).await.is_ok());
        limit(timeout(MICROSECOND, file.close()).await.is_ok());
        let opened = timeout(MICROSECOND, DmaFile::open(&path)).await;
        let file = opened.expect("in time").expect("it was created");
        let read = timeout(MICROSECOND, file.read_at(0, 1 << 20)).await;
        assert_eq!(read.expect("in time").expect("it is there").len(), 1 << 20);
        limit(timeout(MICROSECOND, file.close()).await.is_ok());
        limit(timeout(MICROSECOND, remove(&path)).await.is_ok());
    }
    assert_eq!(time::now(), start);
}

#[run_test(run_paused)]
async fn it_stands_still_until_a_name_is_looked_up() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let start = time::now();
    let connected = TcpStream::connect_timeout(("localhost", port), SECOND).await;
    connected.expect("it listens, and the name is known everywhere");
    assert_eq!(time::now(), start);
}

/// Answers each byte after `delay`.
async fn serve(listener: TcpListener, delay: Duration) -> io::Result<()> {
    loop {
        let mut stream = listener.accept().await?;
        spawn_local(async move {
            let mut byte = [0];
            while stream.read(&mut byte).await? > 0 {
                sleep(delay).await;
                stream.write_all(&byte).await?;
            }
            io::Result::Ok(())
        })
        .detach();
    }
}

#[run_test(run_paused)]
async fn time_limits_of_sockets_go_by_it() {
    let (listener, address) = bound().expect("a port is free");
    spawn_local(serve(listener, 10 * SECOND)).detach();
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream
        .set_read_timeout(Some(11 * SECOND))
        .expect("it is not zero");
    let mut byte = [0];
    for n in 0..100 {
        let start = time::now();
        stream.write_all(&[n]).await.expect("the server reads");
        stream
            .read_exact(&mut byte)
            .await
            .expect("it answers in time");
        assert_eq!(byte, [n]);
        assert_eq!(time::now() - start, 10 * SECOND);
    }
    stream
        .set_read_timeout(Some(9 * SECOND))
        .expect("it is not zero");
    let start = time::now();
    stream.write_all(&[7]).await.expect("the server reads");
    let error = stream.read_exact(&mut byte).await.expect_err("it is late");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(time::now() - start, 9 * SECOND);
    stream.read_exact(&mut byte).await.expect("it answers");
    assert_eq!(time::now() - start, 10 * SECOND);
}

/// More than the buffers of the kernel take, which moves the rest in its own time.
#[run_test(run_paused)]
async fn a_paused_clock_waits_for_what_is_on_its_way_over_loopback() {
    let (listener, address) = bound().expect("a port is free");
    spawn_local(async move {
        loop {
            let (reader, writer) = futures_lite::io::split(listener.accept().await?);
            spawn_local(futures_lite::io::copy(reader, writer)).detach();
        }
        #[allow(unreachable_code, reason = "it has a type")]
        io::Result::Ok(())
    })
    .detach();
    let start = time::now();
    for bytes in [200_000, 1_000_000, 5_000_000] {
        for _ in 0..10 {
            let stream = TcpStream::connect(address).await.expect("it listens");
            stream
                .set_read_timeout(Some(SECOND))
                .expect("it is not zero");
            stream
                .set_write_timeout(Some(SECOND))
                .expect("it is not zero");
            let (mut reader, mut writer) = futures_lite::io::split(stream);
            let writing = spawn_local(async move { writer.write_all(&vec![7; bytes]).await });
            let mut answer = vec![0; bytes];
            let read = reader.read_exact(&mut answer).await;
            read.expect("it is answered in time");
            writing.await.expect("it is read in time");
        }
    }
    // On a machine that is busy for long the kernel may seem to be done.
    assert!(time::now() - start < 10 * SECOND);
}

#[run_test(run_paused)]
async fn datagrams_between_tasks_arrive_at_the_time_at_which_they_are_sent() {
    let socket = || UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let (sender, receiver) = (socket(), socket());
    let address = receiver.local_addr().expect("it is bound");
    receiver
        .set_read_timeout(Some(2 * SECOND))
        .expect("it is not zero");
    let sending = spawn_local(async move {
        for n in 0..100_u8 {
            sleep(SECOND).await;
            sender.send_to(&[n], address).await.expect("there is space");
        }
    });
    let start = time::now();
    for n in 0..100_u8 {
        let mut byte = [0];
        receiver
            .recv_from(&mut byte)
            .await
            .expect("it arrives in time");
        assert_eq!(byte, [n]);
        assert_eq!(time::now() - start, SECOND * (u32::from(n) + 1));
    }
    sending.await;
    let error = receiver
        .recv_from(&mut [0])
        .await
        .expect_err("no more is sent");
    assert!(matches!(error, GlommioError::IoError(it) if it.kind() == io::ErrorKind::TimedOut));
    assert_eq!(time::now() - start, 102 * SECOND);
}

#[run_test(run_paused)]
async fn a_time_limit_does_not_end_a_wait_for_another_thread_while_the_clock_is_held() {
    let start = time::now();
    for n in 0..10 {
        let (sender, receiver) = oneshot::shared();
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(2));
            sender.send(n)
        });
        let (held, more) = (time::hold(), time::hold());
        drop(more);
        let received = timeout(MICROSECOND, receiver).await;
        drop(held);
        assert!(matches!(received, Ok(Ok(it)) if it == n), "{received:?}");
        assert!(thread.join().expect("it does not panic").is_ok());
    }
    assert_eq!(time::now(), start);
    sleep(SECOND).await;
    assert_eq!(time::now() - start, SECOND);
}

/// Also if that is all that happens: no task is woken.
#[run_test(run_paused)]
async fn it_moves_on_once_another_thread_has_dropped_the_hold() {
    let start = time::now();
    let held = time::hold();
    let released = Arc::new(AtomicBool::new(false));
    let release = Arc::clone(&released);
    let thread = thread::spawn(move || {
        thread::sleep(Duration::from_millis(10));
        release.store(true, Ordering::SeqCst);
        drop(held);
    });
    time::advance(SECOND).await;
    assert!(released.load(Ordering::SeqCst));
    assert_eq!(time::now() - start, SECOND);
    thread.join().expect("it does not panic");
}

#[run_test]
fn a_clock_that_is_paused_while_it_is_held_stands_still() {
    // Without an executor there is none to hold.
    drop(time::hold());
    LocalExecutor::default().run(async {
        let held = time::hold();
        sleep(MICROSECOND).await;
        time::pause();
        let start = time::now();
        let tick = spawn_local(sleep(SECOND));
        let (sender, receiver) = oneshot::shared();
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(5));
            sender.send(())
        });
        receiver.await.expect("it is sent");
        assert_eq!(time::now(), start);
        assert!(thread.join().expect("it does not panic").is_ok());
        drop(held);
        tick.await;
        assert_eq!(time::now() - start, SECOND);
    });
}

/// There is nothing to move to: the thread sleeps until it is woken.
#[run_test]
fn other_threads_wake_it_when_there_is_no_deadline() {
    let (sender, receiver) = shared_channel::new_bounded(1);
    let thread = LocalExecutorBuilder::default().spawn(move || async move {
        let sender = sender.connect().await;
        for n in 0..20 {
            sleep(Duration::from_millis(1)).await;
            sender.send(n).await.expect("the receiver is there");
        }
    });
    run_paused(async || {
        let receiver = receiver.connect().await;
        for n in 0..20 {
            assert_eq!(receiver.recv().await, Some(n));
        }
        assert_eq!(receiver.recv().await, None);
    });
    thread
        .expect("a thread is free")
        .join()
        .expect("it does not panic");
}
