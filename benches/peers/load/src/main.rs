//! The load: asks a server in another process, and measures how soon it answers and what CPU time that costs it.
//!
//! ```text
//!   load <case> <address> <process> <kind> [connections]   ──▶  {"row": "<case>-cpu", "value": 4.1}
//! ```
//!
//! The same program, with blocking sockets or plain epoll and no runtime of any kind, asks the servers of all
//! crates. It keeps one message in flight on each connection and sends the next when the answer is there (a closed
//! loop). A quarter of a second warms up, the second after it is measured. The CPU time is that of the whole server
//! process, its threads in the kernel included, by the clock that the kernel keeps for it.

use std::io;
use std::process::ExitCode;

mod many;
mod measured;
mod one;
mod server;

use server::Server;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> io::Result<()> {
    let usage = || io::Error::other("usage: load CASE ADDRESS PROCESS KIND [CONNECTIONS]");
    let [case, address, process, kind, rest @ ..] = arguments else {
        return Err(usage());
    };
    let server = Server::new(address, process)?;
    let connections = || rest.first()?.parse::<usize>().ok();
    match kind.as_str() {
        "ping-pong" => one::stream(case, &server),
        "datagrams" => one::datagrams(case, &server),
        "send" => one::send(case, &server),
        "receive" => one::receive(case, &server),
        "crowd" => many::echo(case, &server, connections().ok_or_else(usage)?),
        "newcomers" => many::come_and_go(case, &server),
        "idle" => many::idle(case, &server, connections().ok_or_else(usage)?),
        _ => Err(usage()),
    }
}
