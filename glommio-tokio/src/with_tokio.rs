//! A future that is polled, and dropped, in the context of a tokio runtime.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use glommio::time::{self, Hold};
use pin_project_lite::pin_project;
use tokio::task::unconstrained;

use crate::Tokio;

/// Polls `future` inside a tokio context, so that it can use tokio's sockets, timers and `spawn`, as
/// reqwest, sqlx, redis and others do. It need not be `Send`.
///
/// Values that are created before the first poll are created outside of the context. Many functions of
/// tokio's need it where they are called, such as `tokio::time::sleep`: call them in an `async` block.
///
/// Can be nested, and used where another tokio runtime is current: the inner context counts. What it
/// returns is used and dropped outside of the context, unless it is [kept](Tokio::keep) in it.
///
/// While it is pending, a [paused clock](glommio::time#paused-clocks) of its executor stands still, as
/// for a blocking call: time limits of tests do not end what runs in tokio. Futures that wait for
/// timers of glommio belong in [`Tokio::scope`], or a paused clock never reaches them.
///
/// # Panics
///
/// If there are no users yet and the runtime cannot be started: see [`Tokio::start`], which returns
/// the error. A panic of `future` goes on to the task that polls it, as any does.
///
/// # Cancel safety
///
/// Dropping it drops `future`, in the context too: destructors may spawn. What `future` has spawned
/// by `tokio::spawn` runs on, until the runtime has no more users.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use glommio::LocalExecutor;
/// use glommio_tokio::with_tokio;
///
/// LocalExecutor::default().run(with_tokio(async {
///     tokio::time::sleep(Duration::from_millis(1)).await;
/// }));
/// ```
pub fn with_tokio<F: Future>(future: F) -> WithTokio<F> {
    match Tokio::start() {
        Ok(tokio) => WithTokio::new(tokio, future, true),
        Err(error) => panic!("with_tokio: {error}"),
    }
}

pin_project! {
    /// The future of [`with_tokio`], [`Tokio::with`] and [`Tokio::scope`].
    #[must_use = "futures do nothing unless they are polled"]
    #[derive(Debug)]
    pub struct WithTokio<F> {
        #[pin]
        future: Option<F>,
        tokio: Tokio,
        // Whether a paused clock stands still while it is pending, and what has it do so.
        is_call: bool,
        held: Option<Hold>,
    }

    impl<F> PinnedDrop for WithTokio<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let _entered = this.tokio.enter_to_drop();
            this.future.set(None);
        }
    }
}

impl<F: Future> WithTokio<F> {
    pub(crate) fn new(tokio: Tokio, future: F, is_call: bool) -> Self {
        WithTokio {
            future: Some(future),
            tokio,
            is_call,
            held: None,
        }
    }
}

impl<F: Future> Future for WithTokio<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = this.tokio.handle().enter();
        let future = this.future.as_pin_mut();
        let future = future.expect("it is taken by the drop only");
        // tokio's budget is one for each poll of a task of tokio's. Where an executor runs inside such
        // a poll, as under `#[tokio::main]`, all of its tasks would share one, and once that is spent,
        // tokio's sockets would never be ready again.
        let polled = pin!(unconstrained(future)).poll(cx);
        // Anew each time: it may be polled by another executor than before.
        *this.held = (*this.is_call && polled.is_pending()).then(time::hold);
        polled
    }
}
