//! An HTTP server in simulations, whose connections survive a bad network and finish when it shuts down.

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use glommio::net::{TcpListener, TcpStream};
use glommio::simulation::{Fault, Simulation};
use glommio::timer::sleep;
use glommio::{simulation, spawn_local};
use glommio_hyper::{Connections, GlommioIo, GlommioTimer};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::rt::Timer;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Answers slowly, so that requests are under way when the server shuts down.
async fn respond(_: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    sleep(300 * MILLISECOND).await;
    Ok(Response::new(Empty::new()))
}

/// Serves until `end` of the simulation, then lets connections finish.
async fn serve(end: Duration) -> Result<(), String> {
    let listener = TcpListener::bind("0.0.0.0:80").map_err(|error| error.to_string())?;
    let connections = Connections::new();
    let accepting = {
        let connections = connections.clone();
        spawn_local(async move {
            while let Ok(stream) = listener.accept().await {
                let io = GlommioIo::new(stream);
                let connection = connections
                    .http1()
                    // The date is the system's, and so another one each time.
                    .auto_date_header(false)
                    .serve_connection(io, service_fn(respond));
                let watched = connections.watch(connection);
                spawn_local(async move { drop(watched.await) }).detach();
            }
        })
    };
    sleep(end.saturating_sub(simulation::elapsed())).await;
    accepting.cancel().await;
    match connections.shutdown_within(5 * SECOND).await {
        0 => Ok(()),
        closed => Err(format!("{closed} connections did not finish")),
    }
}

/// Requests over one connection after the other, until none is taken any more. How many were answered.
async fn ask(end: Duration) -> Result<u32, Box<dyn Error>> {
    let mut answered = 0;
    while simulation::elapsed() < end {
        let mut attempt = async || {
            let stream = TcpStream::connect_timeout("server:80", SECOND).await?;
            stream.set_read_timeout(Some(2 * SECOND))?;
            stream.set_nodelay(true)?;
            let (mut sender, connection) = http1::handshake(GlommioIo::new(stream)).await?;
            let _connection = spawn_local(connection);
            for _ in 0..5 {
                let request = Request::get("/").header("host", "server");
                let response = sender
                    .send_request(request.body(Empty::<Bytes>::new())?)
                    .await?;
                assert_eq!(response.status(), StatusCode::OK);
                response.into_body().collect().await?;
                answered += 1;
            }
            Ok::<_, Box<dyn Error>>(())
        };
        if attempt().await.is_err() {
            sleep(100 * MILLISECOND).await;
        }
    }
    Ok(answered)
}

#[test]
fn connections_survive_a_bad_network_and_finish_when_the_server_does() {
    const END: Duration = Duration::from_secs(20);
    for seed in 0..10 {
        let run = || {
            let mut simulation = Simulation::builder()
                .seed(seed)
                .network(|network| network.latency(MILLISECOND..20 * MILLISECOND).loss(0.01))
                .client("server", || serve(END))
                .at(
                    5 * SECOND,
                    Fault::PowerCut {
                        node: "server".into(),
                        off_for: SECOND,
                    },
                )
                .at(
                    10 * SECOND,
                    Fault::Pause {
                        node: "server".into(),
                        length: 3 * SECOND,
                    },
                );
            for name in ["one", "two", "three"] {
                simulation = simulation.client(name, || async {
                    let answered = ask(END).await.map_err(|error| error.to_string())?;
                    match answered {
                        20.. => Ok(()),
                        few => Err(format!("{few} requests were answered")),
                    }
                });
            }
            let report = simulation
                .run()
                .unwrap_or_else(|failure| panic!("{failure}"));
            report.digest()
        };
        assert_eq!(run(), run(), "seed {seed} again");
    }
}

/// As the deadlines of hyper are this time and a limit.
#[test]
fn hyper_is_told_the_time_of_the_simulation() {
    const HOUR: Duration = Duration::from_secs(3600);
    let client = || async {
        let timer = GlommioTimer;
        let before = timer.now();
        sleep(HOUR).await;
        assert_eq!(timer.now() - before, HOUR);
        Ok::<_, String>(())
    };
    let ended = Simulation::builder().client("client", client).run();
    assert!(ended.is_ok(), "{}", ended.unwrap_err());
}
