//! What an executor does that has nothing to do.

use std::sync::mpsc::channel;
use std::time::Duration;
use std::{fs, thread};

use glommio::timer::Timer;
use glommio::{Latency, LocalExecutorBuilder, Shares, executor, spawn_local_into};

/// Watches an idle executor from another thread for so long: how often its thread was awake, each time it went back to
/// sleep, and the time that it ran. A timer is armed in an hour, and a task of a queue
/// for which latency matters waits.
pub fn measure(measured: Duration) -> (u64, Duration) {
    let (tell, told) = channel();
    let (stop, stopped) = channel::<()>();
    let handle = LocalExecutorBuilder::default()
        .spawn(move || async move {
            let latency = Latency::Matters(Duration::from_millis(1));
            let queue = executor().create_task_queue(Shares::default(), latency, "impatient");
            let _waits = spawn_local_into(std::future::pending::<()>(), queue);
            let _timer = glommio::spawn_local(Timer::new(Duration::from_secs(3600)));
            let thread = fs::read_link("/proc/thread-self").expect("procfs is mounted");
            tell.send(thread).expect("the measuring thread receives");
            // Ends when the sender is dropped.
            let _ = executor().spawn_blocking(move || stopped.recv()).await;
        })
        .expect("an executor");
    let thread = std::path::Path::new("/proc").join(told.recv().expect("it starts"));
    let look = || {
        let read = |name: &str| fs::read_to_string(thread.join(name)).expect("the thread lives");
        let status = read("status");
        let switches = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
            .and_then(|count| count.trim().parse().ok())
            .expect("the kernel counts them");
        let schedstat = read("schedstat");
        let cpu_ns = schedstat.split(' ').next().and_then(|ns| ns.parse().ok());
        let cpu = Duration::from_nanos(cpu_ns.expect("the kernel keeps account"));
        (switches, cpu)
    };
    // Until it sleeps.
    thread::sleep(Duration::from_millis(50));
    let before: (u64, Duration) = look();
    thread::sleep(measured);
    let after: (u64, Duration) = look();
    drop(stop);
    handle.join().expect("it ends in good order");
    (after.0 - before.0, after.1 - before.1)
}
