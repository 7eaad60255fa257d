//! A sleeping executor: what it costs, and what wakes it.

use std::os::unix::thread::JoinHandleExt;

use crate::common::prelude::*;
use crate::common::voluntary_switches;

#[run_test]
async fn an_idle_executor_uses_no_cpu_and_does_not_wake_up() {
    let impatient = Latency::Matters(Duration::from_millis(1));
    let queue = executor().create_task_queue(Shares::default(), impatient, "impatient");
    spawn_in(queue, std::future::pending::<()>()).detach();
    let mut least = (Duration::MAX, u64::MAX);
    for _ in 0..3 {
        let (cpu, switches) = (thread_cpu(), voluntary_switches());
        sleep(Duration::from_secs(1)).await;
        let used = (thread_cpu() - cpu, voluntary_switches() - switches);
        least = (least.0.min(used.0), least.1.min(used.1));
        if least.0 < Duration::from_millis(10) && least.1 <= 3 {
            return;
        }
    }
    panic!(
        "a second of sleep costs {} µs and {} switches",
        least.0.as_micros(),
        least.1
    );
}

#[run_test]
fn an_executor_that_spins_does_so_for_as_long_as_it_was_told() {
    let sleeps = |spin, time| {
        let handle = LocalExecutorBuilder::new(Placement::Fixed(0))
            .spin_before_park(spin)
            .spawn(move || async move {
                let before = (thread_cpu(), voluntary_switches());
                sleep(time).await;
                (thread_cpu() - before.0, voluntary_switches() - before.1)
            })
            .expect("CPU 0 exists");
        handle.join().expect("it ends in good order")
    };
    // How much processor time a spin gets is up to the scheduler, but a thread that spins until
    // its timer is due never gives its CPU up, and one that sleeps does each time.
    let spins = || sleeps(Duration::from_secs(3600), Duration::from_millis(100)).1 == 0;
    assert!((0..10).any(|_| spins()), "it does not spin");
    let (cpu, switches) = sleeps(Duration::from_millis(100), Duration::from_secs(1));
    assert!(cpu < Duration::from_millis(500), "{cpu:?}: no sleep");
    assert!(switches > 0, "it never sleeps");
}

#[test]
fn signals_during_a_sleep_wake_harmlessly() {
    static HANDLED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn count(_: libc::c_int) {
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }
    let _watchdog = watchdog();
    let handler: extern "C" fn(libc::c_int) = count;
    // SAFETY: all zeroes is an empty mask, no flags (so system calls are interrupted) and no
    // handler.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: the action is initialised, and its handler only touches an atomic.
    let installed = unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) };
    assert_eq!(installed, 0);

    let wait = Duration::from_millis(300);
    let is_over = Arc::new(AtomicBool::new(false));
    let may_end = Arc::clone(&is_over);
    let sleeper = thread::spawn(move || {
        let slept = LocalExecutor::default().run(async {
            let started = Instant::now();
            sleep(wait).await;
            executor()
                .spawn_blocking(|| thread::sleep(Duration::from_millis(50)))
                .await;
            or(
                Timer::new(Duration::from_millis(50)),
                Timer::new(Duration::MAX),
            )
            .await;
            started.elapsed()
        });
        // There until the last signal has been sent to it.
        while !may_end.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        slept
    });
    for _ in 0..4000 {
        // SAFETY: the thread has not ended: it waits for `is_over`, and its handle is alive.
        let sent = unsafe { libc::pthread_kill(sleeper.as_pthread_t(), libc::SIGUSR1) };
        assert_eq!(sent, 0);
        thread::sleep(Duration::from_micros(70));
    }
    is_over.store(true, Ordering::SeqCst);
    let slept = sleeper.join().expect("signals do no harm");
    assert!(slept >= wait + Duration::from_millis(100), "{slept:?}");
    assert!(HANDLED.load(Ordering::Relaxed) > 0);
}

#[run_test]
async fn what_happens_between_the_last_look_and_the_sleep_is_not_missed() {
    // Timers, wakes and blocking calls that are ready at about the moment at which the executor
    // goes to sleep; a miss hangs.
    for i in 0..3000_u64 {
        let pause = Duration::from_nanos(i * 53 % 40_000);
        let call = executor().spawn_blocking(move || {
            let end = Instant::now() + pause;
            while Instant::now() < end {
                std::hint::spin_loop();
            }
        });
        if i % 3 == 0 {
            call.await;
        } else {
            let timer = async {
                sleep(pause).await;
            };
            or(call, timer).await;
        }
    }
}
