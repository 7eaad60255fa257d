//! Processes with two shards that are killed.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use timelog::Ts;

use super::super::{crashes, kill};
use super::{key, quick, with_log};

/// Writes rows of a writer on each shard, has checkpoints made, and closes and opens the log, all the time;
/// and says what is confirmed.
pub fn write_until_killed(folder: &Path) {
    loop {
        with_log(2, folder, quick(), |log| async move {
            let writer = log.shard_id() as u64;
            let snapshots = log.snapshots().await.expect("both are there");
            let rows = snapshots.range(..).filter(|(_, it)| it[0] == writer);
            let first = rows.count() as u64;
            let mut commits = std::collections::VecDeque::new();
            for next in first..first + 250 {
                let commit = log.append(key(writer), next as Ts, [writer, next]).await;
                commits.push_back(commit.expect("both are there"));
                if commits.len() == 16 {
                    let oldest = commits.pop_front().expect("there are some");
                    oldest.await.expect("nothing fails");
                    let mut output = std::io::stdout().lock();
                    writeln!(output, "confirmed {writer} {}", next - 15).expect("the test listens");
                }
            }
            for commit in commits {
                commit.await.expect("nothing fails");
            }
            log.log().checkpoint().await.expect("nothing fails");
        });
    }
}

/// Of each key a prefix that has all that was confirmed.
#[test]
fn what_shards_confirmed_is_there_after_a_process_was_killed() {
    let mut random = Rng::with_seed(2);
    let folder = tempfile::tempdir().unwrap();
    let mut confirmed = [0; 2];
    for _ in 0..crashes(6) {
        let lines = random.usize(..600);
        for line in kill("write-shards", folder.path(), lines, Duration::ZERO) {
            let mut words = line
                .split(' ')
                .skip_while(|word| *word != "confirmed")
                .skip(1);
            let mut number = || words.next()?.parse::<usize>().ok();
            if let Some((writer, number)) = number().zip(number()) {
                confirmed[writer] = confirmed[writer].max(number as u64 + 1);
            }
        }
        let found = with_log(2, folder.path(), quick(), |log| async move {
            let all = log.snapshots().await.unwrap();
            let of = |writer| {
                let values = all.range(..).map(|(_, it)| *it);
                let numbers = values.filter(move |it| it[0] == writer).map(|it| it[1]);
                let count = numbers.clone().count() as u64;
                assert!(numbers.eq(0..count), "something is missing");
                count
            };
            [of(0), of(1)]
        });
        assert_eq!(found[0], found[1]);
        for (found, confirmed) in found[0].iter().zip(confirmed) {
            assert!(*found >= confirmed, "{found} of {confirmed}");
        }
    }
    assert!(confirmed[0] > 0 && confirmed[1] > 0, "{confirmed:?}");
}
