//! What only HTTP/2 has: streams that share a connection.

use glommio::{Latency, Shares, executor};

use super::*;

#[test]
fn requests_are_answered() {
    run(is_served(Version::Http2));
}

#[test]
fn a_body_is_echoed() {
    run(is_echoed(Version::Http2));
}

/// The second is answered while the first waits.
#[test]
fn streams_do_not_wait_for_one_another() {
    run(async {
        let server = Server::start(Version::Http2)?;
        let (client, connection) = Client::connect(Version::Http2, server.address).await?;
        let Client::Http2(sender) = client else {
            unreachable!("it was asked for");
        };
        let ask = |path: String| {
            let mut sender = sender.clone();
            spawn_local(async move {
                let response = sender.send_request(get(&path)).await?;
                text(response).await
            })
        };
        let slow = ask("/slow/60000".into());
        while server.begun.get() == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        let quick: Vec<_> = (0..50).map(|n| ask(format!("/slow/{}", n % 3))).collect();
        for answer in quick {
            assert_eq!(answer.await?, "at last");
        }
        assert_eq!((server.begun.get(), server.answered.get()), (51, 50));
        // Giving it up resets its stream, and nothing else.
        slow.cancel().await;
        assert_eq!(ask("/".into()).await?, "hello");
        drop(sender);
        connection.cancel().await;
        server.stop().await;
        Ok(())
    });
}

/// The tasks of the streams run in a queue of their own.
#[test]
fn streams_may_have_a_task_queue() {
    run(async {
        let queue = executor().create_task_queue(Shares::Static(10), Latency::NotImportant, "http");
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let ran_in = Rc::new(Cell::new(None));
        let seen = Rc::clone(&ran_in);
        let serving = spawn_local(async move {
            let stream = listener.accept().await.expect("a client connects");
            let http = server::conn::http2::Builder::new(GlommioExecutor::in_queue(queue));
            let service = service_fn(move |_| {
                let seen = Rc::clone(&seen);
                async move {
                    glommio::executor().yield_now().await;
                    seen.set(Some(executor().current_task_queue()));
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
                }
            });
            let connection = http.serve_connection(GlommioIo::new(stream), service);
            connection.await
        });
        let (mut client, connection) = Client::connect(Version::Http2, address).await?;
        client.send(get("/")).await?;
        assert_eq!(ran_in.get(), Some(queue));
        drop(client);
        connection.await?;
        serving.await?;
        Ok(())
    });
}
