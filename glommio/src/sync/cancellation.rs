//! Telling a tree of tasks to stop.
//!
//! ```text
//!   parent ──weak, in a slab──▶ child          a token is alive exactly while it has handles
//!          ◀──weak, and key────                a dropped one hands its children to its parent
//!
//!   anchor ──▶ attached token ──▶ ...          the root of the tokens attached on this executor
//!     ▲
//!     └── task that waits for the origin, on another executor, to be cancelled or dropped
//! ```
//!
//! Invariant: the nodes that are linked are not cancelled. So no tree is deeper or broader than the
//! tokens that a program holds, and neither cancelling nor dropping one recurses.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use slab::Slab;

use crate::executor::{ExecutorProxy, Task, current, executor};
use crate::noted::waits_at;
use crate::reactor::{budget, wake};
use crate::wait_queue::{WaitKey, WaitQueue, poll_waiting};
use crate::waiters::Notice;

/// Says once, to all who hold it or a child of it, that they should stop.
///
/// A clone is the same token. Cancelling a token cancels its children and theirs, never its parent.
/// Dropping a token cancels nothing: its children go on as children of its parent. (Those on other
/// executors are the exception, see [`foreign_child`](Self::foreign_child).)
///
/// # Examples
///
/// ```
/// use glommio::{sync::CancellationToken, spawn_local, timer::sleep};
/// use futures_lite::FutureExt;
/// use std::time::Duration;
///
/// glommio::LocalExecutor::default().run(async {
///     let shutdown = CancellationToken::new();
///     let worker = spawn_local({
///         let shutdown = shutdown.child_token();
///         async move {
///             let work = async {
///                 sleep(Duration::from_secs(3600)).await;
///                 "done"
///             };
///             let stop = async {
///                 shutdown.cancelled().await;
///                 "stopped"
///             };
///             work.or(stop).await
///         }
///     });
///     shutdown.cancel();
///     assert!(shutdown.is_cancelled() && shutdown.child_token().is_cancelled());
///     assert!(shutdown.foreign_child().is_cancelled()); // for other executors
///     assert_eq!(worker.await, "stopped");
/// });
/// ```
#[derive(Clone)]
pub struct CancellationToken {
    node: Rc<Node>,
}

/// In this order: cancelling one that is a leaf without anything to tell touches its beginning alone.
#[derive(Default)]
#[repr(C)]
struct Node {
    is_cancelled: Cell<bool>,
    /// It has children, or something to tell of its end; or has had.
    is_used: Cell<bool>,
    /// With the key among its children.
    parent: Cell<Option<(Weak<Node>, usize)>>,
    children: RefCell<Slab<Weak<Node>>>,
    waiters: RefCell<WaitQueue>,
    /// Made at the first request for one.
    foreign: RefCell<Option<Origin>>,
    /// Of an anchor: the task that waits for the origin. Dropped, and so cancelled, with the last
    /// child.
    watcher: Cell<Option<Task<()>>>,
}

/// A token with memory for more children gives it back when the last one leaves.
const KEPT_WHEN_EMPTY: usize = 64;

impl CancellationToken {
    /// A token without a parent.
    pub fn new() -> Self {
        CancellationToken {
            node: Rc::new(Node::default()),
        }
    }

    /// A token that is cancelled together with this one, and that can be cancelled alone. If this
    /// one is cancelled, so is the child.
    pub fn child_token(&self) -> Self {
        let child = Rc::new(Node::default());
        if self.is_cancelled() {
            child.is_cancelled.set(true);
        } else {
            self.node.adopt(&child);
        }
        CancellationToken { node: child }
    }

    /// What other executors [attach](RemoteCancellation::attach) their tokens to.
    ///
    /// Those are cancelled together with this token, and also when its last handle is dropped: no
    /// other could cancel them from then on, and their tasks would wait forever.
    pub fn foreign_child(&self) -> RemoteCancellation {
        if self.is_cancelled() {
            return Origin::default().child();
        }
        self.node.is_used.set(true);
        let mut foreign = self.node.foreign.borrow_mut();
        foreign.get_or_insert_default().child()
    }

