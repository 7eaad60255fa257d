//! How long simulations take. The figures are for comparing two commits, on a machine that does nothing else.
//!
//! ```text
//! cargo bench -p glommio --features simulation --bench simulation
//! ```

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use glommio::io::BufferedFile;
use glommio::net::UdpSocket;
use glommio::simulation::{Simulation, SimulationBuilder};
use glommio::spawn_local;
use glommio::timer::sleep;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Executors that wait for nothing, beside one that sleeps 200,000 times.
fn idle(mut simulation: SimulationBuilder) -> SimulationBuilder {
    for number in 0..20 {
        simulation = simulation.node(format!("idle {number}"), 5, pending::<()>);
    }
    simulation.client("client", || async {
        for _ in 0..200_000 {
            sleep(MILLISECOND).await;
        }
    })
}

/// Six nodes that send to each other ten times a second, for 2,000 seconds.
fn heartbeats(mut simulation: SimulationBuilder) -> SimulationBuilder {
    for number in 1..=6 {
        simulation = simulation.client(format!("{number}"), || async {
            let socket = Rc::new(UdpSocket::bind("0.0.0.0:7000")?);
            let receiver = Rc::clone(&socket);
            spawn_local(async move { while receiver.recv_from(&mut [0; 8]).await.is_ok() {} })
                .detach();
            for _ in 0..20_000 {
                for other in 1..=6_u8 {
                    let to = SocketAddr::from(([10, 0, 0, other], 7000));
                    socket.send_to(b"alive", to).await?;
                }
                sleep(100 * MILLISECOND).await;
            }
            io::Result::Ok(())
        });
    }
    simulation
}

/// A log that is synced after each of 50,000 records.
fn disk(simulation: SimulationBuilder) -> SimulationBuilder {
    simulation.client("client", || async {
        let file = BufferedFile::create("/log").await?;
        for number in 0..50_000 {
            file.write_at(vec![1; 300], number % 100 * 300).await?;
            file.fdatasync().await?;
        }
        file.close().await
    })
}

/// 10,000 timers at any time, for a minute.
fn timers(simulation: SimulationBuilder) -> SimulationBuilder {
    simulation.client("client", || async {
        let sleeping = (0..10_000_u32).map(|number| {
            spawn_local(async move {
                for round in 0..60 {
                    let length = number * 7919 % 1000 + round % 7 + 500;
                    sleep(length * MILLISECOND).await;
                }
            })
        });
        for task in sleeping.collect::<Vec<_>>() {
            task.await;
        }
    })
}

fn main() {
    for (name, build) in [
        ("idle", idle as fn(SimulationBuilder) -> SimulationBuilder),
        ("heartbeats", heartbeats),
        ("disk", disk),
        ("10,000 timers", timers),
    ] {
        let run = || {
            let began = Instant::now();
            let report = build(Simulation::builder().seed(1)).run();
            assert!(report.expect("nothing fails").elapsed() > SECOND);
            began.elapsed()
        };
        let shortest = (0..5).map(|_| run()).min().expect("there are five");
        println!("{name}: {:.3} s", shortest.as_secs_f64());
    }
}
