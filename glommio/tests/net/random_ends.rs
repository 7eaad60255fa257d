//! Executors dropped at random points with everything under way.

use std::any::Any;
use std::io::Read;

use glommio::net::Preallocated;

use super::deaf::Deaf;
use super::random_drops::{Patience, any_limit, for_each_seed};
use super::{PATIENCE, Result};
use crate::common::prelude::*;

/// Does this and that with a stream for ever, without looking at what comes of it.
async fn toil(mut stream: TcpStream<Preallocated>, seed: u64) {
    let mut numbers = Numbers::new(seed);
    let mut bytes = vec![0; 100_000];
    loop {
        let patience = Patience::any(&mut numbers);
        let limit = any_limit(&mut numbers);
        let _ = stream.set_read_timeout(limit);
        let _ = stream.set_write_timeout(limit);
        let done = match numbers.below(4) {
            0 => patience.drive(stream.read(&mut bytes)).await.is_some(),
            1 => patience.drive(stream.peek(&mut bytes)).await.is_some(),
            2 => stream.read(&mut bytes[..10]).await.is_ok(),
            _ => patience.drive(stream.write(&bytes)).await.is_some(),
        };
        if done {
            sleep(Duration::from_micros(numbers.below(300))).await;
        } else {
            executor().yield_task_queue_now().await;
        }
    }
}

/// An executor that ends in the middle of everything ends all connections, whatever outlives it.
#[test]
fn an_executor_dropped_at_random_ends_every_connection() {
    let deaf = Deaf::new();
    for_each_seed(300, |seed| {
        let mut numbers = Numbers::new(seed);
        let executor = LocalExecutor::default();
        let mut peers = Vec::new();
        let mut outlives: Vec<Box<dyn Any>> = Vec::new();
        for _ in 0..1 + numbers.below(2) {
            let some = executor.run(some_work(&mut numbers, &deaf, &mut peers));
            outlives.extend(some.expect("it can be begun"));
        }
        let mut all: Vec<Box<dyn Any>> = vec![Box::new(executor)];
        all.append(&mut outlives);
        while !all.is_empty() {
            drop(all.swap_remove(numbers.below(all.len() as u64) as usize));
        }
        for mut peer in peers {
            peer.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            let end = peer.read_to_end(&mut Vec::new());
            assert!(
                end.as_ref().map_or_else(
                    |error| error.kind() == io::ErrorKind::ConnectionReset,
                    |_| true
                ),
                "{end:?}"
            );
        }
    });
}

/// Begins all kinds of work and returns, with some of it, in the middle.
async fn some_work(
    numbers: &mut Numbers,
    deaf: &Deaf,
    peers: &mut Vec<std::net::TcpStream>,
) -> Result<Vec<Box<dyn Any>>> {
    let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
    let mut outlives: Vec<Box<dyn Any>> = Vec::new();
    for _ in 0..numbers.below(6) {
        let peer = std::net::TcpStream::connect(listener.local_addr()?)?;
        peer.set_nonblocking(true)?;
        let _some = io::Write::write(&mut &peer, &vec![1; numbers.below(100_000) as usize]);
        peer.set_nonblocking(false)?;
        peers.push(peer);
        let stream = listener.accept().await?;
        match numbers.below(3) {
            0 => {
                let mut stream = stream;
                stream.set_read_timeout(any_limit(numbers))?;
                let mut read = Box::pin(async move { stream.read(&mut [0; 9]).await });
                let _ = poll_once(&mut read).await;
                outlives.push(Box::new(read));
            }
            1 => {
                let task = spawn_local(toil(stream.buffered(), numbers.below(99)));
                outlives.push(Box::new(task));
            }
            _ => {
                spawn_local(toil(stream.buffered(), numbers.below(99))).detach();
            }
        }
    }
    let address = deaf.address;
    spawn_local(async move { TcpStream::connect(address).await }).detach();
    spawn_local(TcpStream::connect_timeout(address, PATIENCE)).detach();
    let socket = Rc::new(UdpSocket::bind("127.0.0.1:0")?);
    for _ in 0..numbers.below(4) {
        let socket = Rc::clone(&socket);
        spawn_local(async move { socket.recv_from(&mut [0; 8]).await }).detach();
        let accepting = Rc::clone(&listener);
        spawn_local(async move { accepting.accept().await }).detach();
        let mut accept = Box::pin({
            let listener = Rc::clone(&listener);
            async move { listener.accept().await }
        });
        let _ = poll_once(&mut accept).await;
        outlives.push(Box::new(accept));
    }
    match numbers.below(3) {
        0 => {}
        1 => sleep(Duration::from_micros(numbers.below(3000))).await,
        _ => {
            for _ in 0..numbers.below(10) {
                executor().yield_task_queue_now().await;
            }
        }
    }
    // Completes while the executor is taken down.
    peers.push(std::net::TcpStream::connect(listener.local_addr()?)?);
    Ok(outlives)
}
