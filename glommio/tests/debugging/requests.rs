//! Dumps that other threads and signals ask for.

use std::io::{BufRead, BufReader};
use std::sync::mpsc::channel;

use glommio::debugging::{Resource, dump_all, dump_on_signal};

use crate::common::prelude::*;
use crate::{named, resource};

const LIMIT: Duration = Duration::from_secs(60);

#[run_test]
fn an_executor_that_sleeps_answers_another_thread() {
    let (started, ids) = channel();
    let (end, ended) = glommio::channels::oneshot::shared::<()>();
    let thread = LocalExecutorBuilder::default()
        .name("asleep")
        .spawn(|| async move {
            let _nap = named("nap", sleep(Duration::from_secs(3600)));
            started.send(executor().id()).expect("it is received");
            ended.await.expect("it is sent");
        });
    let thread = thread.expect("there is a thread");
    let id = ids.recv().expect("it is sent");
    let dumps = dump_all(LIMIT);
    let mut of_id = dumps.iter().flatten().filter(|it| it.executor == id);
    let dump = of_id.next().expect("it has answered");
    assert!(of_id.next().is_none(), "once");
    let name = dump.thread.as_deref().expect("it has a name");
    assert!(name.starts_with("asleep"), "{name}");
    assert!(
        matches!(resource(dump, "nap"), Resource::Timer { .. }),
        "{dump}"
    );
    end.send(()).expect("it is received");
    thread.join().expect("it ends well");
    let is_there = |it: &Result<_, glommio::debugging::NoDump>| match it {
        Ok(dump) => glommio::debugging::Dump::clone(dump).executor == id,
        Err(none) => none.executor == id,
    };
    assert!(!dump_all(Duration::ZERO).iter().any(is_there), "it is gone");
}

#[run_test]
fn an_executor_whose_task_does_not_return_says_which_it_is() {
    let (started, ids) = channel();
    let (end, ended) = channel::<()>();
    let line = line!() + 3;
    let thread = std::thread::spawn(move || {
        run(async move {
            let stuck = spawn_local(async move {
                started.send(executor().id()).expect("it is received");
                ended.recv().expect_err("it is dropped");
            });
            stuck.await;
        });
    });
    let id = ids.recv().expect("it is sent");
    let dumps = dump_all(Duration::from_millis(20));
    let mut silent = dumps.iter().filter_map(|it| it.as_ref().err());
    let silent = silent
        .find(|it| it.executor == id)
        .expect("it cannot answer");
    let place = silent.running.expect("it polls a task");
    assert_eq!((place.line(), place.file()), (line, file!()), "{silent}");
    drop(end);
    thread.join().expect("it ends well");
}

#[test]
fn a_task_that_asks_for_all_gets_that_of_its_executor_at_once() {
    let outside = LocalExecutor::default();
    run(async {
        let before = Instant::now();
        let dumps = dump_all(Duration::ZERO);
        assert!(before.elapsed() < LIMIT);
        let own = dumps
            .iter()
            .flatten()
            .find(|it| it.executor == executor().id());
        assert_eq!(own.expect("it is here").tasks.len(), 1);
        let mut silent = dumps.iter().filter_map(|it| it.as_ref().err());
        let silent = silent.find(|it| it.executor == outside.id());
        assert!(silent.is_some(), "it does not run");
    });
}

/// Whether it runs is not known: its thread may poll something that is no task.
#[test]
fn an_executor_that_polls_no_known_task_is_not_said_to_stand_still() {
    let outside = LocalExecutor::default();
    let dumps = dump_all(Duration::ZERO);
    let mut silent = dumps.iter().filter_map(|it| it.as_ref().err());
    let silent = silent.find(|it| it.executor == outside.id());
    let text = silent.expect("it does not run").to_string();
    assert!(
        text.ends_with("it polls no task that is known here"),
        "{text}"
    );
}

#[run_test]
async fn many_threads_ask_at_once() {
    let id = executor().id();
    let threads: Vec<_> = (0..8)
        .map(|_| std::thread::spawn(|| dump_all(LIMIT)))
        .collect();
    let answers = executor().spawn_blocking(move || {
        let answers = threads
            .into_iter()
            .map(|it| it.join().expect("it ends well"));
        answers.collect::<Vec<_>>()
    });
    for dumps in answers.await {
        assert!(dumps.iter().flatten().any(|it| it.executor == id));
    }
}

#[run_test]
fn an_executor_that_is_dropped_is_not_waited_for() {
    let local = LocalExecutor::default();
    let id = local.id();
    let asking = std::thread::spawn(|| dump_all(Duration::MAX));
    // It has asked, or does not find the executor.
    std::thread::sleep(Duration::from_millis(20));
    drop(local);
    // Executors of other tests answer when they are dropped at the latest.
    let dumps = asking.join().expect("it ends well");
    assert!(!dumps.iter().flatten().any(|it| it.executor == id));
}

#[run_test]
fn a_signal_has_all_dumps_written_to_the_standard_error() {
    if std::env::var_os("GLOMMIO_DUMPED").is_none() {
        let itself = std::env::current_exe().expect("it is known");
        let test = "requests::a_signal_has_all_dumps_written_to_the_standard_error";
        let mut child = std::process::Command::new(itself);
        child
            .args(["--exact", test, "--nocapture"])
            .env("GLOMMIO_DUMPED", "1");
        let mut child = child.stderr(Stdio::piped()).spawn().expect("it starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut lines = stderr.lines().map(|line| line.expect("it is text"));
        let is_written = lines.any(|line| line.contains("\"nap\" in queue \"default\""));
        child.kill().expect("it is there");
        child.wait().expect("it ends");
        assert!(is_written, "it ended by itself");
        return;
    }
    dump_on_signal(libc::SIGUSR2).expect("it can be handled");
    run(async {
        let _nap = named("nap", sleep(Duration::from_secs(3600)));
        // SAFETY: the call takes two numbers.
        assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGUSR2) }, 0);
        std::future::pending::<()>().await;
    });
}

#[test]
fn a_signal_that_must_not_be_handled_is_refused() {
    for signal in [libc::SIGKILL, libc::SIGSEGV, 0, 4711] {
        assert!(dump_on_signal(signal).is_err(), "{signal}");
    }
}
