//! When shared channels wake, and what they leave behind: no task waits beside what it waits for,
//! however long the other end works, and no item is kept that cannot be received.

use glommio::channels::shared_channel::{ConnectedReceiver, ConnectedSender, new_bounded};

use crate::common::prelude::*;

async fn connected<T: Send + 'static>(size: usize) -> (ConnectedSender<T>, ConnectedReceiver<T>) {
    let (sender, receiver) = new_bounded(size);
    zip(sender.connect(), receiver.connect()).await
}

/// All in one poll: as a producer that works for long after each item.
#[run_test]
fn a_receiver_that_sleeps_has_each_item_while_the_poll_that_sends_goes_on() {
    let received = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = new_bounded(1024);
    let consumer = spawn_executor({
        let received = Arc::clone(&received);
        move || async move {
            let receiver = receiver.connect().await;
            while receiver.recv().await.is_some() {
                received.fetch_add(1, Ordering::Release);
            }
        }
    });
    run(async {
        let sender = sender.connect().await;
        for number in 0..2000 {
            sender.try_send(number).unwrap();
            while received.load(Ordering::Acquire) <= number {
                thread::yield_now();
            }
            match number % 100 {
                // Long enough to fall asleep.
                0 => thread::sleep(Duration::from_millis(2)),
                // And about as long as it takes to begin to.
                pause => (0..10 * pause).for_each(|_| std::hint::spin_loop()),
            }
        }
    });
    consumer.join().unwrap();
}

#[run_test]
fn a_producer_that_sends_twice_and_blocks_for_the_answer_has_it() {
    let (sender, receiver) = new_bounded(1024);
    let (answer, answers) = mpsc::channel();
    let consumer = spawn_executor(move || async move {
        let receiver = receiver.connect().await;
        while let Some(number) = receiver.recv().await {
            if number % 2 == 1 {
                answer.send(number).unwrap();
            }
        }
    });
    run(async {
        let sender = sender.connect().await;
        for number in (0..2000).step_by(2) {
            sender.send(number).await.unwrap();
            sender.send(number + 1).await.unwrap();
            assert_eq!(answers.recv(), Ok(number + 1));
        }
    });
    consumer.join().unwrap();
}

/// Rings that were never written to: storing takes long, and the receiver goes meanwhile.
#[run_test]
fn a_request_that_is_sent_while_the_receiver_goes_is_not_kept() {
    let request = Arc::new(());
    for _ in 0..150 {
        let (sender, receiver) = new_bounded(1 << 14);
        let barrier = Arc::new(Barrier::new(2));
        let consumer = spawn_executor({
            let barrier = Arc::clone(&barrier);
            move || async move {
                let receiver = receiver.connect().await;
                barrier.wait();
                drop(receiver);
            }
        });
        run(async {
            let sender = sender.connect().await;
            barrier.wait();
            while sender.try_send(Arc::clone(&request)).is_ok() {}
            consumer.join().unwrap();
            assert_eq!(Arc::strong_count(&request), 1, "it is kept");
            drop(sender);
        });
    }
}

/// It was polled, and another arm of a `select!` won; its task has other things to do.
#[run_test]
async fn a_receive_that_is_kept_and_not_polled_does_not_keep_its_notification() {
    let (sender, receiver) = connected(4).await;
    let receiver = Rc::new(receiver);
    let mut kept: Vec<_> = (0..3).map(|_| Box::pin(receiver.recv())).collect();
    for it in &mut kept {
        assert!(poll_once(it.as_mut()).await.is_none());
    }
    let other = spawn_local({
        let receiver = Rc::clone(&receiver);
        async move { receiver.recv().await }
    });
    sender.try_send(7).unwrap();
    assert_eq!(other.await, Some(7));
    // And none is lost that comes later.
    sender.try_send(8).unwrap();
    assert_eq!(kept.swap_remove(1).await, Some(8));
}

#[run_test]
async fn a_send_that_is_kept_and_not_polled_does_not_keep_its_notification() {
    let (sender, receiver) = connected(1).await;
    let sender = Rc::new(sender);
    sender.try_send(0).unwrap();
    let mut kept = Box::pin(sender.send(1));
    assert!(poll_once(kept.as_mut()).await.is_none());
    let other = spawn_local({
        let sender = Rc::clone(&sender);
        async move { sender.send(2).await }
    });
    assert_eq!(receiver.recv().await, Some(0));
    other.await.unwrap();
    assert_eq!(receiver.recv().await, Some(2));
    kept.await.unwrap();
    assert_eq!(receiver.recv().await, Some(1));
}
