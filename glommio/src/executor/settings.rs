//! The settings of one executor, which are also those of each shard of a pool, as a macro to be called inside the
//! `impl` of a builder with a field `config: Config`.

#![forbid(unsafe_code)]

macro_rules! setting_methods {
    () => {
        /// How long an executor looks for work before it sleeps. Default: not at all.
        ///
        /// **Ignored where the placement is `Unbound`**: spinning on a CPU that others share only takes time
        /// from them.
        pub fn spin_before_park(mut self, spin: std::time::Duration) -> Self {
            self.config.spin_before_park = spin;
            self
        }

        /// Maximum delay for coalescing timers. Default zero: the executor wakes for each deadline. At
        /// most one second.
        ///
        /// An executor that sleeps, or whose tasks [ask](crate::ExecutorProxy::need_preempt) whether to
        /// yield the thread, lets up to `slack` pass after the earliest deadline; all that are due by
        /// then fire together, in their order. When the executor is awake for another reason, what
        /// is due fires at once. No timer is ever early. It is late by up to the slack and the
        /// delay of the wake-up, which is as long as the machine makes it. That goes for all deadlines
        /// alike: sleeps, `timeout`, timed actions, the timeouts of sockets.
        ///
        /// It saves CPU time where deadlines lie close together. A deadline that comes alone is late by all of
        /// the slack.
        pub fn timer_slack(mut self, slack: std::time::Duration) -> Self {
            self.config.timer_slack = slack;
            self
        }

        /// Whether the executor spends CPU time to have timers fire within a microsecond of their
        /// deadlines. Default [`TimerPrecision::Balanced`](crate::TimerPrecision::Balanced).
        pub fn timer_precision(mut self, precision: $crate::reactor::TimerPrecision) -> Self {
            self.config.timer_precision = precision;
            self
        }

        /// Whether the executor uses io_uring or epoll. Default [`Driver::Auto`](crate::Driver::Auto): io_uring where it is allowed.
        pub fn driver(mut self, driver: $crate::ring::Driver) -> Self {
            self.config.driver = driver;
            self
        }

        /// The prefix of the name of each thread that the builder makes: `{name}-{executor id}`. Default `unnamed`.
        pub fn name(mut self, name: &str) -> Self {
            name.clone_into(&mut self.config.name);
            self
        }

        /// The size in bytes of an executor's arena for direct-I/O buffers. Default 10 MiB; rounded up to a
        /// multiple of 4096, at least 64 KiB. Reserved when the first buffer is taken from it, and with
        /// io_uring registered with the kernel at the first direct I/O from it: executors without direct
        /// I/O pay nothing.
        pub fn io_memory(mut self, io_memory: usize) -> Self {
            self.config.io_memory_bytes = io_memory;
            self
        }

        /// How many operations the driver takes in one batch: with io_uring, the entries of its
        /// submission queue. Default 128; rounded up to a power of two and clamped to 32768. More
        /// operations than that may be in flight.
        ///
        /// # Panics
        ///
        /// Panics if it is 0.
        pub fn ring_depth(mut self, ring_depth: usize) -> Self {
            self.config.set_ring_depth(ring_depth);
            self
        }

        /// How long a task queue for which latency does not matter may run before
        /// [`need_preempt`](crate::ExecutorProxy::need_preempt) turns true. Default 100 ms. A slice
        /// lasts at least about 20 µs whatever is asked for. While other queues wait, a queue of fewer than
        /// 1000 [shares](crate::Shares) has shorter turns.
        pub fn preempt_timer(mut self, dur: std::time::Duration) -> Self {
            self.config.preempt_timer = dur;
            self
        }

        /// What a panic of a task does. Default [`PanicPolicy::Unwind`](crate::PanicPolicy::Unwind): it ends the executor.
        pub fn on_task_panic(mut self, policy: $crate::executor::PanicPolicy) -> Self {
            self.config.on_task_panic = policy;
            self
        }

        /// Whether to record how long file reads take. Default false.
        pub fn record_io_latencies(mut self, enabled: bool) -> Self {
            self.config.record_io_latencies = enabled;
            self
        }

        /// How many threads run the blocking calls of an executor's users, and where. Default: one, and one more
        /// whenever a call has waited for a millisecond, up to 64, so that calls may wait for each other;
        /// those that have been idle for ten seconds end, but for one. They are placed like the executor.
        ///
        /// A given placement means what it says: no other threads make these calls. The library's own, on
        /// files and for host names, have threads of their own. Each shard of a pool has its own threads: with
        /// `MaxSpread(2, None)` it has two, and those of all shards are on the same two CPUs.
        ///
        /// The threads start when they are needed, but a placement that cannot be met, or of no thread at all,
        /// is an error when the executor is made. Those of an unbound pool may run wherever the
        /// thread that makes the executor could before it was bound.
        pub fn blocking_thread_pool_placement(
            mut self,
            placement: $crate::executor::placement::PoolPlacement,
        ) -> Self {
            self.config.blocking_pool = Some(placement);
            self
        }
    };
}
pub(super) use setting_methods;
