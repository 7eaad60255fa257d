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
            let life = Life {
                path: path.clone(),
                records,
                lasts: rng.uniform(LIFE_MIN, LIFE_MAX),
            };
            // On a blocking thread of this executor, which has nothing else to do.
            let left = executor().spawn_blocking(move || life.live()).await;
            safe = judge(&checker, &path, safe, left);
            rest(&checker, rng.uniform(PAUSE_MIN, PAUSE_MAX)).await;
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
    let ledger = &checker.stats.ledger;
    let left = match left {
        Ok(left) => left,
        Err(error) => {
            ledger.holds(Invariant::Records, false, || {
                format!("no process that appends records could be watched: {error}")
            });
            return safe;
        }
    };
    bump(&checker.stats.gauges.crashes);
    let lost = safe.saturating_sub(left.found);
    ledger.check(Invariant::Records, lost, || {
        format!(
            "{lost} of {safe} records of {} were not found by the next process",
            path.display()
        )
    });
    let lost = left.acknowledged.saturating_sub(left.whole);
    ledger.check(Invariant::Records, lost, || {
        format!(
            "{lost} of {} records of {} are gone or torn after its process was killed",
            left.acknowledged,
            path.display()
        )
    });
    left.acknowledged
}

/// One process and its file.
struct Life {
    path: PathBuf,
    records: Records,
    lasts: Duration,
}

/// What came of it, in records.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// What the process found at its beginning.
    found: u64,
    /// What it said is safe.
    acknowledged: u64,
    /// What is there.
    whole: u64,
}

impl Life {
    fn live(self) -> io::Result<Left> {
        let Records { seed, bytes } = self.records;
        let mut child = Command::new(env::current_exe()?)
            .arg("--append-to")
            .arg(&self.path)
            .args(["--record-bytes", &bytes.to_string()])
            .args(["--seed", &seed.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        process::hold_descriptors(1);
        let told = child.stdout.take().map(|stdout| {
            let mut told = String::new();
            let mut stdout = BufReader::new(stdout);
            // Its first line comes when it has recovered the file, or its end.
            let begun = stdout.read_line(&mut told);
            thread::sleep(self.lasts);
            // It may have ended by itself, which is seen by what it said.
            let _ = child.kill();
            begun.and_then(|_| stdout.read_to_string(&mut told))?;
            Ok::<_, io::Error>(told)
        });
        child.wait()?;
        process::hold_descriptors(-1);
        let told = told.transpose()?.unwrap_or_default();
        // A line that is cut short says less than it was to say.
        let mut told = told.split_inclusive('\n').filter_map(|line| {
            let number = line.strip_suffix('\n')?;
            number.parse().ok()
        });
        let found = told.next();
        let found = found.ok_or_else(|| io::Error::other("it ended before it said anything"))?;
        let acknowledged = told.next_back().unwrap_or(found);
        let whole = self.records.count_whole(0, &fs::read(&self.path)?);
        Ok(Left {
            found,
            acknowledged,
            whole,
        })
    }
}

/// Waits, but not for long when the run drains.
async fn rest(checker: &Checker, pause: Duration) {
    let began = clock::now();
    while !checker.control.is_draining() && clock::since(began) < pause {
        checker.pause(STEP).await;
    }
}

/// Processes for a file, one after the other.
const LIVES: usize = 3;

const LIFE_MIN: Duration = Duration::from_millis(20);
const LIFE_MAX: Duration = Duration::from_millis(400);

/// Processes are started seldom: others measure on this machine.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(50);
