//! One executor: its connections, its part of the keys, and its requests to the others.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::AddAssign;
use std::rc::Rc;
use std::time::Duration;
use std::{fmt, io};

use futures_lite::future::or;
use futures_lite::io::BufReader;
use futures_lite::{AsyncBufReadExt, AsyncWriteExt};
use glommio::channels::channel_mesh::{Receivers, Senders};
use glommio::channels::oneshot;
use glommio::net::{TcpListener, TcpStream};
use glommio::sync::{CancellationToken, Gate};
use glommio::timer::sleep;
use glommio::{Task, spawn_local};

use crate::command::{self, Command};

/// A command for another executor, and where its answer goes.
#[derive(Debug)]
pub struct Question {
    command: Command,
    reply: oneshot::SharedSender<String>,
}

/// What the tasks of one executor share.
pub struct Shard {
    state: Rc<State>,
}

struct State {
    map: RefCell<HashMap<String, String>>,
    senders: Senders<Question>,
    answered: Cell<u64>,
    asked: Cell<u64>,
}

impl Shard {
    pub fn new(senders: Senders<Question>) -> Shard {
        Shard {
            state: Rc::new(State {
                map: RefCell::default(),
                senders,
                answered: Cell::new(0),
                asked: Cell::new(0),
            }),
        }
    }

    /// Answers the requests of the other executors, in a task for each, until they have closed
    /// their channels.
    pub fn answer_others(&self, mut receivers: Receivers<Question>) -> Vec<Task<()>> {
        let sources = receivers.streams().into_iter();
        sources
            .map(|(_, questions)| {
                let state = Rc::clone(&self.state);
                spawn_local(async move {
                    while let Some(Question { command, reply }) = questions.recv().await {
                        let answer = command.apply(&mut state.map.borrow_mut());
                        // A client that has left does not wait for it.
                        let _ = reply.send(answer);
                    }
                })
            })
            .collect()
    }

    /// Serves clients until `ending` is cancelled and the last of them has its answer.
    pub async fn serve(&self, listener: TcpListener, ending: CancellationToken) {
        let gate = Gate::new();
        let accepting = async {
            loop {
                match listener.accept().await {
                    Ok(stream) => {
                        let (state, ending) = (Rc::clone(&self.state), ending.clone());
                        let conversation = async move {
                            // A client that leaves or sends nonsense ends its own connection and
                            // nothing else.
                            let _ = converse(stream, &state, &ending).await;
                        };
                        let spawned = gate.spawn(conversation);
                        spawned.expect("the gate is closed below").detach();
                    }
                    Err(error) => {
                        // Out of descriptors, most likely. They come back as connections end.
                        eprintln!("cannot accept: {error}");
                        sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        };
        or(ending.cancelled(), accepting).await;
        drop(listener);
        gate.close().await.expect("it is closed once");
        self.state.senders.close();
    }

    pub fn summary(&self) -> Summary {
        Summary {
            answered: self.state.answered.get(),
            asked: self.state.asked.get(),
            keys: self.state.map.borrow().len(),
        }
    }
}

/// Answers commands until the client leaves or `ending` is cancelled: between commands, not in the
/// middle of one.
async fn converse(stream: TcpStream, state: &State, ending: &CancellationToken) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        let over = async {
            ending.cancelled().await;
            Ok(0)
        };
        if or(over, stream.read_line(&mut line)).await? == 0 {
            return stream.close().await;
        }
        let mut answer = match command::parse(&line) {
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
        let question = Question { command, reply };
        if self.senders.send_to(owner, question).await.is_err() {
            return GONE.to_owned();
        }
        answer.await.unwrap_or_else(|_| GONE.to_owned())
    }
}

/// Only if an executor has panicked.
const GONE: &str = "ERROR: the owner of the key is gone";

/// What an executor has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    answered: u64,
    asked: u64,
    keys: usize,
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Summary) {
        self.answered += other.answered;
        self.asked += other.asked;
        self.keys += other.keys;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary {
            answered,
            asked,
            keys,
        } = self;
        write!(
            f,
            "{answered} commands answered, {asked} of them by another shard; {keys} keys at the end"
        )
    }
}
