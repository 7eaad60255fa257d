//! A paused clock, and calls that are out in tokio meanwhile.

use std::future::{Future, pending};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_lite::future::poll_once;
use glommio::future::timeout;
use glommio::{LocalExecutorBuilder, spawn_local, time, timer};
use glommio_hyper::GlommioExecutor;
use glommio_tokio::{Tokio, TokioExecutor, with_tokio};
use hyper::rt::Executor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const MICROSECOND: Duration = Duration::from_micros(1);
const HOUR: Duration = Duration::from_secs(3600);

/// What has not happened by then never will. The clock of the executor cannot tell.
const PATIENCE: Duration = Duration::from_secs(60);

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn run_paused(test: impl Future<Output = Result>) {
    let (over, is_over) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if is_over.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("the clock stands still");
            std::process::abort();
        }
    });
    let executor = LocalExecutorBuilder::default().start_paused(true).make();
    let result = executor.expect("this machine has io_uring").run(test);
    drop(over);
    watchdog.join().expect("it does not panic");
    result.expect("the test's operations succeed");
}

async fn sleep_of_tokio(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[test]
fn a_time_limit_does_not_end_a_call_that_is_out_in_tokio() {
    run_paused(async {
        let tokio = Tokio::start()?;
        let start = time::now();
        timeout(MICROSECOND, tokio.with(sleep_of_tokio(20))).await?;
        timeout(MICROSECOND, with_tokio(sleep_of_tokio(20))).await?;
        let blocking = || thread::sleep(Duration::from_millis(20));
        let call = tokio.with(async move { tokio::task::spawn_blocking(blocking).await });
        timeout(MICROSECOND, call).await??;
        // Also if the limit is inside of the call, or around the handler that makes it.
        let limited = tokio.with(async { timeout(MICROSECOND, sleep_of_tokio(20)).await });
        limited.await?;
        let handler = tokio.scope(tokio.with(sleep_of_tokio(20)));
        timeout(MICROSECOND, handler).await?;
        assert_eq!(time::now(), start);
        Ok(())
    });
}

#[test]
fn a_time_limit_does_not_end_a_request_to_another_thread() {
    run_paused(async {
        let tokio = Tokio::start()?;
        let listener = tokio.with(TcpListener::bind("127.0.0.1:0")).await?;
        let address = listener.local_addr()?;
        let server = tokio.handle().spawn(async move {
            let (mut stream, _) = listener.accept().await?;
            let mut byte = [0];
            while stream.read(&mut byte).await? > 0 {
                sleep_of_tokio(5).await;
                stream.write_all(&byte).await?;
            }
            std::io::Result::Ok(())
        });
        let start = time::now();
        let mut stream = timeout(MICROSECOND, tokio.with(TcpStream::connect(address))).await??;
        for sent in 0..5 {
            let request = async {
                stream.write_all(&[sent]).await?;
                stream.read_u8().await
            };
            assert_eq!(timeout(MICROSECOND, tokio.with(request)).await??, sent);
        }
        drop(stream);
        timeout(MICROSECOND, tokio.with(server)).await???;
        assert_eq!(time::now(), start);
        Ok(())
    });
}

#[test]
fn it_goes_on_once_no_call_is_out() {
    run_paused(async {
        let tokio = Tokio::start()?;
        let start = time::now();
        // Over, but not dropped.
        let mut over = Box::pin(tokio.with(sleep_of_tokio(1)));
        over.as_mut().await;
        timer::sleep(HOUR).await;
        // Dropped, by this thread and by another.
        let mut given_up = Box::pin(tokio.with(sleep_of_tokio(10_000_000)));
        assert!(poll_once(given_up.as_mut()).await.is_none());
        drop(given_up);
        timer::sleep(HOUR).await;
        let mut sent = Box::pin(tokio.with(sleep_of_tokio(10_000_000)));
        assert!(poll_once(sent.as_mut()).await.is_none());
        let dropping = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            drop(sent);
        });
        timer::sleep(HOUR).await;
        assert!(dropping.is_finished() || dropping.join().is_ok());
        assert_eq!(time::now() - start, 3 * HOUR);
        Ok(())
    });
}

/// A scope, and what tasks of clients do in the background, may wait for its timers.
#[test]
fn it_goes_on_while_scopes_wait() {
    run_paused(async {
        let tokio = Tokio::start()?;
        let start = time::now();
        spawn_local(tokio.scope(pending::<()>())).detach();
        TokioExecutor::new(tokio.clone(), GlommioExecutor::new()).execute(pending::<()>());
        let handler = tokio.scope(async {
            timer::sleep(HOUR).await;
            sleep_of_tokio(1).await;
            timer::sleep(HOUR).await;
        });
        handler.await;
        assert_eq!(time::now() - start, 2 * HOUR);
        Ok(())
    });
}

#[test]
fn a_simulation_has_no_tokio() -> Result {
    let client = || async {
        let error = Tokio::start().expect_err("it would reach the machine");
        assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
    };
    let run = glommio::simulation::Simulation::builder().client("client", client);
    Ok(run.run().map(drop)?)
}

/// Polled where no executor runs, and on one whose clock is not paused.
#[test]
fn other_clocks_are_not_concerned() -> Result {
    let tokio = Tokio::start()?;
    futures_lite::future::block_on(tokio.with(sleep_of_tokio(1)));
    let executor = LocalExecutorBuilder::default().make()?;
    executor.run(async {
        let late = timeout(Duration::from_millis(1), tokio.with(pending::<()>()));
        assert!(late.await.is_err());
    });
    Ok(())
}
