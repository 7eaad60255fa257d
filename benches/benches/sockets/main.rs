//! Compares the sockets of this repository's glommio with those of the published runtimes: servers
//! under one load.
//!
//! ```text
//! cargo bench -p benches --bench sockets --features peers -- [--rounds 5] [--only tcp] [--crates ours,glommio]
//!     [--write-docs]
//! ```
//!
//! How it is done is said in `benches::runtime` and `benches::runtime::load`. The report and the
//! diagram go to `target/peers/`; with `--write-docs` also to `docs/sockets.md`. Without the
//! feature `peers` our own crate is measured alone.

use std::process::ExitCode;

use benches::runtime::{Comparison, Page, Picture, peers};

mod chart;
mod loads;
mod rows;

fn main() -> ExitCode {
    Comparison {
        title: "Sockets compared",
        name: "sockets",
        rows: rows::ALL,
        crates: peers::DEFAULT,
        target_tmpdir: env!("CARGO_TARGET_TMPDIR"),
        loads: loads::ALL,
        against: peers::PUBLISHED,
        page: Some(Page {
            name: "sockets",
            block: "figures",
            picture: Some(Picture {
                subject: "cpu",
                diagram: chart::server_cpu,
            }),
        }),
    }
    .main()
}
