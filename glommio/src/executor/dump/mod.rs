//! A look at all tasks of an executor, and what they wait for.
//!
//! What tasks have noted is copied first, with nothing borrowed and no code of users called, and then
//! put into words. Files and sockets are asked for their names only now.

#![forbid(unsafe_code)]

mod everywhere;

use std::thread;

pub use everywhere::{dump_all, dump_on_signal};

use super::core::Core;
use super::current;
use super::dumps::{Dump, Resource, TaskDump, TaskState};
use crate::clock;
use crate::noted::{self, Awaited};
use crate::sys::fd_name;
use crate::task::{Doing, SeenTask};

/// What the tasks of the executor that runs on this thread wait for.
///
/// Takes some microseconds for each task, most of it system calls that ask for the names of sockets
/// and files; the executor runs nothing else meanwhile.
///
/// # Panics
///
/// Panics if no executor is running on this thread.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutor, TaskBuilder, debugging, timer::sleep};
/// use std::time::Duration;
///
/// LocalExecutor::default().run(async {
///     let nap = TaskBuilder::new().name("nap").spawn_local(sleep(Duration::from_secs(60)));
///     let dump = debugging::dump();
///     let seen = dump.tasks.iter().find(|task| task.name.as_deref() == Some("nap"));
///     let waits_for = &seen.expect("it has not ended").waits_for;
///     assert!(matches!(waits_for[..], [debugging::Resource::Timer { .. }]));
///     println!("{dump}");
///     nap.cancel().await;
/// });
/// ```
pub fn dump() -> Dump {
    current::expect().dump()
}

impl Core {
    pub(super) fn dump(&self) -> Dump {
        let seen = self.tasks.look();
        let dump = Dump {
            executor: self.id(),
            thread: thread::current().name().map(str::to_owned),
            tasks: seen.into_iter().map(|task| self.report(task)).collect(),
            cycles: Vec::new(),
        };
        dump.with_cycles()
    }

    fn report(&self, task: SeenTask) -> TaskDump {
        let now = clock::real();
        let queue = self.queues.at(task.queue);
        let (awaited, more) = task.awaited;
        TaskDump {
            id: task.id,
            name: task.name,
            queue: queue.map_or_else(String::new, |it| it.name().to_owned()),
            future: unnamed(task.future),
            spawned_at: task.spawned_at,
            age: now.saturating_duration_since(task.spawned),
            state: match task.doing {
                Doing::Running => TaskState::Running,
                Doing::Queued => TaskState::Runnable,
                Doing::Waiting => TaskState::Waiting,
            },
            since: now.saturating_duration_since(task.polled),
            waits_for: awaited
                .into_iter()
                .filter_map(|it| self.resource(it))
                .collect(),
            more,
        }
    }

    /// `None` of what is over.
    fn resource(&self, awaited: Awaited) -> Option<Resource> {
        let operation = |name, fd| Resource::Operation {
            name,
            target: fd_name::of(fd),
        };
        Some(match awaited {
            Awaited::Operation { index, generation } => {
                let asked = self.reactor.asked(index, generation)?;
                match asked.path {
                    None => operation(asked.name, asked.fd),
                    Some(path) => Resource::Operation {
                        name: asked.name,
                        target: path.to_string_lossy().into_owned(),
                    },
                }
            }
            Awaited::Data(fd) => operation("data of", fd),
            Awaited::Connection(fd) => operation("a connection of", fd),
            Awaited::Deadline(deadline) => Resource::Timer {
                left: deadline.saturating_duration_since(clock::now()),
            },
            Awaited::Task(id) => Resource::Task { id },
            Awaited::Lock { place, number } => {
                let lock = noted::lock(place, number)?;
                Resource::Lock {
                    kind: lock.what,
                    id: number,
                    holder: lock.holder,
                }
            }
            Awaited::Channel { what, address } => Resource::Channel { what, id: address },
            Awaited::BlockingCall => Resource::BlockingCall,
            Awaited::Other(what) => Resource::Other(what),
        })
    }
}

/// The type of the future that was spawned, without what `TaskBuilder` wraps around it.
fn unnamed(future: &'static str) -> &'static str {
    let inside = future.strip_prefix("glommio::executor::task_builder::Named<");
    inside.and_then(|it| it.strip_suffix('>')).unwrap_or(future)
}
