//! Each kind of thing that a task can wait for is named.

use glommio::channels::{broadcast, shared_channel, watch};
use glommio::debugging::{Dump, Resource};
use glommio::io::remove;
use glommio::process::Command;
use glommio::sync::{CancellationToken, Gate, Mutex, RwLock, Semaphore};
use glommio::timer::{DelayQueue, timeout};

use crate::common::prelude::*;
use crate::{named, resource, settle, task};

type Result<T> = std::result::Result<T, GlommioError<()>>;

/// The operation, and what it is done to.
fn operation(resource: &Resource) -> (&'static str, &str) {
    match resource {
        Resource::Operation { name, target, .. } => (name, target),
        other => panic!("{other}"),
    }
}

fn channel(resource: &Resource) -> &'static str {
    match resource {
        Resource::Channel { what, .. } => what,
        other => panic!("{other}"),
    }
}

#[run_test]
async fn a_timer_says_how_long_it_takes_yet() {
    let _nap = named("nap", sleep(Duration::from_secs(3600)));
    let dump = settle().await;
    let Resource::Timer { left, .. } = resource(&dump, "nap") else {
        panic!("{dump}");
    };
    assert!(left <= Duration::from_secs(3600), "{left:?}");
    assert!(left > Duration::from_secs(3000), "{left:?}");
}

#[run_test]
async fn a_queue_of_delays_waits_for_its_first_item() {
    let _due = named("due", async {
        let mut queue = DelayQueue::new();
        queue.insert(1, Duration::from_secs(7200));
        queue.next().await
    });
    let dump = settle().await;
    assert!(matches!(resource(&dump, "due"), Resource::Timer { .. }));
}

#[run_test]
async fn a_stream_has_its_peer() -> Result<()> {
    let (listener, address) = bound()?;
    let accepting = named("accepting", async move { listener.accept().await });
    let dump = settle().await;
    let resource_of = resource(&dump, "accepting");
    let (name, target) = operation(&resource_of);
    assert_eq!(
        (name, target),
        ("a connection of", &*format!("socket {address}"))
    );

    let client = TcpStream::connect(address).await?;
    let here = client.local_addr()?;
    let mut server = accepting.await?;
    let _reading = named("reading", async move {
        let mut buffer = [0; 8];
        server.read(&mut buffer).await
    });
    let dump = settle().await;
    let resource_of = resource(&dump, "reading");
    let (_, target) = operation(&resource_of);
    assert_eq!(target, format!("socket {address} (peer {here})"));
}

/// After some waits the socket has one operation for all of them.
#[run_test]
async fn a_stream_that_waits_often_has_its_peer() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?).await?;
    let mut server = listener.accept().await?;
    let here = client.local_addr()?;
    let _reading = named("reading", async move {
        let mut byte = [0];
        while server.read(&mut byte).await? > 0 {}
        Ok::<_, std::io::Error>(())
    });
    for _ in 0..20 {
        client.write_all(b"x").await?;
        sleep(Duration::from_millis(1)).await;
    }
    let dump = settle().await;
    let resource_of = resource(&dump, "reading");
    let (_, target) = operation(&resource_of);
    assert!(target.ends_with(&format!("(peer {here})")), "{target}");
}

#[run_test]
async fn a_time_limit_is_there_beside_the_socket() -> Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?;
    socket.set_read_timeout(Some(Duration::from_secs(3600)))?;
    let _receiving = named(
        "receiving",
        async move { socket.recv_from(&mut [0; 8]).await },
    );
    let dump = settle().await;
    let seen = task(&dump, "receiving");
    let text = seen.to_string();
    assert_eq!(seen.waits_for.len(), 2, "{text}");
    assert!(text.contains(&format!("socket {address}")), "{text}");
    assert!(
        text.contains("a timer in 36") || text.contains("a timer in 35"),
        "{text}"
    );
}

#[run_test]
async fn a_stream_that_is_full_waits_for_room() -> Result<()> {
    let (mut sender, _receiver) = UnixStream::pair()?;
    let _writing = named("writing", async move {
        sender.write_all(&vec![0; 64 << 20]).await
    });
    let dump = settle().await;
    let resource_of = resource(&dump, "writing");
    assert_eq!(operation(&resource_of).0, "room to write to");
}

