//! A key-value server in which each executor owns a part of the keys.
//!
//! ```console
//! $ cargo run --release -p examples --bin shards_kv -- --shards 2 --port 7070
//! listening on 127.0.0.1:7070
//! $ printf 'SET colour blue\nGET colour\nGET shape\nDEL colour\n' | nc -N 127.0.0.1 7070
//! OK
//! blue
//! NONE
//! OK
//! ^C
//! 4 commands answered, .. of them by another shard; 0 keys at the end
//! ```
//!
//! A key belongs to the executor that its hash says. A command about a key of another executor goes
//! there through a channel of the mesh, along with the sender of a `oneshot` channel for the answer.
//! No map is locked: each is used by its own thread alone.
//!
//! # Ending
//!
//! At Ctrl-C each executor
//!
//! 1. stops accepting, and reads no more commands: connections end after the answer that is under
//!    way;
//! 2. closes its gate, and so waits until all of its connections have ended;
//! 3. closes its channels to the others, which get no more requests from it, and
//! 4. answers theirs until they have closed their channels too.
//!
//! So no command that was read is left without its answer, and no executor ends while another may
//! ask it.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::rc::Rc;

use clap::Parser;
use examples::serving::{Serving, Shard};
use futures_lite::future::or;
use futures_lite::io::BufReader;
use futures_lite::{AsyncBufReadExt, AsyncWriteExt};
use glommio::channels::channel_mesh::{FullMesh, MeshBuilder, Senders};
use glommio::channels::oneshot;
use glommio::net::TcpStream;
use glommio::spawn_local;
use glommio::sync::{CancellationToken, Gate};

/// Serves a map from words to texts.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    serving: Serving,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut serving = Options::parse().serving;
    let mesh = MeshBuilder::full(*serving.shards.get_or_insert(2), CHANNEL_SIZE);
    let mut total = [0; 3];
    for counts in serving.run("", move |shard| run(shard, mesh))? {
        for (total, count) in total.iter_mut().zip(counts?) {
            *total += count;
        }
    }
    let [answered, asked, keys] = total;
    println!(
        "{answered} commands answered, {asked} of them by another shard; {keys} keys at the end"
    );
    Ok(())
}

/// A command for another executor, and where its answer goes.
type Question = (Command, oneshot::SharedSender<String>);

/// What the tasks of one executor share.
struct State {
    map: RefCell<HashMap<String, String>>,
    senders: Senders<Question>,
    answered: Cell<usize>,
    asked: Cell<usize>,
}

/// The life of one executor. Returns how many commands it has answered, how many of them it had
/// others answer, and the number of its keys.
async fn run(shard: Shard, mesh: FullMesh<Question>) -> glommio::Result<[usize; 3], ()> {
    let (senders, mut receivers) = mesh.join().await?;
    let state = Rc::new(State {
        map: RefCell::default(),
        senders,
        answered: Cell::new(0),
        asked: Cell::new(0),
    });
    // A task for each of the other executors, until that has closed its channel.
    let answering = receivers.streams().into_iter().map(|(_, questions)| {
        let state = state.clone();
        spawn_local(async move {
            while let Some((command, reply)) = questions.recv().await {
                let answer = command.apply(&mut state.map.borrow_mut());
                // A client that has left does not wait for it.
                let _ = reply.send(answer);
            }
        })
    });
    let answering: Vec<_> = answering.collect();
    let (gate, stop) = (Gate::new(), shard.stop.clone());
    let serve = |stream| {
        let pass = gate.enter().expect("the gate is closed below");
        let (state, stop) = (state.clone(), stop.clone());
        async move {
            // A client that leaves or sends nonsense ends its own connection and nothing else.
            let _ = converse(stream, &state, &stop).await;
            drop(pass);
        }
    };
    shard.serve_each(serve).await;
    gate.close().await?;
    state.senders.close();
    for source in answering {
        source.await;
    }
    let keys = state.map.borrow().len();
    Ok([state.answered.get(), state.asked.get(), keys])
}

/// Answers commands until the client leaves or `stop` is cancelled: between commands, not in the
/// middle of one.
async fn converse(stream: TcpStream, state: &State, stop: &CancellationToken) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        let over = async {
            stop.cancelled().await;
            Ok(0)
        };
        if or(over, stream.read_line(&mut line)).await? == 0 {
            return stream.close().await;
        }
        let mut answer = match Command::parse(&line) {
            Some(command) => state.carry_out(command).await,
            None => "ERROR: GET key, SET key text, or DEL key".to_owned(),
        };
        answer.push('\n');
        stream.get_mut().write_all(answer.as_bytes()).await?;
        state.answered.set(state.answered.get() + 1);
    }
}

impl State {
    /// Here, or where the key belongs.
    async fn carry_out(&self, command: Command) -> String {
        let owner = command.owner(self.senders.nr_consumers());
        if owner == self.senders.peer_id() {
            return command.apply(&mut self.map.borrow_mut());
        }
        self.asked.set(self.asked.get() + 1);
        let (reply, answer) = oneshot::shared();
        let answer = match self.senders.send_to(owner, (command, reply)).await {
            Ok(()) => answer.await.ok(),
            Err(_) => None,
        };
        // Only if an executor has panicked.
        answer.unwrap_or_else(|| "ERROR: the owner of the key is gone".to_owned())
    }
}

/// One command about one key.
struct Command {
    key: String,
    action: Action,
}

enum Action {
    Get,
    Set(String),
    Delete,
}

impl Command {
    /// A line. `None` if it makes no sense.
    fn parse(line: &str) -> Option<Command> {
        let mut words = line.trim_end().splitn(3, ' ');
        let (name, key) = (words.next()?, words.next().filter(|key| !key.is_empty())?);
        let action = match (name, words.next()) {
            ("GET", None) => Action::Get,
            ("DEL", None) => Action::Delete,
            ("SET", Some(text)) => Action::Set(text.to_owned()),
            _ => return None,
        };
        let key = key.to_owned();
        Some(Command { key, action })
    }

    /// To which of so many executors the key belongs: the same everywhere.
    fn owner(&self, shards: usize) -> usize {
        let mut hasher = DefaultHasher::new();
        self.key.hash(&mut hasher);
        (hasher.finish() % shards as u64) as usize
    }

    /// Executes it, and returns the answer.
    fn apply(self, map: &mut HashMap<String, String>) -> String {
        let found = match self.action {
            Action::Get => map.get(&self.key).cloned(),
            Action::Set(text) => {
                map.insert(self.key, text);
                Some("OK".to_owned())
            }
            Action::Delete => map.remove(&self.key).map(|_| "OK".to_owned()),
        };
        found.unwrap_or_else(|| "NONE".to_owned())
    }
}

/// Requests under way from one executor to another, before further senders wait.
const CHANNEL_SIZE: usize = 128;
