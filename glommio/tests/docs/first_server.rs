//! The server of the first page of the book.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::timer::timeout;
use glommio::{GlommioError, LocalExecutor, spawn_local};

use crate::{files_below, pages, root};

#[allow(dead_code, reason = "its `main` serves for ever")]
mod program {
    include!("first_server_program.rs");

    pub(super) async fn serve(listener: TcpListener, limit: Duration) {
        echo(listener, limit).await.expect("it can accept");
    }
}

/// What is run below is what readers copy.
#[test]
fn the_program_is_the_one_that_is_tested() {
    let page = fs::read_to_string(root().join("docs/start/first-program.md")).expect("it is there");
    let (_, program) = page.split_once("```rust,no_run\n").expect("a program");
    let (program, _) = program.split_once("```\n").expect("its end");
    assert_eq!(program, include_str!("first_server_program.rs"));
}

#[test]
fn it_echoes_and_disconnects_a_silent_client() {
    let limit = Duration::from_millis(50);
    let conversation = async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let _server = spawn_local(program::serve(listener, limit));
        let mut client = TcpStream::connect(address).await?;
        for message in [&b"hello"[..], &[7; 4096]] {
            client.write_all(message).await?;
            let mut answer = vec![0; message.len()];
            client.read_exact(&mut answer).await?;
            assert_eq!(answer, message);
        }
        let silent_since = Instant::now();
        let count = client.read(&mut [0]).await?;
        assert_eq!(count, 0, "the server has closed the connection");
        assert!(silent_since.elapsed() < Duration::from_secs(30));
        Ok::<_, GlommioError<()>>(())
    };
    LocalExecutor::default()
        .run(timeout(Duration::from_secs(60), conversation))
        .expect("the conversation succeeds in time");
}

/// A server that ends at the first `EMFILE` is not to be copied.
#[test]
fn accept_loops_go_on_after_errors() {
    let mut files: Vec<PathBuf> = pages().iter().map(|it| root().join(it)).collect();
    files_below(&root().join("examples/src"), "rs", &mut files).expect("it is there");
    for file in files {
        let text = fs::read_to_string(&file).expect("it is text");
        let mut before = "";
        let mut is_accepted = false;
        for (number, line) in text.lines().map(str::trim).enumerate() {
            let ends_loop = line.starts_with("while let Ok") && line.contains("accept().await");
            let leaves_loop = before.ends_with("loop {") && line.ends_with("accept().await?;");
            if line.starts_with("match ") && line.ends_with(".await {") {
                is_accepted = line.contains(".accept");
            }
            let is_left = ["=> return", "=> break"].iter().any(|it| line.contains(it));
            let leaves_match = is_accepted && line.starts_with("Err(") && is_left;
            let is_fine = !ends_loop && !leaves_loop && !leaves_match;
            assert!(is_fine, "{}:{}: {line}", file.display(), number + 1);
            before = line;
        }
    }
}
