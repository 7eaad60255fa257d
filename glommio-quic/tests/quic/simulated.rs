//! In simulations: a bad network, clients that move, and servers that lose their power.

use crate::peer::{Result, client_config, pattern, server_config};
use glommio::future::timeout;
use glommio::net::UdpSocket;
use glommio::simulation::{self, Simulation};
use glommio::spawn_local;
use glommio::timer::sleep;
use glommio_quic::{Connection, Endpoint};
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The first node.
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 4433);
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// What has happened.
#[derive(Default)]
struct Counts {
    answered: Cell<u64>,
    connections: Cell<u64>,
    migrations: Cell<u64>,
    lost: Cell<u64>,
}

fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

async fn serve(counts: Rc<Counts>) -> Result {
    let endpoint = Endpoint::server(server_config()?, SERVER)?;
    while let Some(incoming) = endpoint.accept().await {
        let counts = Rc::clone(&counts);
        spawn_local(async move {
            if let Ok(connection) = incoming.await {
                count(&counts.connections);
                let mut from = connection.remote_address();
                while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                    let Ok(bytes) = recv.read_to_end(1 << 20).await else {
                        continue;
                    };
                    if connection.remote_address() != from {
                        from = connection.remote_address();
                        count(&counts.migrations);
                    }
                    if send.write_all(&bytes).await.is_ok() {
                        let _ = send.finish();
                    }
                }
            }
        })
        .detach();
    }
    Ok(())
}

async fn ask(connection: &Connection, round: u64) -> Result {
    let sent = pattern(round, 20_000);
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(&sent).await?;
    send.finish()?;
    let read = recv.read_to_end(sent.len()).await?;
    assert!(read == sent, "what comes back is whole");
    Ok(())
}

async fn ask_and_move(counts: Rc<Counts>) -> Result {
    let endpoint = Endpoint::client(ANY)?;
    endpoint.set_default_client_config(client_config()?);
    let mut kept = None;
    for round in 0..40 {
        loop {
            let attempt = async {
                let connection = match kept.take() {
                    Some(connection) => connection,
                    None => endpoint.connect(SERVER, "localhost")?.await?,
                };
                ask(&connection, round).await?;
                Result::Ok(connection)
            };
            match timeout(2 * SECOND, attempt).await {
                Ok(Ok(connection)) => {
                    kept = Some(connection);
                    break;
                }
                _ => count(&counts.lost),
            }
            sleep(50 * MILLISECOND).await;
        }
        count(&counts.answered);
        sleep(100 * MILLISECOND).await;
        if round % 4 == 3 {
            endpoint.rebind(UdpSocket::bind(ANY)?)?;
        }
    }
    Ok(())
}

#[test]
fn clients_move_and_servers_restart_and_all_is_answered() {
    let sums = [(); 4].map(|()| Cell::new(0));
    for seed in 0..4 {
        let counts = Rc::new(Counts::default());
        let (of_server, of_client) = (Rc::clone(&counts), Rc::clone(&counts));
        let report = Simulation::builder()
            .seed(seed)
            .network(|it| {
                it.latency(MILLISECOND..10 * MILLISECOND)
                    .loss(0.02)
                    .reorder(0.02)
            })
            .node("server", 1, move || serve(Rc::clone(&of_server)))
            .client("client", move || ask_and_move(Rc::clone(&of_client)))
            .restarts("server", 2 * SECOND..6 * SECOND, SECOND / 10..SECOND)
            .time_limit(300 * SECOND)
            .run()
            .expect("all is answered");
        assert_eq!(counts.answered.get(), 40);
        assert!(report.elapsed() > 4 * SECOND, "{report:?}");
        let of_run = [&counts.connections, &counts.migrations, &counts.lost];
        for (sum, it) in sums.iter().zip(of_run) {
            sum.set(sum.get() + it.get());
        }
        sums[3].set(sums[3].get() + report.coverage().get("power cut").copied().unwrap_or(0));
    }
    let [connections, migrations, lost, cuts] = sums.map(Cell::into_inner);
    let told = format!("{connections} connections, {migrations} moved, {lost} lost, {cuts} cuts");
    assert!(cuts > 4 && lost > 0 && migrations > 4, "{told}");
    assert!(connections >= 4 + lost / 2, "{told}");
}

/// A network without errors, which a transfer fills.
#[test]
fn what_is_sent_takes_the_time_of_the_simulated_network() {
    let report = Simulation::builder()
        .network(|it| it.latency(10 * MILLISECOND..10 * MILLISECOND + Duration::from_nanos(1)))
        .node("server", 1, || serve(Rc::default()))
        .client("client", || async {
            let endpoint = Endpoint::client(ANY)?;
            let connecting = endpoint.connect_with(client_config()?, SERVER, "localhost")?;
            let connection = connecting.await?;
            // Two flights of the handshake, at least.
            assert!(simulation::elapsed() >= 20 * MILLISECOND);
            let start = simulation::elapsed();
            ask(&connection, 1).await?;
            assert!(simulation::elapsed() - start >= 20 * MILLISECOND);
            assert_eq!(connection.remote_address(), SERVER);
            Result::Ok(())
        })
        .run()
        .expect("nothing fails");
    assert!(report.elapsed() < SECOND, "{report:?}");
}
