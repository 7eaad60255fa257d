//! UDP in numbers: `send_segments` and `recv_many` beside bare loops over the same system calls, and beside tokio with
//! quinn-udp.
//!
//! ```text
//! cargo bench -p benches --bench udp --features peers -- [--rounds 9] [--rows receive] [--write-docs]
//! ```
//!
//! What is measured has the first of two CPUs, its counterpart the second. All sockets have the same options, GRO, ECN,
//! destination and timestamps, unless the row says other. Ratios of rates are to the first bare loop of a section, those
//! of CPU to tokio.

use std::process::ExitCode;
use std::time::Duration;

use benches::bench::{Bench, Column, Lines, case, figures};
use benches::figures::Measured;
use benches::process::allowed_cpus;
use benches::row::{Aim, Row, row};

mod bare;
mod ours;
mod ring;
#[cfg(feature = "peers")]
mod theirs;
mod way;
mod workload;

use bare::Bare;
use ours::{Ours, SINGLY, TOGETHER, UNTOLD};
use ring::Ring;
use way::Sample;
use workload::{Cpus, answer, empty, listen, receive, send};

fn main() -> ExitCode {
    Bench {
        name: "udp",
        page: "evidence/udp",
        block: "udp",
        preface: "After × the median of the ratios within the rounds: of rates to the first bare loop, of CPU to tokio.",
        lines: Lines::Columns("way"),
        rounds: 9,
        ..Bench::DEFAULT
    }
    .main(rows(), |options| {
        let length = if options.bench { 0.3 } else { 0.01 };
        let cpus = match allowed_cpus() {
            Ok(cpus) if cpus.len() > 1 => [cpus[0], cpus[1]],
            _ => return Err("two CPUs are needed".to_owned()),
        };
        Ok(columns(cpus, Duration::from_secs_f64(length)))
    })
}

/// The first bare loop of a section.
#[rustfmt::skip]
const SECTIONS: [(&str, &str); 5] = [
    ("waiting", "bare recvmsg with GRO"),
    ("receive", "bare recvmsg with GRO"),
    ("send", "bare sendmsg with GSO"),
    ("64 peers", "bare recvmmsg"),
    ("64 peers answered", "bare recvmmsg, sendmsg"),
];

fn rows() -> Vec<Row> {
    let rows = SECTIONS.iter().flat_map(|&(section, bare)| {
        let row = |end: &str, title, unit, yardstick| Row {
            yardstick: Some(yardstick),
            ..row(format!("{section}-{end}"), section, title, unit, Aim::Open).within(section)
        };
        [
            row("rate", "thousand datagrams/s", "", bare),
            row("cpu", "CPU per datagram", "ns", "tokio with quinn-udp"),
            row("lost", "lost", "%", ""),
        ]
    });
    rows.collect()
}

/// Measures for so long.
type Measure = fn(Cpus, Duration) -> std::io::Result<Sample>;

/// Each in the sections that it is in.
#[rustfmt::skip]
fn columns(cpus: Cpus, length: Duration) -> Vec<Column> {
    let columns: &[(&str, &[(&'static str, Measure)])] = &[
        ("bare recvmsg with GRO", &[("waiting", empty::<Bare<1, 1>>), ("receive", receive::<Bare<1, 1>>)]),
        ("bare recvmmsg with GRO", &[("waiting", empty::<Bare<32, 1>>), ("receive", receive::<Bare<32, 1>>)]),
        ("bare multishot recvmsg with GRO", &[("waiting", empty::<Ring>), ("receive", receive::<Ring>)]),
        ("bare sendmsg with GSO", &[("send", send::<Bare<1, 1>>)]),
        ("bare recvmmsg", &[("64 peers", listen::<Bare<32, 1>>)]),
        ("bare multishot recvmsg", &[("64 peers", listen::<Ring>)]),
        ("bare recvmmsg, sendmsg", &[("64 peers answered", answer::<Bare<32, 1>>)]),
        ("bare recvmmsg, sendmmsg", &[("64 peers answered", answer::<Bare<32, 32>>)]),
        ("ours, recv_many", &[("waiting", empty::<Ours>), ("receive", receive::<Ours>), ("64 peers", listen::<Ours>)]),
        ("ours, recv_from", &[("waiting", empty::<Ours<SINGLY>>)]),
        ("ours, recv_many every 50 µs", &[("64 peers", listen::<Ours<TOGETHER>>)]),
        ("ours, send_segments", &[("send", send::<Ours>)]),
        ("ours, recv_many, send_many", &[("64 peers answered", answer::<Ours>)]),
        ("ours, told nothing", &[("64 peers answered", answer::<Ours<UNTOLD>>)]),
        #[cfg(feature = "peers")]
        ("tokio with quinn-udp", &[
            ("waiting", empty::<theirs::Theirs>), ("receive", receive::<theirs::Theirs>), ("send", send::<theirs::Theirs>),
            ("64 peers", listen::<theirs::Theirs>), ("64 peers answered", answer::<theirs::Theirs>),
        ]),
    ];
    let columns = columns.iter().map(|(name, cases)| Column {
        name: (*name).to_owned(),
        cases: cases.iter().map(|&(section, measure)| case(section, move || {
            let sample = measure(cpus, length).map_err(|error| error.to_string())?;
            Ok(measured(section, sample))
        })).collect(),
    });
    columns.collect()
}

fn measured(section: &str, sample: Sample) -> Vec<Measured> {
    let Sample {
        datagrams,
        lost,
        elapsed,
        cpu,
    } = sample;
    let count = datagrams.max(1) as f64;
    figures(
        section,
        [
            ("rate", count / elapsed.as_secs_f64() / 1e3),
            ("cpu", cpu.as_nanos() as f64 / count),
            ("lost", lost as f64 * 100.0 / (count + lost as f64)),
        ],
    )
}
