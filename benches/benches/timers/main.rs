//! Compares this repository's timer queues with each other and with published ones, in one process.
//!
//! ```text
//! cargo bench -p benches --bench timers --features peers -- [--rounds 15] [--rows churn] [--queues classic,staged]
//!     [--write-docs]
//! ```
//!
//! Without the feature `peers` only our own queues and the slab that is their floor take part.

use std::process::ExitCode;
use std::task::Waker;

use benches::bench::Bench;
use benches::report::{Panel, Picture};
use staged_wheel::{ClassicQueue, StagedWheel};

mod clock;
#[path = "../../../glommio/tests/common/counting.rs"]
mod counting;
mod measure;
mod menu;
#[cfg(feature = "peers")]
mod peers;
mod queues;
mod workload;

use menu::column;
use queues::Floor;

fn main() -> ExitCode {
    let rows = menu::all::<ClassicQueue<Waker>>(false);
    let rows = rows.into_iter().flat_map(|group| group.rows).collect();
    Bench {
        name: "timers",
        page: "timers",
        preface: "Lower is better; of longest polls the least stands for the rounds.",
        yardstick: "classic",
        ours: &["staged"],
        has_ranges: false,
        pictures: PICTURES,
        rounds: 15,
        remark: || {
            let cycles = 1.0 / clock::ns(1);
            format!("; {cycles:.2} cycles of the time stamp counter per ns")
        },
        ..Bench::DEFAULT
    }
    .main(rows, |options| {
        // As `cargo test` runs a bench.
        let is_small = !options.bench;
        let mut columns = vec![
            column::<ClassicQueue<Waker>>(menu::all::<ClassicQueue<Waker>>(is_small)),
            column::<StagedWheel<Waker>>(menu::all::<StagedWheel<Waker>>(is_small)),
        ];
        #[cfg(feature = "peers")]
        columns.extend(peers::columns(is_small));
        columns.push(column::<Floor>(menu::unordered::<Floor>(is_small)));
        Ok(columns)
    })
}

#[rustfmt::skip]
const PICTURES: &[Picture] = &[
    Picture {
        file: "timers-churn.svg",
        title: "Timer queues: cancel + insert",
        x: "live timers",
        y: "ns per cancel and insert",
        panels: &[
            Panel {
                title: "the timer just armed is cancelled",
                of: "",
                points: &[(1e3, "churn-recent-mixed-1000"), (1e4, "churn-recent-mixed-10000"), (1e5, "churn-recent-mixed-100000"), (1e6, "churn-recent-mixed-1000000")],
            },
            Panel {
                title: "any timer is cancelled",
                of: "",
                points: &[(1e3, "churn-random-mixed-1000"), (1e4, "churn-random-mixed-10000"), (1e5, "churn-random-mixed-100000"), (1e6, "churn-random-mixed-1000000")],
            },
        ],
    },
    Picture {
        file: "timers-insert.svg",
        title: "Timer queues: insert",
        x: "timers inserted",
        y: "ns per insert",
        panels: &[
            Panel {
                title: "cold: a fresh queue, its memory included",
                of: "",
                points: &[(1e2, "insert-cold-100"), (1e3, "insert-cold-1000"), (1e4, "insert-cold-10000"), (1e5, "insert-cold-100000"), (1e6, "insert-cold-1000000")],
            },
            Panel {
                title: "warm: a queue that was as full before",
                of: "",
                points: &[(1e2, "insert-warm-100"), (1e3, "insert-warm-1000"), (1e4, "insert-warm-10000"), (1e5, "insert-warm-100000"), (1e6, "insert-warm-1000000")],
            },
        ],
    },
];
