//! What is measured of each way.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use benches::process::bind_to;

use crate::bare::Bare;
use crate::way::{Clock, END, Received, SEGMENTS, Sample, Way, socket};

/// The CPU of what is measured, and that of its counterpart.
pub type Cpus = [usize; 2];

/// Those who ask the server, one datagram in flight each.
const PEERS: usize = 64;
/// What each of them asks, in bytes.
const QUESTION: usize = 64;
/// How often one of the peers sends, of those that do not wait for answers.
const PACE: Duration = Duration::from_micros(5);
/// Sends with which a socket is filled.
const FILLING: usize = 40;

/// Fills its own socket and times how it is emptied.
pub fn empty<W: Way>([cpu, _]: Cpus, length: Duration) -> io::Result<Sample> {
    on(cpu, move || {
        W::run(async {
            let socket = socket()?;
            let sender = connected(socket.local_addr()?)?;
            // What other programs send to its port, which was theirs a moment ago, is not received.
            socket.connect(sender.local_addr()?)?;
            let mut sender = Bare::<1, 1>::new(sender)?;
            let mut way = W::new(socket)?;
            let begin = Instant::now();
            let mut sample = Sample::default();
            while begin.elapsed() < length {
                for _ in 0..FILLING {
                    sender.send().await?;
                }
                let filled = (FILLING * SEGMENTS) as u64;
                let mut left = filled;
                let clock = Clock::start();
                while left > 0 {
                    let received = way.receive().await?.datagrams;
                    let more = || io::Error::other(format!("{received} datagrams of {left}"));
                    left = left.checked_sub(received).ok_or_else(more)?;
                }
                clock.stop(filled, &mut sample);
            }
            Ok(sample)
        })
    })
}

/// Receives what the counterpart sends as fast as it can.
pub fn receive<W: Way>(cpus: Cpus, length: Duration) -> io::Result<Sample> {
    receive_from::<W>(cpus, move |to| {
        let socket = connected(to)?;
        let sent = send_for::<Bare<1, 1>>(socket.try_clone()?, length);
        end(&socket);
        sent
    })
}

/// Receives what 64 peers send, one every 5 µs.
pub fn listen<W: Way>(cpus: Cpus, length: Duration) -> io::Result<Sample> {
    receive_from::<W>(cpus, move |to| {
        let peers = peers(to)?;
        let sent = tell(&peers, length);
        end(&peers[0]);
        sent
    })
}

fn receive_from<W: Way>(
    cpus: Cpus,
    counterpart: impl FnOnce(SocketAddr) -> io::Result<u64> + Send + 'static,
) -> io::Result<Sample> {
    let receive = async |way: &mut W| way.receive().await;
    let (mut sample, sent) = serve::<W>(cpus, receive, counterpart)?;
    sample.lost = sent.saturating_sub(sample.datagrams);
    Ok(sample)
}

/// Takes `step` after `step` from the first datagram to the last, which is timed, while `counterpart` is on the other CPU.
fn serve<W: Way>(
    [cpu, other]: Cpus,
    step: impl AsyncFn(&mut W) -> io::Result<Received> + Send + 'static,
    counterpart: impl FnOnce(SocketAddr) -> io::Result<u64> + Send + 'static,
) -> io::Result<(Sample, u64)> {
    let socket = socket()?;
    let to = socket.local_addr()?;
    let counterpart = thread::spawn(move || on(other, move || counterpart(to)));
    let sample = on(cpu, move || {
        W::run(async {
            let mut way = W::new(socket)?;
            way.wait().await?;
            let clock = Clock::start();
            let mut datagrams = 0;
            loop {
                let received = step(&mut way).await?;
                datagrams += received.datagrams;
                if received.is_over {
                    let mut sample = Sample::default();
                    clock.stop(datagrams, &mut sample);
                    return Ok(sample);
                }
            }
        })
    })?;
    Ok((sample, counterpart.join().expect("it does not panic")?))
}

