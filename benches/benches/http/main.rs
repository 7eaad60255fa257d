//! Compares the example `http_server` with its twin on tokio: the same hyper, the same answers.
//!
//! ```text
//! cargo bench -p benches --bench http --features peers -- [--rounds 5] [--rows http1] [--write-docs]
//! ```
//!
//! - `http1`: as many requests as `wrk` can place.
//! - `http2`: the same with `h2load`, several streams to a connection.
//! - `slow`: thousands of clients that begin the head of a request, or not even that, until the
//!   server cuts them off: what each costs in memory and in CPU time.
//!
//! `wrk` and `h2load` have to be on the `PATH` (the packages `wrk` and `nghttp2-client` of Debian and others). A server
//! runs on the first CPU and its clients on the second, and each is started anew for each test. Beside the requests per
//! second stands the CPU time that the server spent on one, which is the steadier figure on a machine that others use
//! as well.

use std::path::Path;
use std::process::{Command, ExitCode};

use benches::bench::{Bench, Case, Column, Lines, Options, case};
use benches::process::{Executable, Server};
use benches::row::{Aim, Row, row};

mod load;
mod slow;

fn main() -> ExitCode {
    Bench {
        name: "http",
        block: "http",
        yardstick: "tokio",
        ours: &["ours", "classic"],
        lines: Lines::Columns("server"),
        ..Bench::DEFAULT
    }
    .main(rows(), servers)
}

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let test = |case: &'static str, section: &'static str, of: &[(&str, &str, &'static str)]| {
        let row = |&(end, title, unit)| row(format!("{case}-{end}"), case, title, unit, Aim::Open).within(section);
        of.iter().map(row).collect::<Vec<_>>()
    };
    let load = [("rate", "requests/s", ""), ("cpu", "CPU per request", "µs")];
    [
        test("http1", "HTTP/1.1, `wrk`, 64 connections", &load),
        test("http2", "HTTP/2, `h2load`, 64 connections with 8 streams each", &load),
        test("slow", "10000 slow clients, cut off 10 s after they have connected", &[
            ("memory", "memory per connection", "B"),
            ("cpu", "CPU per connection", "µs"),
            ("late", "the last was cut off late by", "ms"),
        ]),
    ]
    .concat()
}

/// Ours without io_uring, if it is asked for.
const EPOLL: &str = "epoll";

/// All, in the order of the table: the yardstick last.
fn servers(options: &Options) -> Result<Vec<Column>, String> {
    if !options.bench {
        // As `cargo test` runs a bench: what the servers do, the tests of the examples see.
        return Ok(vec![]);
    }
    load::find("wrk", "wrk")?;
    load::find("h2load", "nghttp2-client")?;
    slow::allow_descriptors()?;
    let ours = |features| Executable {
        manifest: "../Cargo.toml",
        package: "examples",
        binary: "http_server",
        features,
    };
    let tokio = Executable {
        manifest: "peers/Cargo.toml",
        package: "http-tokio",
        binary: "http-tokio",
        features: "",
    };
    let servers: [(&str, Executable, &'static [&str]); 5] = [
        (
            "ours",
            ours("timing-wheel"),
            &["--port", "0", "--shards", "1"],
        ),
        ("classic", ours(""), &["--port", "0", "--shards", "1"]),
        (
            EPOLL,
            ours("timing-wheel"),
            &["--port", "0", "--shards", "1"],
        ),
        // Ours have such timeouts.
        ("tokio+timeouts", tokio, &["--io-timeout", "90s"]),
        ("tokio", tokio, &[]),
    ];
    let is_wanted = |name: &str| match options.columns[..] {
        [] => name != EPOLL,
        _ => options.wants(name),
    };
    let wanted = servers.into_iter().filter(|it| is_wanted(it.0));
    let columns = wanted.map(|(name, executable, arguments)| {
        let path = executable.build(&format!("http-{name}"))?;
        let seconds = if options.quick { 1 } else { 5 };
        let start = move |path: &Path, more: &[&str]| {
            let mut command = Command::new(path);
            if name == EPOLL {
                command.env("GLOMMIO_DRIVER", "epoll");
            }
            Server::start(command.args(arguments).args(more), 0)
        };
        let (path1, path2, path3) = (path.clone(), path.clone(), path);
        let cases: [Case; 3] = [
            case("http1", move || load::wrk(&start(&path1, &[])?, seconds)),
            case("http2", move || {
                load::h2load(&start(&path2, &["--http2"])?, seconds)
            }),
            case("slow", move || {
                slow::measure(&start(&path3, slow::ARGUMENTS)?)
            }),
        ];
        Ok(Column {
            name: name.to_owned(),
            cases: cases.into(),
        })
    });
    columns.collect()
}
