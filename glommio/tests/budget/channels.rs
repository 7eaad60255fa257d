use glommio::channels::channel_mesh::{MeshBuilder, Role};
use glommio::channels::sharding::{Handler, HandlerResult, Sharded};
use glommio::channels::{broadcast, shared_channel, watch};

use super::*;

#[run_test]
async fn local_channels() {
    let (sender, receiver) = local_channel::new_unbounded();
    counts!("LocalSender::send", sender.send(7).await.unwrap());
    counts!("LocalReceiver::recv", {
        sender.try_send(7).unwrap();
        assert_eq!(receiver.recv().await, Some(7));
    });
    let mut many = Vec::new();
    counts!("LocalReceiver::recv_many", {
        sender.try_send(7).unwrap();
        assert!(receiver.recv_many(&mut many, 8).await > 0);
    });
    let mut stream = pin!(receiver.stream());
    counts!("LocalReceiver::stream", {
        sender.try_send(7).unwrap();
        assert_eq!(stream.next().await, Some(7));
    });
}

#[run_test]
async fn local_channels_whose_other_side_is_gone() {
    let (sender, receiver) = local_channel::new_unbounded::<u8>();
    drop(sender);
    counts!(
        "LocalReceiver::recv, without senders",
        assert_eq!(receiver.recv().await, None)
    );
    let mut stream = receiver.into_stream();
    counts!("OwnedChannelStream", assert_eq!(stream.next().await, None));
    let (sender, receiver) = local_channel::new_unbounded();
    drop(receiver);
    counts!(
        "LocalSender::send, without receivers",
        sender.send(7).await.unwrap_err()
    );
}

#[run_test]
async fn channels_of_one_value_and_of_each() {
    let answers = RefCell::new(Vec::new());
    for _ in 0..200 {
        let (reply, answer) = oneshot::oneshot();
        reply.send(7).unwrap();
        answers.borrow_mut().push(answer);
    }
    let next = || answers.borrow_mut().pop().expect("there are enough");
    counts!(
        "Receiver, of a oneshot",
        assert_eq!(next().await.unwrap(), 7)
    );
    let (sender, mut receiver) = watch::watch(7);
    counts!("Changed", {
        sender.send(7).unwrap();
        receiver.changed().await.unwrap();
    });
    counts!("Receiver, of a watch, as a stream", {
        sender.send(7).unwrap();
        assert_eq!(receiver.next().await, Some(7));
    });
    let (sender, mut receiver) = broadcast::broadcast(1024);
    counts!("Recv", {
        sender.send(7).unwrap();
        assert_eq!(receiver.recv().await.unwrap(), 7);
    });
    counts!("Receiver, of a broadcast, as a stream", {
        sender.send(7).unwrap();
        assert_eq!(receiver.next().await, Some(Ok(7)));
    });
    let (_, mut receiver) = broadcast::broadcast::<u8>(1);
    counts!("Recv, without a sender", receiver.recv().await.unwrap_err());
}

#[run_test]
async fn shared_channels() {
    let (sender, receiver) = shared_channel::new_bounded(1024);
    let (sender, mut receiver) = zip(sender.connect(), receiver.connect()).await;
    counts!("ConnectedSender::send", sender.send(7).await.unwrap());
    counts!("ConnectedReceiver::recv", {
        sender.try_send(7).unwrap();
        assert_eq!(receiver.recv().await, Some(7));
    });
    let mut many = Vec::new();
    counts!("ConnectedReceiver::recv_many", {
        sender.try_send(7).unwrap();
        assert!(receiver.recv_many(&mut many, 8).await > 0);
    });
    counts!("ConnectedReceiver", {
        sender.try_send(7).unwrap();
        assert_eq!(receiver.next().await, Some(7));
    });
    drop(receiver);
    counts!(
        "ConnectedSender::send, without a receiver",
        sender.send(7).await.unwrap_err()
    );
    let (sender, receiver) = shared_channel::new_bounded(1);
    let (sender, receiver) = zip(sender.connect(), receiver.connect()).await;
    drop::<shared_channel::ConnectedSender<u8>>(sender);
    counts!(
        "ConnectedReceiver::recv, without a sender",
        assert_eq!(receiver.recv().await, None)
    );
    counts!("SharedSender::connect", {
        let (sender, receiver) = shared_channel::new_bounded::<u8>(1);
        drop(receiver);
        sender.connect().await;
    });
    counts!("SharedReceiver::connect", {
        let (sender, receiver) = shared_channel::new_bounded::<u8>(1);
        drop(sender);
        receiver.connect().await;
    });
}

#[derive(Clone)]
struct Ignore;

impl Handler<u8> for Ignore {
    fn handle(&self, _: u8, _: usize, _: usize) -> HandlerResult {
        Box::pin(async {})
    }
}

#[run_test]
async fn meshes_and_shards() {
    is_refused("MeshBuilder::join", MeshBuilder::<u8, _>::full(1, 1).join()).await;
    let partial = MeshBuilder::<u8, _>::partial(2, 1);
    is_refused("MeshBuilder::join, partial", partial.join(Role::Producer)).await;
    let (senders, receivers) = MeshBuilder::full(1, 1).join().await.unwrap();
    counts!("Senders::send_to", senders.send_to(5, 7).await.unwrap_err());
    counts!(
        "Receivers::recv_from",
        receivers.recv_from(5).await.unwrap_err()
    );
    counts!("Receivers::recv_many_from", {
        let mut many = Vec::new();
        receivers.recv_many_from(5, &mut many, 8).await.unwrap_err();
    });
    let sharded = || Sharded::new(MeshBuilder::full(1, 1), |_: &u8, _| 0, Ignore);
    is_refused("Sharded::new", sharded()).await;
    let mut sharded = sharded().await.unwrap();
    counts!("Sharded::send", sharded.send(7).await.unwrap());
    counts!("Sharded::send_to", sharded.send_to(0, 7).await.unwrap());
    is_refused("Sharded::close", sharded.close()).await;
    sharded.close().await;
    counts!(
        "Sharded::send_to, closed",
        sharded.send_to(0, 7).await.unwrap_err()
    );
}
