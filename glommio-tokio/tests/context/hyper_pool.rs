//! hyper-util's pool of connections, with its tasks and timers on our executor.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use fragile::Fragile;
use glommio::net::TcpListener;
use glommio::spawn_local;
use glommio_hyper::{Connections, GlommioExecutor, GlommioIo, GlommioTimer};
use glommio_tokio::{Tokio, TokioExecutor, WithTokio};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Bytes;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper::{Response, Uri};
use hyper_util::client::legacy::Client;

use crate::run;

/// Counts what is spawned, and that it stays here. hyper-util wants it to be `Send`.
#[derive(Clone)]
struct Counting {
    spawned: std::sync::Arc<Fragile<Rc<Cell<usize>>>>,
    executor: GlommioExecutor,
}

impl<F> Executor<WithTokio<F>> for Counting
where
    WithTokio<F>: Future<Output: 'static> + 'static,
{
    fn execute(&self, future: WithTokio<F>) {
        let spawned = self.spawned.get();
        spawned.set(spawned.get() + 1);
        let here = thread::current().id();
        self.executor.execute(async move {
            let output = future.await;
            assert_eq!(thread::current().id(), here);
            drop(output);
        });
    }
}

#[test]
fn connections_of_a_pool_are_tasks_of_ours() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let uri: Uri = format!("http://{}/", listener.local_addr()?).parse()?;
        let connections = Connections::new();
        let accepted = Rc::new(Cell::new(0));
        let (count, watched) = (Rc::clone(&accepted), connections.clone());
        let server = spawn_local(async move {
            while let Ok(stream) = listener.accept().await {
                count.set(count.get() + 1);
                let service = service_fn(|_| async {
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
                });
                let connection = watched.http1();
                let connection = connection.serve_connection(GlommioIo::new(stream), service);
                spawn_local(watched.watch(connection)).detach();
            }
        });

        let tokio = Tokio::start()?;
        let spawned = Rc::new(Cell::new(0));
        let tasks = Counting {
            spawned: std::sync::Arc::new(Fragile::new(Rc::clone(&spawned))),
            executor: GlommioExecutor::new(),
        };
        let client = Client::builder(TokioExecutor::new(tokio.clone(), tasks))
            .pool_idle_timeout(Duration::from_millis(20))
            .pool_timer(GlommioTimer)
            .timer(GlommioTimer)
            .build_http::<Empty<Bytes>>();
        tokio
            .with(async {
                for _ in 0..5 {
                    let response = client.get(uri.clone()).await?;
                    assert_eq!(response.into_body().collect().await?.to_bytes(), "hello");
                }
                Ok::<_, crate::Error>(())
            })
            .await?;
        assert_eq!(accepted.get(), 1, "the connection was reused");
        assert!(spawned.get() > 0, "its task went to our executor");
        // The pool's timer is one of ours. It closes what is idle, and the server sees it.
        while connections.open() > 0 {
            glommio::timer::sleep(Duration::from_millis(5)).await;
        }
        drop(client);
        server.cancel().await;
        Ok(())
    });
}
