//! Durable logs on the disk of the system: processes that are killed, and what users do.
//!
//! `TIMELOG_CRASHES=1000 cargo test --release -p timelog --features durable --test durable killed`
//! kills as many processes.

mod history;
mod killed;
mod sharded;
mod use_;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use timelog::durable::Config;

/// Files and periods that are soon over.
pub fn quick() -> Config {
    Config::default()
        .wal_file_bytes(64 << 10)
        .wake_up(Duration::from_millis(1))
}

const ROLE: &str = "TIMELOG_TEST_ROLE";
const FOLDER: &str = "TIMELOG_TEST_FOLDER";

/// This program in another role.
fn child(role: &str, folder: &Path) -> Command {
    let program = std::env::current_exe().expect("the program knows where it is");
    let mut command = Command::new(program);
    command
        .args(["--exact", "a_process_of_another_test", "--nocapture"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What the processes of the other tests are.
#[test]
fn a_process_of_another_test() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let folder = std::env::var_os(FOLDER).expect("it is set along with the role");
    let folder = Path::new(&folder);
    match &role[..] {
        "write" => killed::write_until_killed(folder),
        "hold" => use_::hold(folder),
        "write-shards" => sharded::write_until_killed(folder),
        _ => panic!("{role} is no role"),
    }
}

/// A child that is killed if the test ends before.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts this program in a role, and kills it when it has printed so many lines and some time has passed. All that it
/// printed; the last line may be cut off.
fn kill(role: &str, folder: &Path, lines: usize, delay: Duration) -> Vec<String> {
    let started = child(role, folder).spawn();
    let mut process = Killed(started.expect("the test program can be started again"));
    let output = process.0.stdout.take().expect("it is a pipe");
    let mut output = BufReader::new(output).lines().map_while(Result::ok);
    let mut printed: Vec<_> = output.by_ref().take(lines).collect();
    std::thread::sleep(delay);
    process.0.kill().expect("it is a child of this process");
    process.0.wait().expect("it is a child of this process");
    printed.extend(output);
    printed
}

/// As many cases as an environment variable says.
fn crashes(default: u64) -> u64 {
    match std::env::var("TIMELOG_CRASHES") {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    }
}
