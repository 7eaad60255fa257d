//! The code in the README and in the pages of the book, compiled and run with the doc tests.
//!
//! One item for each page, so that a failure names it.

macro_rules! pages {
    ($($(#[$when:meta])? $page:ident: $path:literal;)*) => {
        $(
            $(#[$when])?
            #[doc = include_str!(concat!("../../", $path))]
            mod $page {}
        )*
    };
}

pages! {
    readme: "README.md";

    first_program: "docs/start/first-program.md";
    from_tokio: "docs/start/from-tokio.md";
    migrating: "docs/start/migrating.md";

    executors: "docs/guide/executors.md";
    drivers: "docs/guide/drivers.md";
    tasks: "docs/guide/tasks.md";
    errors: "docs/guide/errors.md";
    timers: "docs/guide/timers.md";
    sockets: "docs/guide/sockets.md";
    udp: "docs/guide/udp.md";
    files: "docs/guide/files.md";
    queues: "docs/guide/queues.md";
    overload: "docs/guide/overload.md";
    blocking: "docs/guide/blocking.md";
    between_executors: "docs/guide/between-executors.md";
    tokio_crates: "docs/guide/tokio-crates.md";
    shutdown: "docs/guide/shutdown.md";
    survival: "docs/guide/survival.md";
    stalls: "docs/guide/stalls.md";
    testing: "docs/guide/testing.md";
    #[cfg(feature = "simulation")]
    simulation: "docs/guide/simulation.md";

    message_queue: "docs/recipes/message-queue.md";
    reliable_udp: "docs/recipes/reliable-udp.md";
    rate_limiter: "docs/recipes/rate-limiter.md";
    connection_pool: "docs/recipes/connection-pool.md";
    cron: "docs/recipes/cron.md";
    moving_connections: "docs/recipes/moving-connections.md";

    kernels: "docs/operations/kernels.md";
    containers: "docs/operations/containers.md";
    metrics: "docs/operations/metrics.md";
    debugging: "docs/operations/debugging.md";
    upgrading: "docs/operations/upgrading.md";

    cancellation: "docs/reference/cancellation.md";
}
