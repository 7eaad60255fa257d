//! What one shard asks another for, and how it waits for the answer.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use glommio::channels::local_channel::{self, LocalReceiver};
use glommio::channels::oneshot::{SharedReceiver, SharedSender};
use glommio::channels::shared_channel::ConnectedReceiver;
use glommio::spawn_local;

use super::super::Log;
use super::super::commit::{Commit, payload_bytes};
use super::super::error::{Error, Refused, of_shard};
use crate::{Record, Seq, Snapshot, TimeRange, Ts};

/// Operations of one other shard that are accepted and not durable yet. Beyond, its next one waits.
const UNANSWERED: usize = 1024;

pub(super) type Answer<V> = Result<Seq, Refused<Vec<(Ts, V)>>>;

pub enum Request<V> {
    /// What the first shard has found in the directory: the identities of the shards, 0 of those that
    /// are to be made. Its first message.
    Begin(Result<Vec<u64>, Error>),
    /// How the shard that sends was opened, with the identity of its log.
    Opened(Result<u64, Error>),
    Do(Operation<V>, SharedSender<Answer<V>>),
    Snapshot(SharedSender<Snapshot<V>>),
    /// Into a directory; the answer is the identity of the copy.
    Backup(PathBuf, SharedSender<Result<u64, Error>>),
}

impl<V> Request<V> {
    pub fn into_rows(self) -> Vec<(Ts, V)> {
        match self {
            Request::Do(operation, _) => operation.into_rows(),
            _ => Vec::new(),
        }
    }
}

pub enum Operation<V> {
    Rows(Vec<(Ts, V)>),
    Delete(TimeRange),
    Floor(Ts),
    Sync,
}

impl<V> Operation<V> {
    fn into_rows(self) -> Vec<(Ts, V)> {
        match self {
            Self::Rows(rows) => rows,
            _ => Vec::new(),
        }
    }

    pub fn refused(self, error: Error) -> Refused<Vec<(Ts, V)>> {
        let rejected = self.into_rows();
        Refused { error, rejected }
    }
}

impl<V: Record> Operation<V> {
    /// Does it, as soon as what waits for the device leaves space.
    pub async fn apply(mut self, log: &Log<V>) -> Result<Commit, Refused<Vec<(Ts, V)>>> {
        loop {
            let done = match &mut self {
                Self::Rows(rows) => {
                    let extended = log.shared.extend(std::mem::take(rows));
                    extended.map_err(|refused| {
                        *rows = refused.rejected;
                        refused.error
                    })
                }
                Self::Delete(range) => log.delete(*range),
                Self::Floor(ts) => {
                    let raised = log.raise_floor(*ts);
                    // One that is as high may not be durable yet.
                    raised.map(|commit| commit.unwrap_or_else(|| log.shared.core.sync()))
                }
                Self::Sync => Ok(log.shared.core.sync()),
            };
            match done {
                Ok(commit) => return Ok(commit),
                Err(Error::Busy { limit_bytes, .. }) if self.bytes(log) <= limit_bytes => {
                    if let Err(error) = log.sync().await {
                        return Err(self.refused(error));
                    }
                }
                Err(error) => return Err(self.refused(error)),
            }
        }
    }

    /// What it takes of what may wait for the device.
    fn bytes(&self, log: &Log<V>) -> usize {
        match self {
            Self::Rows(rows) => payload_bytes(rows.len().saturating_mul(log.shared.row_bytes())),
            // Less than any limit.
            _ => 0,
        }
    }
}

/// Does what another shard asks for, in its order, until that has closed its channel.
pub(super) async fn serve<V: Record + Send + Sync>(
    requests: ConnectedReceiver<Request<V>>,
    log: Log<V>,
) {
    let (answers, unanswered) = local_channel::new_bounded(UNANSWERED);
    let answering = spawn_local(answer(unanswered));
    // A reply that fails has no one left who waits for it.
    while let Some(request) = requests.recv().await {
        match request {
            Request::Begin(_) | Request::Opened(_) => {}
            Request::Snapshot(reply) => {
                let _ = reply.send(log.snapshot());
            }
            Request::Backup(path, reply) => {
                let log = log.clone();
                let copying = async move {
                    let copied = log.backup_as(&path).await;
                    let _ = reply.send(copied.map(|(_, identity)| identity));
                };
                spawn_local(copying).detach();
            }
            Request::Do(operation, reply) => match operation.apply(&log).await {
                Ok(commit) => {
                    // The other end is the task above, which outlives this.
                    let _ = answers.send((commit, reply)).await;
                }
                Err(refused) => {
                    let _ = reply.send(Err(refused));
                }
            },
        }
    }
    drop(answers);
    answering.await;
}

/// Answers when operations are durable, which they become in their order.
async fn answer<V: Record>(unanswered: LocalReceiver<(Commit, SharedSender<Answer<V>>)>) {
    while let Some((commit, reply)) = unanswered.recv().await {
        let outcome = commit.await.map_err(|error| Refused {
            error,
            rejected: Vec::new(),
        });
        let _ = reply.send(outcome);
    }
}

/// Waits until an operation is accepted by its shard, and on its device. The [`Seq`] is of that shard.
///
/// Dropping it changes nothing: the operation is done all the same.
///
/// # Errors
/// [`Error::Shard`] with the shard. If that has refused the rows, they are given back. If none are,
/// they may be durable or not, as for a [`Commit`]; [`Error::Closed`] is the cause if the executor of the
/// shard has ended.
///
/// # Cancel safety
/// Dropping it ends the wait and nothing else.
#[derive(Debug)]
#[must_use = "without awaiting it, it is not known whether the operation is durable"]
pub struct ShardCommit<V> {
    shard: usize,
    wait: Wait<V>,
}

#[derive(Debug)]
pub(super) enum Wait<V> {
    Here(Commit),
    There(SharedReceiver<Answer<V>>),
}

impl<V> ShardCommit<V> {
    pub(super) fn new(shard: usize, wait: Wait<V>) -> Self {
        Self { shard, wait }
    }

    /// The shard.
    pub fn shard(&self) -> usize {
        self.shard
    }
}

impl<V> Future for ShardCommit<V> {
    type Output = Answer<V>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.wait {
            Wait::Here(commit) => ready!(Pin::new(commit).poll(cx)).map_err(|error| Refused {
                error,
                rejected: Vec::new(),
            }),
            Wait::There(answer) => {
                let answer = ready!(Pin::new(answer).poll(cx));
                // The task that was to answer has ended.
                answer.unwrap_or_else(|_| {
                    Err(Refused {
                        error: Error::Closed,
                        rejected: Vec::new(),
                    })
                })
            }
        };
        Poll::Ready(outcome.map_err(|refused| Refused {
            error: of_shard(self.shard)(refused.error),
            rejected: refused.rejected,
        }))
    }
}