    /// Cancels this token and all below it, and wakes all who wait for that. Does nothing to a
    /// cancelled one.
    pub fn cancel(&self) {
        let node = &self.node;
        if node.is_cancelled.replace(true) {
            return;
        }
        node.unlink();
        // All are cancelled before the first task hears of it.
        let mut used = Vec::new();
        node.cancel_children(&mut used);
        let mut at = 0;
        while let Some(node) = used.get(at).cloned() {
            node.cancel_children(&mut used);
            at += 1;
        }
        node.announce();
        used.iter().for_each(|node| node.announce());
    }

    /// Whether this token was cancelled, by itself or with one above it.
    pub fn is_cancelled(&self) -> bool {
        self.node.is_cancelled.get()
    }

    /// Waits until this token is cancelled.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub fn cancelled(&self) -> Cancelled<'_> {
        Cancelled {
            node: &self.node,
            key: None,
        }
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        CancellationToken::new()
    }
}

impl_debug! { CancellationToken, it: is_cancelled: it.is_cancelled(); .. }

impl Node {
    fn adopt(self: &Rc<Node>, child: &Rc<Node>) {
        self.is_used.set(true);
        let key = self.children.borrow_mut().insert(Rc::downgrade(child));
        child.parent.set(Some((Rc::downgrade(self), key)));
    }

    /// Leaves the parent.
    fn unlink(&self) {
        let Some((parent, key)) = self.parent.take() else {
            return;
        };
        if let Some(parent) = parent.upgrade() {
            parent.forget(key);
        }
    }

    /// A child leaves.
    fn forget(&self, key: usize) {
        let mut children = self.children.borrow_mut();
        children.remove(key);
        let is_last = children.is_empty();
        if is_last && children.capacity() > KEPT_WHEN_EMPTY {
            *children = Slab::new();
        }
        drop(children);
        if is_last {
            drop(self.watcher.take());
        }
    }

    /// The children, which have no parent then.
    fn take_children(&self) -> impl Iterator<Item = Rc<Node>> + use<> {
        let children = mem::take(&mut *self.children.borrow_mut());
        let alive = children
            .into_iter()
            .filter_map(|(_, child)| child.upgrade());
        alive.inspect(|child| drop(child.parent.take()))
    }

    /// Cancels the children without telling of it; adds those that are [used](Self::is_used) to `used`.
    fn cancel_children(&self, used: &mut Vec<Rc<Node>>) {
        used.extend(self.take_children().filter(|child| {
            child.is_cancelled.set(true);
            child.is_used.get()
        }));
    }

    /// Tells all who want to know that this node is cancelled.
    fn announce(&self) {
        drop((self.foreign.take(), self.watcher.take()));
        let waiting = self.waiters.borrow().waiting();
        std::iter::from_fn(|| self.waiters.borrow_mut().notify_oldest())
            .take(waiting)
            .for_each(wake);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let linked = self.parent.take();
        let linked = linked.and_then(|(parent, key)| Some((parent.upgrade()?, key)));
        let children = self.take_children();
        match linked {
            None => children.for_each(drop),
            Some((parent, key)) => {
                children.for_each(|child| parent.adopt(&child));
                // Behind that, as a parent that is an anchor ends with its last child.
                parent.forget(key);
            }
        }
    }
}

/// See [`CancellationToken::cancelled`].
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled<'a> {
    node: &'a Node,
    key: Option<WaitKey>,
}

impl Future for Cancelled<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        ready!(budget::poll_leave(cx));
        let Cancelled { node, key } = &mut *self;
        ready!(poll_waiting(cx, |waker| {
            let mut waiters = node.waiters.borrow_mut();
            if node.is_cancelled.get() {
                waiters.finish(key, waker);
                return Poll::Ready(());
            }
            node.is_used.set(true);
            waiters.wait(key, waker, ());
            waits_at(Poll::Pending, "a cancellation", *node)
        }));
        budget::spend();
        Poll::Ready(())
    }
}

