//! Sending against closing under every interleaving: what was accepted is received, the rest comes
//! back, and nothing is both or neither.

use std::sync::Arc;

use loom::thread;

use crate::mailbox::{Mailbox, Notifier, sleep::Signal};

/// These models do not sleep.
struct NoSignal;

impl Signal for NoSignal {
    fn raise(&self) {
        unreachable!("the owner never announces sleep here");
    }

    fn clear(&self) {}
}

fn mailbox() -> (Arc<Mailbox<usize, NoSignal>>, Arc<Notifier<NoSignal>>) {
    let notifier = Arc::new(Notifier::with_signal(NoSignal));
    (Arc::new(Mailbox::new(notifier.clone())), notifier)
}

#[test]
fn loom_close_against_send() {
    bounded(|| {
        let (mailbox, _) = mailbox();
        let sender = mailbox.clone();
        let accepted = thread::spawn(move || {
            let first = sender.send(1).is_ok();
            let second = sender.send(2).is_ok();
            assert!(first || !second, "closed stays closed");
            usize::from(first) + usize::from(second)
        });
        mailbox.close();
        let mut received = 0;
        while let Some(message) = mailbox.receive() {
            received += 1;
            assert_eq!(message, received);
        }
        let accepted = accepted.join().expect("the sender ends well");
        assert_eq!(accepted, received, "one drain after the close gets all");
        assert_eq!(mailbox.receive(), None);
    });
}

/// An owner that takes the notification finds the message behind it.
#[test]
fn loom_notified_mail_is_there() {
    bounded(|| {
        let (mailbox, notifier) = mailbox();
        let sender = mailbox.clone();
        let sender = thread::spawn(move || sender.send(1).expect("the mailbox is open"));
        let was_notified = notifier.take();
        let received = mailbox.receive();
        assert!(received.is_some() || !was_notified);
        sender.join().expect("the sender ends well");
        if received.is_none() {
            assert!(notifier.take(), "and not before");
            assert_eq!(mailbox.receive(), Some(1));
        }
    });
}

/// The queue's own steps are many: three preemptions per run find what two threads can do to it.
fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}
