//! Clients that notice everything, while the server is replaced.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::io::BufReader;
use futures_lite::{AsyncBufReadExt, AsyncWriteExt};
use glommio::net::TcpStream;
use glommio::process::{Child, Command};
use glommio::task::JoinSet;
use glommio::timer::sleep;

/// Clients that keep their connection.
const KEEPING: usize = 20;
/// Clients that connect anew for each request.
const CONNECTING: usize = 5;

#[derive(Default)]
struct Seen {
    is_over: Cell<bool>,
    requests: Cell<u64>,
    connections: Cell<u64>,
    /// The processes that have answered.
    servers: RefCell<BTreeSet<u32>>,
}

pub async fn run(restarts: u32, serve: Duration) -> Result<(), Box<dyn Error>> {
    let folder = env::temp_dir().join(format!("hot_restart-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let result = replace_under_load(&folder.join("control"), restarts, serve).await;
    std::fs::remove_dir_all(&folder)?;
    result
}

async fn replace_under_load(
    control: &Path,
    restarts: u32,
    serve: Duration,
) -> Result<(), Box<dyn Error>> {
    let (mut server, address) = start(control).await?;
    let seen = Rc::new(Seen::default());
    let mut clients = JoinSet::new();
    for number in 0..KEEPING + CONNECTING {
        let seen = seen.clone();
        clients.spawn(async move { client(address, number < KEEPING, &seen).await });
    }
    for _ in 0..restarts {
        sleep(serve).await;
        let (successor, _) = start(control).await?;
        let status = server.wait().await?;
        if !status.success() {
            return Err(format!("a server has ended with {status}").into());
        }
        server = successor;
    }
    sleep(serve).await;
    seen.is_over.set(true);
    // One that was refused or reset ends the demo with its error.
    while let Some(client) = clients.join_next().await {
        client??;
    }
    server.kill().await?;
    println!(
        "{} requests over {} connections, served by {} processes: none refused, none reset",
        seen.requests.get(),
        seen.connections.get(),
        seen.servers.borrow().len()
    );
    if seen.servers.borrow().len() != restarts as usize + 1 {
        return Err("not every server has answered".into());
    }
    Ok(())
}

/// Starts a server and waits until it listens.
async fn start(control: &Path) -> Result<(Child, SocketAddr), Box<dyn Error>> {
    let mut server = Command::new(env::current_exe()?)
        .args(["--port", "0", "--work", "1ms", "--control"])
        .arg(control)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut output = BufReader::new(server.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output.read_line(&mut line).await?;
    let address = line.trim_end().strip_prefix("listening on ");
    let address = address.ok_or("the server does not listen")?.parse()?;
    // What it says from here on is read, so that it may say it.
    glommio::spawn_local(async move {
        let mut lines = String::new();
        while output
            .read_line(&mut lines)
            .await
            .is_ok_and(|read| read > 0)
        {
            print!("{lines}");
            lines.clear();
        }
    })
    .detach();
    Ok((server, address))
}

async fn client(address: SocketAddr, keeps: bool, seen: &Seen) -> io::Result<()> {
    let mut connection = None;
    for number in 0_u64.. {
        if seen.is_over.get() {
            break;
        }
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                seen.connections.set(seen.connections.get() + 1);
                BufReader::new(stream)
            }
        };
        // In two parts, so that a server may be left in the middle of a request.
        let request = format!("request {number}\n");
        let (begin, end) = request.as_bytes().split_at(4);
        stream.get_mut().write_all(begin).await?;
        sleep(Duration::from_micros(500)).await;
        stream.get_mut().write_all(end).await?;
        let mut answer = String::new();
        stream.read_line(&mut answer).await?;
        let server = match answer.split_once(' ') {
            Some((server, echoed)) if echoed == request => server.parse().ok(),
            _ => None,
        };
        let server = server.ok_or_else(|| io::Error::other(format!("answered `{answer}`")))?;
        seen.servers.borrow_mut().insert(server);
        seen.requests.set(seen.requests.get() + 1);
        connection = keeps.then_some(stream);
    }
    Ok(())
}