/// Sends as fast as it can.
pub fn send<W: Way>([cpu, other]: Cpus, length: Duration) -> io::Result<Sample> {
    // The sender has the CPU that is measured, and the receiver the other.
    let sent = Arc::new(Mutex::new(Sample::default()));
    let sample = Arc::clone(&sent);
    let received = receive_from::<Bare<32, 1>>([other, cpu], move |to| {
        let socket = connected(to)?;
        let ends = socket.try_clone()?;
        let clock = Clock::start();
        let datagrams = send_for::<W>(socket, length);
        clock.stop(
            *datagrams.as_ref().unwrap_or(&0),
            &mut sample.lock().expect("no panic"),
        );
        end(&ends);
        datagrams
    })?;
    let sample = *sent.lock().expect("no panic");
    Ok(Sample {
        lost: received.lost,
        ..sample
    })
}

fn send_for<W: Way>(socket: UdpSocket, length: Duration) -> io::Result<u64> {
    W::run(async {
        let mut way = W::new(socket)?;
        let begin = Instant::now();
        let mut sent = 0;
        while begin.elapsed() < length {
            way.send().await?;
            sent += SEGMENTS as u64;
        }
        Ok(sent)
    })
}

/// Answers 64 peers, who ask anew with each answer.
pub fn answer<W: Way>(cpus: Cpus, length: Duration) -> io::Result<Sample> {
    let answer = async |way: &mut W| way.answer().await;
    let (mut sample, unanswered) = serve::<W>(cpus, answer, move |to| {
        let peers = peers(to)?;
        let unanswered = ask(&peers, Instant::now() + length);
        // Whatever has happened: else the server waits for ever.
        end(&peers[0]);
        unanswered
    })?;
    sample.lost = unanswered;
    Ok(sample)
}

/// On a new thread, which has this CPU.
fn on<T: Send + 'static>(
    cpu: usize,
    run: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let thread = thread::spawn(move || {
        bind_to(cpu)?;
        run()
    });
    thread.join().expect("it does not panic")
}

fn connected(to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(to)?;
    Ok(socket)
}

fn peers(to: SocketAddr) -> io::Result<Vec<UdpSocket>> {
    let peer = || {
        let socket = connected(to)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    (0..PEERS).map(|_| peer()).collect()
}

/// Ends a stream, also if the receiver's buffer, or that of the socket, is full now: until the receiver is gone, and
/// refuses.
fn end(socket: &UdpSocket) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        match socket.send(&[0; END]) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => break,
            _ => thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// How many of the questions had no answer.
fn ask(peers: &[UdpSocket], over: Instant) -> io::Result<u64> {
    for peer in peers {
        peer.send(&[0; QUESTION])?;
    }
    let mut answer = [0; QUESTION];
    let mut last = Instant::now();
    while Instant::now() < over {
        for peer in peers {
            match peer.recv(&mut answer) {
                Ok(_) => {
                    peer.send(&answer)?;
                    last = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        if last.elapsed() > Duration::from_secs(5) {
            return Err(io::Error::other("the server gives no answers"));
        }
    }
    // Answers that are still to come.
    thread::sleep(Duration::from_millis(20));
    let mut unanswered = peers.len() as u64;
    for peer in peers {
        while peer.recv(&mut answer).is_ok() {
            unanswered = unanswered.saturating_sub(1);
        }
    }
    Ok(unanswered)
}

/// One peer after the other sends, in turns. Gives how many datagrams that were.
fn tell(peers: &[UdpSocket], length: Duration) -> io::Result<u64> {
    let begin = Instant::now();
    let mut sent = 0_u32;
    while begin.elapsed() < length {
        while begin.elapsed() < PACE * sent {
            std::hint::spin_loop();
        }
        match peers[sent as usize % PEERS].send(&[0; QUESTION]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            told => {
                told?;
                sent += 1;
            }
        }
    }
    Ok(sent.into())
}