impl Drop for Cancelled<'_> {
    fn drop(&mut self) {
        // All are notified at once, so there is nothing to pass on.
        let left = self.node.waiters.borrow_mut().leave(&mut self.key);
        drop(left);
    }
}

impl_debug! { Cancelled['_], it: is_cancelled: it.node.is_cancelled.get() }

impl ExecutorProxy {
    /// A token that is cancelled when another shard of this executor's pool has died, if the pool's
    /// policy is [`ShardExitPolicy::EndPool`](crate::ShardExitPolicy::EndPool): this shard should end within the
    /// grace period. Never cancelled on other executors.
    ///
    /// Each call makes a token, and a task that waits in the task queue of the caller. Make one, and
    /// [children](CancellationToken::child_token) of it.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorPoolBuilder, PoolPlacement, ShardExitPolicy, executor};
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use std::{sync::Arc, time::Duration};
    ///
    /// # std::panic::set_hook(Box::new(|_| {}));
    /// let has_begun = Arc::new(AtomicBool::new(false));
    /// let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(3))
    ///     .on_shard_end(ShardExitPolicy::EndPool { grace: Duration::from_secs(30) })
    ///     .on_all_shards(move || async move {
    ///         if !has_begun.swap(true, Ordering::Relaxed) {
    ///             panic!("a bug in one of them");
    ///         }
    ///         executor().pool_ending().cancelled().await;
    ///         "saved"
    ///     })?;
    /// let saved = shards.join_all().into_iter().filter_map(Result::ok);
    /// assert_eq!(saved.collect::<Vec<_>>(), ["saved", "saved"]);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn pool_ending(&self) -> CancellationToken {
        let notice = current::expect().pool_ending();
        match notice {
            Some(notice) => RemoteCancellation { notice }.attach(),
            None => CancellationToken::new(),
        }
    }
}

/// The side of the token. Dropping it cancels the other one.
#[derive(Default)]
struct Origin {
    /// Tasks of other executors wait for it, one for each anchor.
    notice: Arc<Notice>,
}

impl Origin {
    fn child(&self) -> RemoteCancellation {
        RemoteCancellation {
            notice: Arc::clone(&self.notice),
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.notice.give();
    }
}

/// A [`CancellationToken`] on its way to other executors; see
/// [`foreign_child`](CancellationToken::foreign_child).
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutor, LocalExecutorBuilder, sync::CancellationToken};
///
/// LocalExecutor::default().run(async {
///     let shutdown = CancellationToken::new();
///     let foreign = shutdown.foreign_child();
///     let shard = LocalExecutorBuilder::default().spawn(|| async move {
///         foreign.attach().cancelled().await;
///         foreign.is_cancelled()
///     })?;
///     shutdown.cancel();
///     assert!(shard.join()?);
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
#[derive(Clone)]
pub struct RemoteCancellation {
    notice: Arc<Notice>,
}

impl RemoteCancellation {
    /// A token of the executor of this thread. It is cancelled when the origin has been, or has
    /// been dropped: at once if that was before, else soon after.
    ///
    /// Until then a task waits for that, in the task queue of the caller. It ends with the last
    /// token that is attached by it.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn attach(&self) -> CancellationToken {
        let anchor = CancellationToken::new();
        let token = anchor.child_token();
        let watcher = executor().spawn_local({
            let (anchor, origin) = (anchor.clone(), self.clone());
            async move {
                origin.notice.given().await;
                anchor.cancel();
            }
        });
        if self.is_cancelled() {
            anchor.cancel();
        }
        if !anchor.is_cancelled() {
            anchor.node.watcher.set(Some(watcher));
        }
        token
    }

    /// Whether the origin was cancelled or dropped. Costs a load.
    pub fn is_cancelled(&self) -> bool {
        self.notice.is_given()
    }
}

impl_debug! { RemoteCancellation, it: is_cancelled: it.is_cancelled() }
