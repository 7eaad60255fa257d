//! The program in the README.

use std::fs;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::timer::timeout;
use glommio::{GlommioError, LocalExecutor, spawn_local};

use crate::root;

#[allow(dead_code, reason = "its `main` serves for ever")]
mod program {
    include!("readme_echo.rs");

    pub(super) async fn serve(listener: TcpListener, limit: Duration) {
        echo(listener, limit).await.expect("it can accept");
    }
}

/// What is run below is what readers copy.
#[test]
fn the_program_is_the_one_that_is_tested() {
    let readme = fs::read_to_string(root().join("README.md")).expect("it is there");
    let (_, program) = readme.split_once("```rust,no_run\n").expect("a program");
    let (program, _) = program.split_once("```\n").expect("its end");
    assert_eq!(program, include_str!("readme_echo.rs"));
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

/// `BUILD` names the features of this build and no others.
#[test]
fn the_build_names_its_features() {
    let (name, features) = glommio::BUILD.split_once("; features: ").expect("features");
    assert_eq!(name, "glommio 0.9.0 (independent implementation)");
    let names: Vec<_> = features.split(' ').collect();
    for (feature, is_on) in [
        ("timing-wheel", cfg!(feature = "timing-wheel")),
        ("macros", cfg!(feature = "macros")),
        ("debugging", cfg!(feature = "debugging")),
        (
            "(for tests of the crate)",
            cfg!(any(feature = "audit", feature = "bench")),
        ),
    ] {
        assert_eq!(features.contains(feature), is_on, "{features}");
    }
    assert!(!names.contains(&""), "{features:?}");
    assert_eq!(features.contains("none"), features == "none");
}
