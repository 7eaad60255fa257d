//! A process that writes, and says what is confirmed, is killed at random.

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use glommio::LocalExecutor;
use timelog::durable::{Config, Log};

use super::history::{Value, act, rows_at, rows_of};
use super::{crashes, kill};

fn config() -> Config {
    Config::default()
        .wal_file_bytes(256 << 10)
        .wake_up(Duration::from_millis(1))
}

/// Writes, has checkpoints and copies made, and closes and opens the log, all the time.
pub fn write_until_killed(folder: &Path) {
    LocalExecutor::default().run(async {
        let say = |word: &str, seq: u64| {
            let mut output = std::io::stdout().lock();
            writeln!(output, "{word} {seq}").expect("the test listens");
        };
        for life in 0.. {
            let (log, _) = Log::<Value>::open(folder, config())
                .await
                .expect("a crash is no damage");
            say("open", log.seq().0);
            let mut commits = VecDeque::new();
            for _ in 0..200 {
                commits.push_back(act(&log));
                if commits.len() == 16 {
                    let oldest = commits.pop_front().expect("there are some");
                    say("confirmed", oldest.await.expect("nothing fails").0);
                }
            }
            match life % 3 {
                0 => log.checkpoint().await.expect("nothing fails"),
                1 => {
                    let copy = folder.join("copy");
                    let _ = std::fs::remove_dir_all(&copy);
                    log.backup(copy).await.expect("nothing fails");
                }
                _ => {}
            }
            let seq = log.seq().0;
            log.close().await.expect("nothing fails");
            say("confirmed", seq);
        }
    });
}

#[test]
fn what_was_confirmed_is_there_after_a_process_was_killed() {
    const KILLS_OF_A_LOG: u64 = 10;
    let mut random = Rng::with_seed(1);
    let mut folder = tempfile::tempdir().expect("the disk has room");
    let (mut before, mut sum) = (0, 0);
    let kills = crashes(12);
    for kill_number in 0..kills {
        if kill_number % KILLS_OF_A_LOG == 0 {
            folder = tempfile::tempdir().expect("the disk has room");
            before = 0;
        }
        let most = 1 << random.u32(1..12);
        let (lines, delay) = (random.usize(0..most), random.u64(..3000));
        let said = kill("write", folder.path(), lines, Duration::from_micros(delay));
        let confirmed = said.iter().filter_map(|line| {
            let (word, number) = line.split_once(' ')?;
            let number = number.parse().ok()?;
            ["open", "confirmed"].contains(&word).then_some(number)
        });
        let confirmed = confirmed.fold(before, u64::max);
        // Twice: it is the same again.
        let mut found = Vec::new();
        for _ in 0..2 {
            LocalExecutor::default().run(async {
                let opened = Log::<Value>::open(folder.path(), config()).await;
                let (log, _) = opened.expect("a crash is no damage");
                found.push(log.seq().0);
                assert_eq!(rows_of(&log), rows_at(log.seq().0), "kill {kill_number}");
                log.close().await.expect("nothing fails");
            });
        }
        assert!(found[0] >= confirmed, "{} of {confirmed}", found[0]);
        assert_eq!(found[0], found[1]);
        sum += found[0] - before;
        before = found[0];
    }
    println!("{kills} kills, {sum} operations");
    assert!(sum > 0);
}
