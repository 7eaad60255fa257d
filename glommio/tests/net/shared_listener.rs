//! Several executors that accept from one socket, each with a listener of its own for it.

use std::io::{Read, Write};
use std::net::{TcpListener as StdListener, TcpStream as StdStream};

use glommio::sync::CancellationToken;

use super::PATIENCE;
use crate::common::prelude::*;

const SHARDS: usize = 4;

/// Executors that greet each client with their number. One that is sent a `B` is busy, while it accepts,
/// until the test says otherwise; an `S` ends one.
struct Server {
    address: SocketAddr,
    executors: Vec<ExecutorJoinHandle<()>>,
    goes_on: mpsc::Sender<()>,
}

impl Server {
    fn start() -> Server {
        let socket = StdListener::bind("127.0.0.1:0").expect("there is a port");
        let address = socket.local_addr().expect("it is bound");
        let (goes_on, may_go_on) = mpsc::channel();
        let may_go_on = Arc::new(Mutex::new(may_go_on));
        let executors = (0..SHARDS).map(|shard| {
            let socket = socket.try_clone().expect("there are descriptors");
            let may_go_on = may_go_on.clone();
            let run = move || accept(socket, shard as u8, may_go_on);
            spawn_executor(run)
        });
        let executors = executors.collect();
        let server = Server {
            address,
            executors,
            goes_on,
        };
        // Each has served one, and waits for more.
        let mut have_served = [false; SHARDS];
        while have_served.contains(&false) {
            have_served[greeting(server.connect(b'x'))] = true;
        }
        server
    }

    fn connect(&self, first: u8) -> StdStream {
        let mut client = StdStream::connect(self.address).expect("it listens");
        let limit = client.set_read_timeout(Some(PATIENCE));
        limit.expect("it is not zero");
        client.write_all(&[first]).expect("it is open");
        client
    }

    fn stop(self) {
        for _ in &self.executors {
            greeting(self.connect(b'S'));
        }
        for executor in self.executors {
            executor.join().expect("it has ended");
        }
    }
}

async fn accept(socket: StdListener, shard: u8, may_go_on: Arc<Mutex<mpsc::Receiver<()>>>) {
    let listener = TcpListener::from(socket);
    let end = Rc::new(CancellationToken::new());
    let accept = async {
        loop {
            let stream = listener.accept().await.expect("there are descriptors");
            let serving = serve(stream, shard, may_go_on.clone(), end.clone());
            spawn_local(serving).detach();
        }
    };
    or(accept, end.cancelled()).await;
}

async fn serve(
    mut stream: TcpStream,
    shard: u8,
    may_go_on: Arc<Mutex<mpsc::Receiver<()>>>,
    end: Rc<CancellationToken>,
) {
    let mut first = [0];
    let read = stream.read_exact(&mut first).await;
    read.expect("the client says something");
    if first == *b"B" {
        // Until the kernel accepts once more.
        sleep(Duration::from_millis(5)).await;
    }
    let written = stream.write_all(&[shard]).await;
    written.expect("the client is there");
    if first == *b"B" {
        let may_go_on = may_go_on.lock().expect("none panics");
        may_go_on.recv().expect("the test goes on");
    }
    if first == *b"S" {
        end.cancel();
    }
}

fn greeting(mut client: StdStream) -> usize {
    let mut shard = [0];
    client.read_exact(&mut shard).expect("it is accepted");
    usize::from(shard[0])
}

/// The kernel tells it of one client at most: the others go on.
#[test]
fn an_executor_that_computes_stops_no_other_from_accepting() {
    const CLIENTS: usize = 60;
    let server = Server::start();
    greeting(server.connect(b'B'));
    let (says, served) = mpsc::channel();
    for _ in 0..CLIENTS {
        let (client, says) = (server.connect(b'x'), says.clone());
        thread::spawn(move || says.send(greeting(client)));
    }
    for count in 0..CLIENTS - 1 {
        let next = served.recv_timeout(PATIENCE);
        assert!(next.is_ok(), "{count} of {CLIENTS} clients are served");
    }
    server.goes_on.send(()).expect("it waits for this");
    let last = served.recv_timeout(PATIENCE);
    last.expect("it is served when there is time");
    server.stop();
}

/// Of those that wait the kernel tells the one that has waited longest.
#[test]
fn clients_that_come_one_after_the_other_do_not_all_go_to_one_executor() {
    const CLIENTS: usize = 20 * SHARDS;
    let server = Server::start();
    let mut counts = [0; SHARDS];
    for _ in 0..CLIENTS {
        counts[greeting(server.connect(b'x'))] += 1;
    }
    let most = counts.iter().max().copied();
    assert!(most <= Some(CLIENTS / 2), "{counts:?}");
    server.stop();
}
