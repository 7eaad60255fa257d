//! A message queue over TCP: topics, groups of consumers, acks with deadlines, dead letters.
//!
//! ```console
//! $ cargo run --release -p examples --features timing-wheel --bin broker -- --port 7100
//! listening on 127.0.0.1:7100
//! $ printf '\23\0\0\0P\4jobs12345678hello' | nc -N 127.0.0.1 7100 | tail -c 9; echo
//! C12345678
//! ^C
//! published 1, refused 0, delivered 0, redelivered 0, acked 0, late acks 0, dead 0, in flight 0, waiting 1
//! ```
//!
//! [`examples::broker::protocol`] says what clients send and get: here one has published `hello` to the
//! topic `jobs` as its number 12345678, which the broker has confirmed. The broker delivers a message to one consumer of
//! each group, and holds it in flight until the ack comes. Without an ack in time the message is
//! delivered again, and after `--attempts` deliveries it goes to the topic `NAME.dead`, which is
//! read as any other. Each message in flight has a timer, so a hundred thousand of them are
//! nothing special; `examples/src/broker/queues.rs` has them. Messages live in memory.
//!
//! Ctrl-C ends the broker in three steps: it accepts no more connections and refuses to publish;
//! delivers nothing more and waits for the acks of what is in flight, until their deadlines; and closes
//! the connections, when all replies have been sent. The last line says how many messages are lost, as
//! they still waited.

#![forbid(unsafe_code)]

use std::error::Error;
use std::rc::Rc;

use clap::Parser;
use examples::broker::{Broker, Counts, Limits};
use examples::serving::{Serving, Shard};
use glommio::spawn_local;
use glommio::sync::{CancellationToken, Gate};

/// Brokers messages between TCP clients, on one executor.
#[derive(Clone, Copy, Debug, Parser)]
struct Options {
    #[command(flatten)]
    serving: Serving,

    #[command(flatten)]
    limits: Limits,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::parse();
    options.serving.shards = Some(1);
    for counts in options
        .serving
        .run("", move |shard| run(shard, options.limits))?
    {
        println!("{counts}");
    }
    Ok(())
}

async fn run(shard: Shard, limits: Limits) -> Counts {
    let broker = Rc::new(Broker::new(limits));
    // It ends with this function: a task whose handle is dropped is cancelled.
    let _deadlines = spawn_local({
        let broker = broker.clone();
        async move { broker.watch_deadlines().await }
    });
    let (clients, closing) = (Gate::new(), CancellationToken::new());
    let serve = |stream| {
        let pass = clients.enter().expect("the gate is closed later");
        let (broker, closing) = (broker.clone(), closing.clone());
        async move {
            // A client that leaves or sends nonsense ends its own connection and nothing else.
            let _ = broker.serve(stream, &closing).await;
            drop(pass);
        }
    };
    shard.serve_each(serve).await;
    broker.end().await;
    closing.cancel();
    clients.close().await.expect("it is closed once");
    broker.counts()
}
