//! The cases. Each begins with one thread, which blocks no signal.

use std::future::Future;
use std::pin::pin;
use std::process::{self, Command};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, io};

use futures_lite::future::{or, poll_once, yield_now};
use glommio::channels::oneshot;
use glommio::signal::{self, Signals};
use glommio::timer::sleep;
use glommio::{
    GlommioError, LocalExecutor, LocalExecutorBuilder, Placement, PoolPlacement, executor,
    spawn_local,
};
use libc::{SIGHUP, SIGINT, SIGKILL, SIGRTMIN, SIGSTOP, SIGTERM, SIGUSR1, SIGUSR2, c_int};

type Result<T = ()> = std::result::Result<T, GlommioError<()>>;

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub const ALL: &[(&str, fn())] = &[$((stringify!($name), $name)),*];
    };
}

cases![
    another_process_sends_and_a_sleeping_executor_receives,
    ctrl_c_waits_for_the_signal_of_the_terminal,
    signals_that_came_before_the_reader_are_received,
    a_signal_goes_to_one_of_those_that_wait,
    equal_signals_are_one_unless_they_queue,
    each_number_is_told_apart,
    a_wait_that_is_dropped_loses_nothing,
    waits_that_are_dropped_leave_no_descriptor,
    threads_of_executors_inherit_what_main_blocks,
    two_executors_share_the_signals,
    what_cannot_be_received_is_refused_and_changes_nothing,
    no_descriptor_is_an_error_and_changes_nothing,
    a_reader_outside_an_executor_panics_and_changes_nothing,
    a_reader_outlives_its_executor,
    signals_without_end_do_not_keep_the_thread,
];

fn run<T>(future: impl Future<Output = Result<T>>) -> T {
    LocalExecutor::default()
        .run(future)
        .expect("all calls succeed")
}

/// Sends a signal to this process.
fn kill(signal: c_int) {
    // SAFETY: the call takes two numbers.
    let failed = unsafe { libc::kill(libc::getpid(), signal) };
    assert_eq!(failed, 0, "{}", io::Error::last_os_error());
}

/// Has another process send a signal to this one, after a while.
fn kill_from_outside(signal: c_int) -> process::Child {
    let command = format!("sleep 0.1; kill -{signal} {}", process::id());
    Command::new("sh")
        .args(["-c", &command])
        .spawn()
        .expect("there is a shell")
}

/// The signals that this thread blocks: bit 0 is for signal 1.
fn blocked() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").expect("there is a `/proc`");
    let mask = (status.lines()).find_map(|line| line.strip_prefix("SigBlk:"));
    u64::from_str_radix(mask.expect("it says so").trim(), 16).expect("a number")
}

fn bits(signals: &[c_int]) -> u64 {
    signals.iter().map(|signal| 1 << (signal - 1)).sum()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd")
        .expect("there is a `/proc`")
        .count()
}

/// The text of the error of kind `InvalidInput` that this must be.
fn refused<T>(result: Result<T>) -> String {
    match result.err().expect("it is refused") {
        GlommioError::IoError(error) => {
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
            error.to_string()
        }
        error => panic!("not an I/O error: {error}"),
    }
}

fn another_process_sends_and_a_sleeping_executor_receives() {
    signal::block(&[SIGTERM]).expect("it can be blocked");
    run(async {
        let signals = Signals::new(&[SIGTERM])?;
        let mut sender = kill_from_outside(SIGTERM);
        let received = signals.recv().await;
        assert!(sender.wait().expect("it is our child").success());
        assert_eq!(received?, SIGTERM);
        assert_eq!(signals.try_recv()?, None, "it was one");
        Ok(())
    });
}

fn ctrl_c_waits_for_the_signal_of_the_terminal() {
    signal::block(&[SIGINT]).expect("it can be blocked");
    run(async {
        let mut sender = kill_from_outside(SIGINT);
        let received = signal::ctrl_c().await;
        assert!(sender.wait().expect("it is our child").success());
        received?;
        // And again, with a reader of its own.
        let waiting = spawn_local(signal::ctrl_c());
        kill(SIGINT);
        waiting.await
    });
}