#[run_test]
async fn a_file_has_its_path() -> Result<()> {
    let directory = tempfile::tempdir().expect("a place for it");
    let path = directory.path().join("data");
    let file = Rc::new(BufferedFile::create(&path).await?);
    let syncing = named("syncing", {
        let file = Rc::clone(&file);
        async move { file.fdatasync().await }
    });
    // Within the turn it was not even handed over.
    let dump = glommio::debugging::dump();
    let resource_of = resource(&dump, "syncing");
    assert_eq!(
        operation(&resource_of),
        ("syncing", &*path.to_string_lossy())
    );
    syncing.await?;
    let removing = named("removing", {
        let path = path.clone();
        async move { remove(&path).await }
    });
    let dump = glommio::debugging::dump();
    let resource_of = resource(&dump, "removing");
    assert_eq!(
        operation(&resource_of),
        ("removing", &*path.to_string_lossy())
    );
    removing.await?;
    let opening = named("opening", async move {
        OpenOptions::new().read(true).buffered_open(&path).await
    });
    let dump = glommio::debugging::dump();
    assert_eq!(operation(&resource(&dump, "opening")).0, "opening");
    assert!(opening.await.is_err(), "it was removed");
}

#[run_test]
async fn a_child_process_has_its_number() -> Result<()> {
    let mut child = Command::new("sleep")
        .arg("3600")
        .kill_on_drop(true)
        .spawn()?;
    let number = child.id();
    let _waiting = named("waiting", async move { child.wait().await });
    let dump = settle().await;
    let resource_of = resource(&dump, "waiting");
    let (_, target) = operation(&resource_of);
    let number = number.expect("it runs").to_string();
    assert!(
        target.contains("child process") && target.contains(&number),
        "{target}"
    );
}

#[run_test]
async fn locks_have_their_holders() {
    let mutex = Rc::new(Mutex::new(0));
    let lock = Rc::new(RwLock::new(0));
    let semaphore = Rc::new(Semaphore::new(1));
    let _holder = named("holder", {
        let (mutex, lock, semaphore) = (mutex.clone(), lock.clone(), semaphore.clone());
        async move {
            let _all = (
                mutex.lock().await,
                lock.write().await,
                semaphore.acquire_permit(1).await,
            );
            std::future::pending::<()>().await;
        }
    });
    let _mutex = named("mutex", async move { drop(mutex.lock().await) });
    let _lock = named("lock", async move { drop(lock.read().await) });
    let _semaphore = named("semaphore", async move {
        drop(semaphore.acquire_permit(1).await);
    });
    let dump = settle().await;
    let holder_id = task(&dump, "holder").id;
    let expected = [
        ("mutex", "mutex"),
        ("lock", "read-write lock"),
        ("semaphore", "semaphore"),
    ];
    for (name, what) in expected {
        match resource(&dump, name) {
            Resource::Lock { kind, holder, .. } => {
                assert_eq!((kind, holder), (what, Some(holder_id)), "{dump}");
            }
            other => panic!("{other}"),
        }
    }
    assert!(task(&dump, "holder").waits_for.is_empty(), "{dump}");
    assert!(
        dump.to_string()
            .contains("something that is not of glommio")
    );
}

#[run_test]
async fn of_several_holders_none_is_named() {
    let lock = Rc::new(RwLock::new(0));
    let reader = || {
        let lock = Rc::clone(&lock);
        spawn_local(async move {
            let _read = lock.read().await;
            std::future::pending::<()>().await;
        })
    };
    let holder = |dump: &Dump| match resource(dump, "writer") {
        Resource::Lock { holder, .. } => holder,
        other => panic!("{other}"),
    };
    let readers = [reader(), reader()];
    let _writer = named("writer", {
        let lock = Rc::clone(&lock);
        async move { drop(lock.write().await) }
    });
    assert_eq!(holder(&settle().await), None);
    let [first, _second] = readers;
    first.cancel().await;
    assert_eq!(holder(&settle().await), None, "which is left is not known");
}

#[run_test]
async fn channels_say_which_end_waits() -> Result<()> {
    let (sender, receiver) = local_channel::new_bounded::<u8>(1);
    let _sending = named(
        "sending",
        async move { while sender.send(1).await.is_ok() {} },
    );
    let (idle, empty) = local_channel::new_unbounded::<u8>();
    let _receiving = named("receiving", async move { empty.recv().await });
    let (kept, oneshot) = oneshot::oneshot::<u8>();
    let _once = named("once", oneshot);
    let (watched, mut watcher) = watch::watch(1);
    let _watching = named("watching", async move { watcher.changed().await });
    let (announcing, mut listener) = broadcast::broadcast::<u8>(4);
    let _listening = named("listening", async move { listener.recv().await });
    let token = CancellationToken::new();
    let _cancelled = named("cancelled", {
        let token = token.clone();
        async move { token.cancelled().await }
    });
    let gate = Gate::new();
    let pass = gate.enter()?;
    let _closing = named("closing", gate.close());
    let dump = settle().await;
    let expected = [
        ("sending", "room in a local channel"),
        ("receiving", "a value of a local channel"),
        ("once", "the value of a oneshot channel"),
        ("watching", "a change of a watched value"),
        ("listening", "a value of a broadcast channel"),
        ("cancelled", "a cancellation"),
        ("closing", "the closing of a gate"),
    ];
    for (name, what) in expected {
        assert_eq!(channel(&resource(&dump, name)), what, "{dump}");
    }
    drop((receiver, idle, kept, watched, announcing, pass));
}

