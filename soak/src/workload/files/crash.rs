//! Starts processes that append to a file, kills each at some moment, and looks at what it left.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use super::appender::Records;
use crate::workload::prelude::*;

pub(super) async fn run(checker: Rc<Checker>, directory: PathBuf, mut rng: Rng) {
    let mut files: u64 = 0;
    while !checker.control.is_draining() {
        // By turns past the page cache and through it.
        let bytes = if files.is_multiple_of(2) { 4096 } else { 1000 };
        let seed = rng.u64(..);
        let records = Records { seed, bytes };
        let path = directory.join(format!("records-{files}"));
        files += 1;
        let mut safe = 0;
        for _ in 0..LIVES {
            let (lasts, file) = (rng.uniform(LIFE_MIN, LIFE_MAX), path.clone());
            // On a blocking thread of this executor, which has nothing else to do.
            let life = executor().spawn_blocking(move || live(&file, records, lasts));
            let left = life.await;
            safe = judge(&checker, &path, safe, left);
            // Processes are started seldom: others measure on this machine.
            let pause = rng.uniform(PAUSE_MIN, PAUSE_MAX);
            checker.rest(clock::now() + pause).await;
            if checker.control.is_draining() {
                break;
            }
        }
        // It is not there if no process could be started.
        let _ = fs::remove_file(&path);
    }
}

/// How many records have to be there from now on, `safe` of them since an earlier life.
fn judge(checker: &Checker, path: &Path, safe: u64, left: io::Result<Left>) -> u64 {
    let left = match left {
        Ok(left) => left,
        Err(error) => {
            checker.holds(Invariant::Records, false, || {
                format!("no process that appends records could be watched: {error}")
            });
            return safe;
        }
    };
    bump(&checker.stats.gauges.crashes);
    let lost = safe.saturating_sub(left.found);
    let path = path.display();
    checker.check(Invariant::Records, lost, || {
        format!("{lost} of {safe} records of {path} were not found by the next process")
    });
    let lost = left.acknowledged.saturating_sub(left.whole);
    checker.check(Invariant::Records, lost, || {
        let safe = left.acknowledged;
        format!("{lost} of {safe} records of {path} are gone or torn after its process was killed")
    });
    left.acknowledged
}

/// What came of one process, in records.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// What the process found at its beginning.
    found: u64,
    /// What it said is safe.
    acknowledged: u64,
    /// What is there.
    whole: u64,
}

/// Starts a process, and kills it after `lasts`.
fn live(path: &Path, records: Records, lasts: Duration) -> io::Result<Left> {
    let mut child = Command::new(env::current_exe()?)
        .arg("--append-to")
        .arg(path)
        .args(["--record-bytes", &records.bytes.to_string()])
        .args(["--seed", &records.seed.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    process::hold_descriptors(1);
    let mut stdout = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let mut told = String::new();
    // Its first line comes when it has recovered the file, or its end.
    let begun = stdout.read_line(&mut told);
    thread::sleep(lasts);
    // It may have ended by itself, which is seen by what it said.
    let _ = child.kill();
    let read = begun.and_then(|_| stdout.read_to_string(&mut told));
    drop(stdout);
    child.wait()?;
    process::hold_descriptors(-1);
    read?;
    // A line that is cut short says less than it was to say.
    let whole_lines = told.split_inclusive('\n');
    let lines = whole_lines.filter_map(|line| line.strip_suffix('\n'));
    let mut counts = lines.filter_map(|line| line.parse().ok());
    let found = counts.next();
    let found = found.ok_or_else(|| io::Error::other("it ended before it said anything"))?;
    Ok(Left {
        found,
        acknowledged: counts.next_back().unwrap_or(found),
        whole: records.count_whole(0, &fs::read(path)?),
    })
}

/// Processes for a file, one after the other.
const LIVES: usize = 3;

const LIFE_MIN: Duration = Duration::from_millis(20);
const LIFE_MAX: Duration = Duration::from_millis(400);

const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(2);