fn signals_that_came_before_the_reader_are_received() {
    signal::block(&[SIGHUP, SIGTERM]).expect("they can be blocked");
    kill(SIGHUP);
    run(async {
        let signals = Signals::new(&[SIGHUP, SIGTERM])?;
        assert_eq!(signals.try_recv()?, Some(SIGHUP));
        assert_eq!(signals.try_recv()?, None);
        kill(SIGTERM);
        assert_eq!(signals.recv().await?, SIGTERM);
        Ok(())
    });
}

fn a_signal_goes_to_one_of_those_that_wait() {
    run(async {
        let signals = Rc::new(Signals::new(&[SIGUSR1, SIGUSR2])?);
        let waits = |_| {
            let signals = Rc::clone(&signals);
            spawn_local(async move { signals.recv().await })
        };
        let mut waiting: Vec<_> = (0..3).map(waits).collect();
        for signal in [SIGUSR1, SIGUSR2, SIGUSR1] {
            // They sleep in the kernel, and not only in their queue.
            sleep(Duration::from_millis(2)).await;
            kill(signal);
            let received = loop {
                let mut found = None;
                for (place, task) in waiting.iter_mut().enumerate() {
                    if let Some(received) = poll_once(task).await {
                        assert!(
                            found.replace((place, received?)).is_none(),
                            "two received it"
                        );
                    }
                }
                match found {
                    Some(found) => break found,
                    None => sleep(Duration::from_millis(1)).await,
                }
            };
            assert_eq!(received.1, signal);
            drop(waiting.remove(received.0));
        }
        Ok(())
    });
}

fn equal_signals_are_one_unless_they_queue() {
    run(async {
        let queued = SIGRTMIN() + 3;
        let signals = Signals::new(&[SIGUSR1, queued])?;
        for _ in 0..5 {
            kill(SIGUSR1);
            kill(queued);
        }
        let mut received = Vec::new();
        while let Some(signal) = signals.try_recv()? {
            received.push(signal);
        }
        received.sort_unstable();
        assert_eq!(received, [SIGUSR1, queued, queued, queued, queued, queued]);
        Ok(())
    });
}

fn each_number_is_told_apart() {
    run(async {
        let first = Signals::new(&[SIGUSR1])?;
        let second = Signals::new(&[SIGUSR2, SIGRTMIN()])?;
        kill(SIGRTMIN());
        kill(SIGUSR1);
        assert_eq!(first.recv().await?, SIGUSR1);
        assert_eq!(second.recv().await?, SIGRTMIN());
        assert_eq!((first.try_recv()?, second.try_recv()?), (None, None));
        Ok(())
    });
}

fn a_wait_that_is_dropped_loses_nothing() {
    run(async {
        let signals = Signals::new(&[SIGUSR1])?;
        for polls_after in 0..2 {
            {
                let mut waiting = pin!(signals.recv());
                assert!(poll_once(&mut waiting).await.is_none());
                kill(SIGUSR1);
                if polls_after > 0 {
                    // Its task was woken by then, and the future is not polled again.
                    sleep(Duration::from_millis(2)).await;
                }
            }
            assert_eq!(signals.recv().await?, SIGUSR1);
        }
        Ok(())
    });
}

fn waits_that_are_dropped_leave_no_descriptor() {
    run(async {
        let before = descriptors();
        for round in 0..200 {
            let mut waiting = pin!(signal::ctrl_c());
            for _ in 0..round % 3 {
                assert!(poll_once(&mut waiting).await.is_none());
                yield_now().await;
            }
        }
        sleep(Duration::from_millis(1)).await;
        assert_eq!(descriptors(), before);
        Ok(())
    });
}

fn threads_of_executors_inherit_what_main_blocks() {
    signal::block(&[SIGTERM]).expect("it can be blocked");
    let receiver = LocalExecutorBuilder::new(Placement::Unbound)
        .blocking_thread_pool_placement(PoolPlacement::Unbound(2))
        .spawn(|| async {
            let of_pool = executor().spawn_blocking(blocked).await;
            assert_eq!(of_pool & bits(&[SIGTERM]), bits(&[SIGTERM]));
            let signals = Signals::new(&[SIGTERM])?;
            kill(SIGTERM);
            signals.recv().await
        })
        .expect("a thread can be started");
    let received = receiver.join().expect("it does not panic");
    assert_eq!(received.expect("it is received"), SIGTERM);
}