#[run_test]
async fn a_channel_between_executors_says_so() {
    let (sender, receiver) = shared_channel::new_bounded::<u8>(1);
    let (end, mut ended) = oneshot::shared::<()>();
    let other = std::thread::spawn(move || {
        run(async move {
            let sender = sender.connect().await;
            let _ = end.send(());
            sender.send(1).await.expect("it is received");
            std::future::pending::<()>().await;
        });
    });
    let connecting = named("connecting", receiver.connect());
    let receiver = connecting.await;
    let _receiving = named("receiving", async move {
        receiver.recv().await;
        receiver.recv().await
    });
    while ended.try_recv().is_err() {
        sleep(Duration::from_millis(1)).await;
    }
    // A receiver that has just begun to wait looks again by itself for a while.
    let dump = loop {
        let dump = settle().await;
        let seen = task(&dump, "receiving");
        if seen.state == glommio::debugging::TaskState::Waiting {
            break dump;
        }
        sleep(Duration::from_millis(1)).await;
    };
    let seen = task(&dump, "receiving");
    let what: Vec<_> = (seen.waits_for.iter())
        .filter(|it| matches!(it, Resource::Channel { .. }))
        .map(channel)
        .collect();
    assert_eq!(what, ["a value of a shared channel"], "{seen}");
    drop(other);
}

#[run_test]
async fn handles_have_the_task_that_they_are_of() {
    let awaited = named("awaited", std::future::pending::<()>());
    let _awaiting = named("awaiting", awaited);
    let dump = settle().await;
    let id = task(&dump, "awaited").id;
    assert!(
        matches!(resource(&dump, "awaiting"), Resource::Task { id: it, .. } if it == id),
        "{dump}"
    );
}

#[run_test]
async fn a_blocking_call_is_one() {
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let calling = named("calling", async {
        executor().spawn_blocking(move || ended.recv()).await
    });
    let dump = settle().await;
    assert_eq!(resource(&dump, "calling"), Resource::BlockingCall);
    drop(end);
    assert!(calling.await.is_err());
}

#[run_test]
async fn what_other_crates_wait_for_is_not_known() {
    let _waiting = named("waiting", std::future::pending::<()>());
    let dump = settle().await;
    assert!(task(&dump, "waiting").waits_for.is_empty(), "{dump}");
}

#[run_test]
async fn of_many_things_the_first_four_are_named() {
    let _all = named("all", async {
        let sleeps = (0..10).map(|it| Box::pin(sleep(Duration::from_secs(3600 + it))));
        let mut sleeps: Vec<_> = sleeps.collect();
        std::future::poll_fn(|cx| {
            for sleep in &mut sleeps {
                let _ = sleep.as_mut().poll(cx);
            }
            std::task::Poll::<()>::Pending
        })
        .await
    });
    let dump = settle().await;
    let seen = task(&dump, "all");
    assert_eq!((seen.waits_for.len(), seen.more), (4, 6), "{seen}");
}

#[run_test]
async fn a_wait_that_was_given_up_is_not_named() -> Result<()> {
    let (socket, _peer) = UnixStream::pair()?;
    let number = socket.as_raw_fd();
    let mutex = Rc::new(Mutex::new(0));
    let _held = mutex.lock().await?;
    let _task: Task<()> = named("moved on", {
        let mutex = Rc::clone(&mutex);
        async move {
            let mut socket = socket;
            let mut byte = [0];
            let read = timeout(Duration::from_millis(1), async move {
                socket
                    .read(&mut byte)
                    .await
                    .map_err(GlommioError::<()>::from)
            });
            assert!(read.await.is_err(), "nothing is sent");
            drop(mutex.lock().await);
        }
    });
    let dump = loop {
        sleep(Duration::from_millis(1)).await;
        let dump = settle().await;
        if matches!(
            task(&dump, "moved on").waits_for[..],
            [Resource::Lock { .. }]
        ) {
            break dump;
        }
    };
    assert!(!dump.to_string().contains(&format!("socket {number}")));
}
