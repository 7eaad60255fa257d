//! The durable log, from one source, on ours and on the published glommio, in turns.

use std::path::Path;

const ROUNDS: usize = 15;

/// The work on one of the two.
macro_rules! on {
    ($name:ident, $glommio:ident, $timelog:ident) => {
        mod $name {
            use std::path::Path;
            use std::time::{Duration, Instant};

            use $glommio::timer::sleep;
            use $glommio::{LocalExecutor, spawn_local};
            use $timelog::durable::{Config, Log};

            pub struct Store(LocalExecutor, Log<u64>, i64);

            impl Store {
                pub fn open(folder: &Path) -> Self {
                    let executor = LocalExecutor::default();
                    let log = executor.run(async {
                        let opened = Log::open(folder, Config::default()).await;
                        // Until the next file is prepared.
                        sleep(Duration::from_secs(1)).await;
                        opened.expect("it is new").0
                    });
                    Self(executor, log, 0)
                }

                /// Microseconds a commit, one at a time.
                pub fn commits(&mut self) -> f64 {
                    const COMMITS: i64 = 100;
                    let (log, first) = (self.1.clone(), self.2);
                    self.2 += COMMITS;
                    self.0.run(async {
                        let start = Instant::now();
                        for ts in first..first + COMMITS {
                            let commit = log.append(ts, 7).expect("it is open");
                            commit.await.expect("it is written");
                        }
                        start.elapsed().as_secs_f64() / COMMITS as f64 * 1e6
                    })
                }

                /// MB/s of 1,000 writers.
                pub fn writers(&mut self) -> f64 {
                    const WRITERS: i64 = 1000;
                    const COMMITS: i64 = 20;
                    const ROWS: i64 = 64;
                    let (log, first) = (self.1.clone(), self.2);
                    self.2 += WRITERS * COMMITS * ROWS;
                    self.0.run(async {
                        let start = Instant::now();
                        let writers: Vec<_> = (0..WRITERS)
                            .map(|writer| {
                                let log = log.clone();
                                spawn_local(async move {
                                    for commit in 0..COMMITS {
                                        let base = first + (commit * WRITERS + writer) * ROWS;
                                        let rows = (base..base + ROWS).map(|ts| (ts, 7));
                                        let commit = log.extend(rows).expect("it is open");
                                        commit.await.expect("it is written");
                                    }
                                })
                            })
                            .collect();
                        for writer in writers {
                            writer.await;
                        }
                        let bytes = WRITERS * COMMITS * ROWS * 16;
                        bytes as f64 / start.elapsed().as_secs_f64() / 1e6
                    })
                }
            }
        }
    };
}

on!(ours, glommio, timelog);
on!(published, published_glommio, timelog_published);

/// Median, least, greatest; or, for programs, all figures, behind tabs.
fn print(what: &str, unit: &str, mut figures: Vec<f64>, is_raw: bool) {
    if is_raw {
        let figures: Vec<_> = figures.iter().map(f64::to_string).collect();
        println!("{what}\t{unit}\t{}", figures.join("\t"));
        return;
    }
    figures.sort_by(f64::total_cmp);
    let (least, most) = (figures[0], figures[figures.len() - 1]);
    let median = figures[figures.len() / 2];
    println!("{what:40} {median:10.2} {unit:5} ({least:.2} to {most:.2})");
}

fn main() {
    let (options, folders): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|it| it == "--raw");
    let folder = folders.into_iter().next();
    let folder = folder.map_or_else(std::env::temp_dir, Into::into);
    let folder = tempfile::tempdir_in(folder).expect("the folder can be written to");
    let paths = ["ours", "published"].map(|name| folder.path().join(name));
    let [of_ours, of_published]: &[_; 2] = &paths;
    measure(of_ours, of_published, !options.is_empty());
}

fn measure(of_ours: &Path, of_published: &Path, is_raw: bool) {
    let mut ours = ours::Store::open(of_ours);
    let mut published = published::Store::open(of_published);
    let mut figures = [const { Vec::new() }; 6];
    for _ in 0..ROUNDS {
        let of_ours = [ours.commits(), ours.writers()];
        let of_published = [published.commits(), published.writers()];
        let ratios = [of_published[0] / of_ours[0], of_ours[1] / of_published[1]];
        let round = of_ours.into_iter().chain(of_published).chain(ratios);
        for (figures, figure) in figures.iter_mut().zip(round) {
            figures.push(figure);
        }
    }
    let [commits, writers, commits_, writers_, of_commits, of_writers] = figures;
    print("append and commit, ours", "µs", commits, is_raw);
    print("append and commit, on 0.9.0", "µs", commits_, is_raw);
    print("– times as fast", "", of_commits, is_raw);
    print("1,000 writers, ours", "MB/s", writers, is_raw);
    print("1,000 writers, on 0.9.0", "MB/s", writers_, is_raw);
    print("– times as fast", "", of_writers, is_raw);
}