/// Each signal is received by one of them, whichever that is.
fn two_executors_share_the_signals() {
    const SENT: usize = 40;
    let signal = SIGRTMIN() + 1;
    signal::block(&[signal]).expect("it can be blocked");
    let (report, reports) = mpsc::channel();
    let receivers = [(); 2].map(|()| {
        let report = report.clone();
        let (stop, stopped) = oneshot::shared::<()>();
        let receiver = LocalExecutorBuilder::default()
            .spawn(move || async move {
                let signals = Signals::new(&[signal])?;
                let receive = async {
                    loop {
                        signals.recv().await?;
                        report.send(()).expect("the test listens");
                    }
                };
                or(receive, async {
                    let _ = stopped.await;
                    Result::Ok(())
                })
                .await
            })
            .expect("a thread can be started");
        (receiver, stop)
    });
    for _ in 0..SENT {
        kill(signal);
    }
    for _ in 0..SENT {
        let patience = Duration::from_secs(60);
        reports.recv_timeout(patience).expect("none is lost");
    }
    for (receiver, stop) in receivers {
        drop(stop);
        receiver
            .join()
            .expect("it does not panic")
            .expect("it receives");
    }
    assert!(reports.try_recv().is_err(), "none is received twice");
}

fn what_cannot_be_received_is_refused_and_changes_nothing() {
    run(async {
        let before = (blocked(), descriptors());
        for signal in [SIGKILL, SIGSTOP] {
            let text = refused(Signals::new(&[SIGUSR1, signal]));
            let expected = format!("signal {signal} can be neither blocked nor received");
            assert_eq!(text, expected);
            assert_eq!(refused(signal::block(&[SIGUSR1, signal])), expected);
        }
        for signal in [0, -1, 65, c_int::MAX, c_int::MIN] {
            let text = refused(Signals::new(&[SIGUSR1, signal]));
            let expected = format!("signal {signal} is not a signal number");
            assert_eq!(text, expected);
            assert_eq!(refused(signal::block(&[signal, SIGUSR1])), expected);
        }
        assert_eq!(refused(Signals::new(&[])), "no signal to receive was named");
        signal::block(&[])?;
        assert_eq!((blocked(), descriptors()), before);
        Ok(())
    });
}

fn no_descriptor_is_an_error_and_changes_nothing() {
    run(async {
        let before = blocked();
        let mut held = Vec::new();
        let limit = libc::rlimit {
            rlim_cur: 64,
            rlim_max: 64,
        };
        // SAFETY: the call reads a limit, which is borrowed for it.
        let failed = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
        assert_eq!(failed, 0);
        while let Ok(file) = fs::File::open("/dev/null") {
            held.push(file);
        }
        let error = Signals::new(&[SIGUSR1]).expect_err("no descriptor is left");
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{error}");
        // One for looking.
        held.pop();
        assert_eq!(blocked(), before);
        drop(held);
        let signals = Signals::new(&[SIGUSR1])?;
        assert_eq!(blocked(), before | bits(&[SIGUSR1]));
        kill(SIGUSR1);
        assert_eq!(signals.recv().await?, SIGUSR1);
        Ok(())
    });
}

fn a_reader_outside_an_executor_panics_and_changes_nothing() {
    let before = blocked();
    let panicked = std::panic::catch_unwind(|| drop(Signals::new(&[SIGUSR1])));
    assert!(panicked.is_err());
    assert_eq!(blocked(), before);
}

fn a_reader_outlives_its_executor() {
    let signals = run(async { Signals::new(&[SIGUSR1]) });
    kill(SIGUSR1);
    assert_eq!(signals.try_recv().expect("it is open"), Some(SIGUSR1));
    let error = LocalExecutor::default()
        .run(signals.recv())
        .expect_err("its ring is gone");
    match error {
        GlommioError::EnhancedIoError { source, .. } => {
            assert_eq!(source.kind(), io::ErrorKind::NotConnected, "{source}");
        }
        error => panic!("{error}"),
    }
}

/// Each is sent before it is received, in the same poll.
fn signals_without_end_do_not_keep_the_thread() {
    run(async {
        let signals = Signals::new(&[SIGRTMIN()])?;
        let endless = async {
            loop {
                kill(SIGRTMIN());
                signals.recv().await?;
            }
        };
        let timers = async {
            sleep(Duration::from_millis(2)).await;
            Ok(())
        };
        or(endless, timers).await
    });
}
