//! Handlers that panic: their connection ends, and the server goes on.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use super::*;

/// A local of a handler, or what its panic carries.
pub struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        // While another panic unwinds it would abort the process.
        assert!(std::thread::panicking(), "in a destructor");
    }
}

/// Ends with an error, or with the end of the stream.
async fn is_not_answered(client: &mut Client<Full<Bytes>>, path: &str) {
    match client.send(get(path)).await {
        Err(_) => {}
        Ok(response) => drop(text(response).await.expect_err("its body fails")),
    }
}

async fn goes_on_after(path: &str, panics: u64) -> Result {
    for version in VERSIONS {
        let server = Server::start(version)?;
        let (mut other, other_connection) = Client::connect(version, server.address).await?;
        assert_eq!(text(other.send(get("/")).await?).await?, "hello");
        for _ in 0..2 {
            let (mut client, connection) = Client::connect(version, server.address).await?;
            assert_eq!(text(client.send(get("/")).await?).await?, "hello");
            let before = server.connections.panics();
            is_not_answered(&mut client, path).await;
            // The server closes it: nothing else would end it, as the client is still there.
            let _ended = connection.await;
            assert_eq!(server.connections.panics() - before, panics, "{version:?}");
            // Another connection goes on.
            assert_eq!(text(other.send(get("/")).await?).await?, "hello");
        }
        drop(other);
        other_connection.await?;
        server.stop().await;
    }
    Ok(())
}

#[test]
fn a_server_goes_on_after_a_panic_in_a_handler() {
    run(goes_on_after("/panic/later", 1));
}

/// In the call that makes the future of the answer: with HTTP/2, in the connection's own task.
#[test]
fn a_server_goes_on_after_a_panic_in_a_service() {
    run(goes_on_after("/panic/at-once", 1));
}

#[test]
fn a_server_goes_on_after_a_panic_in_a_destructor() {
    run(goes_on_after("/panic/in-drop", 1));
}

/// What the panic carries panics when it is dropped.
#[test]
fn a_server_goes_on_after_a_panic_that_panics() {
    run(goes_on_after("/panic/twice", 1));
}

/// Spawns as hyper does, a task that belongs to the connection that is being polled.
pub fn spawn_panicking() {
    let task = async {
        sleep(Duration::from_millis(10)).await;
        panic!("in a task, as asked");
    };
    hyper::rt::Executor::execute(&GlommioExecutor::new(), task);
}

/// It is idle by then, and has to be woken.
#[test]
fn a_connection_ends_after_a_panic_in_a_task_that_it_has_spawned() {
    run(async {
        let server = Server::start(Version::Http1)?;
        for panics in 1..=2 {
            let (mut client, connection) = Client::connect(Version::Http1, server.address).await?;
            let response = client.send(get("/panic/in-task")).await?;
            assert_eq!(text(response).await?, "hello");
            // With the client still there.
            connection.await?;
            assert_eq!(server.connections.panics(), panics);
        }
        server.stop().await;
        Ok(())
    });
}

/// The client is told that the connection ends, and what has begun is answered before.
#[test]
fn other_streams_of_the_connection_are_answered() {
    run(async {
        let server = Server::start(Version::Http2)?;
        let (client, connection) = Client::connect(Version::Http2, server.address).await?;
        let Client::Http2(mut sender) = client else {
            unreachable!("it was asked for");
        };
        let slow = sender.send_request(get("/slow/1000"));
        let slow = spawn_local(async move { text(slow.await?).await });
        while server.begun.get() == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        let panicking = sender.send_request(get("/panic/later")).await;
        panicking.expect_err("it is reset");
        assert_eq!(server.answered.get(), 0, "the other one still runs");
        assert_eq!(slow.await?, "at last");
        // With the sender still there.
        connection.await?;
        assert_eq!(server.connections.panics(), 1);
        server.stop().await;
        drop(sender);
        Ok(())
    });
}

/// `/` of an executor that lets panics unwind, as it does without [`Connections`].
#[test]
fn a_panic_unwinds_if_that_is_wanted() {
    for version in VERSIONS {
        for path in ["/panic/later", "/panic/at-once"] {
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                run(async {
                    let connections = Connections::builder().unwind_panics(true).build();
                    let server = Server::start_with(version, connections)?;
                    let (mut client, _connection) =
                        Client::connect(version, server.address).await?;
                    is_not_answered(&mut client, path).await;
                    std::future::pending::<Result>().await
                });
            }));
            let payload = unwound.expect_err("`run` panics");
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            assert!(text.is_some_and(|it| it.contains("as asked")), "{text:?}");
        }
    }
}

/// After `run` has unwound, nothing of it is left on the thread.
#[test]
fn a_panic_that_has_unwound_leaves_nothing_behind() {
    a_panic_unwinds_if_that_is_wanted();
    run(is_served(Version::Http2));
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_is_logged() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    // While there is one subscriber alone, `tracing` asks the thread that first comes to an event
    // whether anybody wants it, and keeps the answer for all threads.
    let _another = tracing::Dispatch::new(tracing_subscriber::registry());
    tracing::subscriber::with_default(subscriber, || run(goes_on_after("/panic/later", 1)));
    let bytes = log.0.lock().expect("not poisoned").clone();
    let text = String::from_utf8(bytes).expect("a log is text");
    let lines = text.lines().filter(|line| line.contains("ERROR"));
    let lines: Vec<_> = lines.filter(|it| it.contains("has panicked")).collect();
    assert_eq!(lines.len(), 4, "twice for each version: {text}");
    assert!(
        lines.iter().all(|it| it.contains("later, as asked")),
        "{text}"
    );
}
