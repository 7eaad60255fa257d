//! The standard input, in processes of their own.

use std::fs::File;
use std::io::Write;

use glommio::io::stdin;

use super::*;
use crate::common::in_child_with_input;

/// Runs `body` in a process that gets the lines piece by piece.
fn fed(body: impl FnOnce()) {
    let (reader, mut writer) = io::pipe().expect("a pipe");
    let feeder = thread::spawn(move || {
        for piece in lines().as_bytes().chunks(1000) {
            // In the child itself, which has another input, this pipe is not read.
            if writer.write_all(piece).is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
    });
    in_child_with_input(reader, body);
    feeder.join().expect("it does not panic");
}

fn lines() -> String {
    (0..2000).map(|at| format!("line {at}\n")).collect()
}

#[run_test(fed)]
fn a_pipe_is_read_to_its_end() {
    run(async {
        let mut read = Vec::new();
        let mut stdin = stdin();
        stdin.read_to_end(&mut read).await?;
        assert!(read == lines().as_bytes());
        assert_eq!(stdin.read(&mut [0; 10]).await?, 0);
        Ok(())
    });
}

#[test]
fn a_file_is_read_to_its_end() {
    let folder = folder();
    let path = folder.path().join("input");
    std::fs::write(&path, lines()).expect("the disk has room");
    let input = File::open(&path).expect("it is there");
    in_child_with_input(input, || {
        run(async {
            let read: Vec<_> = stdin().lines().collect::<Vec<_>>().await;
            assert_eq!(read.len(), 2000);
            for (at, line) in read.into_iter().enumerate() {
                assert_eq!(line?, format!("line {at}"));
            }
            Ok(())
        });
    });
}

#[run_test(fed)]
fn a_poll_out_of_turn_is_no_more_than_a_poll() {
    run(async {
        let mut lines = stdin().lines();
        let mut count = 0;
        loop {
            let next = match poll_once(lines.next()).await {
                Some(next) => next,
                None => lines.next().await,
            };
            let Some(line) = next else { break };
            assert_eq!(line?, format!("line {count}"));
            count += 1;
        }
        assert_eq!(count, 2000);
        Ok(())
    });
}

/// The descriptor stays open, and a read that waits does not keep the executor from ending.
#[test]
fn a_read_that_waits_is_given_up_and_the_input_stays_open() {
    let (reader, _writer) = io::pipe().expect("a pipe");
    in_child_with_input(reader, || {
        for _ in 0..2 {
            run(async {
                let mut stdin = stdin();
                let mut buf = [0; 10];
                assert!(poll_once(stdin.read(&mut buf)).await.is_none());
                sleep(Duration::from_millis(5)).await;
                assert!(poll_once(stdin.read(&mut buf)).await.is_none());
                Ok(())
            });
        }
        assert!(std::fs::read_link("/proc/self/fd/0").is_ok());
    });
}
