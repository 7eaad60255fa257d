//! What a look at the tasks found: values to be read and printed.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::time::Duration;

/// The unfinished tasks of one executor, as they were at one moment. `Display` prints all of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Dump {
    /// The number of the executor; see [`LocalExecutor::id`](crate::LocalExecutor::id).
    pub executor: usize,
    /// The name of its thread, if that has one.
    pub thread: Option<String>,
    /// The tasks in the order in which they were spawned. The future of
    /// [`run`](crate::LocalExecutor::run) is one.
    pub tasks: Vec<TaskDump>,
    /// The numbers of tasks that wait for each other in a circle, each for the next and the last for
    /// the first: through locks with one holder, and through handles that are awaited. What is awaited
    /// beside that, such as a timeout, may still end the circle.
    pub cycles: Vec<Vec<u64>>,
}

/// One task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskDump {
    /// The number of the task on its thread. The events that
    /// [`TaskDebugger`](crate::task::debugging::TaskDebugger) logs have it as `task`.
    pub id: u64,
    /// The name that [`TaskBuilder`](crate::TaskBuilder) gave it, or its label.
    pub name: Option<Cow<'static, str>>,
    /// The name of its task queue.
    pub queue: String,
    /// The type of its future. That of an `async` block contains the path of its function.
    pub future: &'static str,
    /// Where it was spawned. `None` if the library has done that for its own purposes.
    pub spawned_at: Option<&'static Location<'static>>,
    /// The time since it was spawned.
    pub age: Duration,
    /// What it does.
    pub state: TaskState,
    /// The time since it was last polled, or was spawned.
    pub since: Duration,
    /// What it said in its last poll that it waits for, at most four things.
    ///
    /// Empty if what it waits for is not of this library, for instance a channel of another crate. A
    /// future that polls only those of its parts that were woken, as `FuturesUnordered` does, says
    /// no more than these did.
    pub waits_for: Vec<Resource>,
    /// How many more things it said.
    pub more: usize,
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskState {
    /// It is being polled: the task that takes the dump, or one further down its stack.
    Running,
    /// It was spawned or woken, and waits for its turn.
    Runnable,
    /// It waits to be woken.
    Waiting,
}

/// What a task waits for. `Display` says it in words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resource {
    /// An operation of the kernel: data of a socket, bytes of a file, the end of a child process.
    #[non_exhaustive]
    Operation {
        /// What is done, for instance `reading`.
        name: &'static str,
        /// The path of the file, the addresses of the socket, or the number of the process, as far as
        /// the descriptor tells.
        target: String,
    },
    /// A timer.
    #[non_exhaustive]
    Timer {
        /// The time to its deadline; zero if that has passed.
        left: Duration,
    },
    /// The end of another task.
    #[non_exhaustive]
    Task {
        /// Its number.
        id: u64,
    },
    /// A lock or a semaphore.
    #[non_exhaustive]
    Lock {
        /// `mutex`, `read-write lock` or `semaphore`.
        kind: &'static str,
        /// A number that no other lock of the thread has.
        id: u64,
        /// The number of the task that has acquired the one guard or permit that there is. `None` if
        /// there is none or more than one, and of two if one was dropped.
        holder: Option<u64>,
    },
    /// What another task or thread is to do: a channel, a cancellation, a gate.
    #[non_exhaustive]
    Channel {
        /// What is waited for, for instance `a value of a local channel`.
        what: &'static str,
        /// A number that those who wait at the same end of the same channel have in common.
        id: usize,
    },
    /// A call on a blocking thread, or the look-up of a name.
    BlockingCall,
    /// Something else.
    Other(&'static str),
}

impl Dump {
    /// Finds the cycles.
    pub(in crate::executor) fn with_cycles(mut self) -> Self {
        let edges = self.tasks.iter().filter_map(|it| Some((it.id, it.next()?)));
        self.cycles = cycles(&edges.collect());
        self
    }
}

impl TaskDump {
    /// The task that it waits for.
    fn next(&self) -> Option<u64> {
        let mut tasks = self.waits_for.iter().filter_map(|it| match it {
            Resource::Task { id } => Some(*id),
            Resource::Lock { holder, .. } => *holder,
            _ => None,
        });
        // A task that is about to run may find that it waits no longer.
        tasks.next().filter(|_| self.state == TaskState::Waiting)
    }
}

/// The circles in a graph in which each node has one successor at most. Follows each edge once.
fn cycles(next: &HashMap<u64, u64>) -> Vec<Vec<u64>> {
    let mut starts: Vec<_> = next.keys().copied().collect();
    starts.sort_unstable();
    // From which start each node was reached.
    let mut reached = HashMap::with_capacity(starts.len());
    let mut found = Vec::new();
    for &start in &starts {
        let mut node = start;
        while !reached.contains_key(&node)
            && let Some(&after) = next.get(&node)
        {
            reached.insert(node, start);
            node = after;
        }
        if reached.get(&node) == Some(&start) {
            let successors = std::iter::successors(Some(node), |it| next.get(it).copied());
            let mut cycle = vec![node];
            cycle.extend(successors.skip(1).take_while(|&it| it != node));
            found.push(cycle);
        }
    }
    found
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "executor {}", self.executor)?;
        if let Some(thread) = &self.thread {
            write!(f, " on thread {thread:?}")?;
        }
        writeln!(f, ", {} tasks", self.tasks.len())?;
        for task in &self.tasks {
            writeln!(f, "{task}")?;
        }
        for cycle in &self.cycles {
            write!(f, "cycle: task")?;
            for task in cycle {
                write!(f, " {task} waits for task")?;
            }
            writeln!(f, " {}", cycle[0])?;
        }
        Ok(())
    }
}

/// Three lines, of which the last has no end.
impl fmt::Display for TaskDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(f, " in queue {:?}, spawned", self.queue)?;
        if let Some(location) = self.spawned_at {
            write!(f, " at {location}")?;
        }
        write!(f, " {:.1?} ago\n    {}\n    ", self.age, self.future)?;
        match self.state {
            TaskState::Running => return write!(f, "is running"),
            TaskState::Runnable => return write!(f, "waits for its turn"),
            TaskState::Waiting => write!(f, "waits for {:.1?} for ", self.since)?,
        }
        if self.waits_for.is_empty() {
            write!(f, "something that is not of glommio")?;
        }
        for (place, resource) in self.waits_for.iter().enumerate() {
            let before = if place > 0 { ", or " } else { "" };
            write!(f, "{before}{resource}")?;
        }
        if self.more > 0 {
            write!(f, ", or {} more", self.more)?;
        }
        Ok(())
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Operation { name, target } => write!(f, "{name} {target}"),
            Resource::Timer { left } => write!(f, "a timer in {left:.1?}"),
            Resource::Task { id } => write!(f, "the end of task {id}"),
            Resource::Lock { kind, id, holder } => {
                write!(f, "{kind} {id}")?;
                match holder {
                    Some(holder) => write!(f, ", held by task {holder}"),
                    None => Ok(()),
                }
            }
            Resource::Channel { what, id } => write!(f, "{what} ({id:#x})"),
            Resource::BlockingCall => write!(f, "a blocking call"),
            Resource::Other(what) => write!(f, "{what}"),
        }
    }
}
