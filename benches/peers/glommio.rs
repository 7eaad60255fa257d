//! The adapter of every crate with glommio's API: executor, tasks, timers. `rt`, one level up, says which crate
//! that is; sockets are in `glommio_net.rs`, and so on.

use std::future::Future;
use std::time::Duration;

use workloads::{Actions, Cooperative, Join, Runtime};

use crate::rt;
use crate::rt::timer::TimerActionOnce;

/// The crate behind `rt`.
pub struct Glommio;

impl Runtime for Glommio {
    type Task<T: 'static> = rt::Task<T>;
    type Timer = rt::timer::Timer;

    fn run<F: Future + 'static>(future: F) -> F::Output
    where
        F::Output: 'static,
    {
        rt::LocalExecutorBuilder::new(rt::Placement::Unbound)
            .make()
            .expect("the kernel has io_uring and lets us use it")
            .run(future)
    }

    fn start<F, T>(make: impl FnOnce() -> F + Send + 'static) -> Join<T>
    where
        F: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        let executor = rt::LocalExecutorBuilder::new(rt::Placement::Unbound)
            .spawn(make)
            .expect("a thread can be created");
        Box::new(|| {
            executor
                .join()
                .expect("the kernel has io_uring, and the workload does not panic")
        })
    }

    fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> Self::Task<T> {
        rt::spawn_local(future)
    }

    fn spawn_detached(future: impl Future<Output = ()> + 'static) {
        rt::spawn_local(future).detach();
    }

    async fn yield_now() {
        rt::executor().yield_now().await;
    }

    fn timer(delay: Duration) -> Self::Timer {
        rt::timer::Timer::new(delay)
    }

    async fn timeout<T>(limit: Duration, future: impl Future<Output = T>) -> T {
        let result = rt::timer::timeout(limit, async { Ok(future.await) });
        result.await.expect("workloads stay within their limits")
    }
}

impl Cooperative for Glommio {
    async fn yield_queue() {
        rt::executor().yield_task_queue_now().await;
    }

    async fn yield_if_needed() {
        rt::yield_if_needed().await;
    }
}

impl Actions for Glommio {
    type Action = TimerActionOnce<()>;

    fn action(delay: Duration) -> Self::Action {
        TimerActionOnce::do_in(delay, async {})
    }

    async fn cancel(action: Self::Action) {
        action.cancel().await;
    }

    fn destroy(action: Self::Action) {
        action.destroy();
    }

    fn rearm_in(action: &Self::Action, delay: Duration) {
        action.rearm_in(delay);
    }
}
