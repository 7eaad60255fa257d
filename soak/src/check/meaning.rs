//! What each line of the verdict means, in a sentence for those who read it for the first time.

/// The sentence for the line with this label. `None`: it speaks for itself.
pub(crate) fn of(label: &str) -> Option<&'static str> {
    let row = MEANINGS.iter().find(|(known, _)| *known == label);
    row.map(|&(_, meaning)| meaning)
}

const MEANINGS: [(&str, &str); 22] = [
    (
        "nothing early",
        "No timer fires, and no message is redelivered, before its deadline, not even by a nanosecond.",
    ),
    (
        "nothing lost",
        "Every timer that was armed either fires or is cancelled.",
    ),
    (
        "nothing fired twice",
        "No timer fires a second time, and none fires that nobody armed.",
    ),
    (
        "fired in order",
        "Timers that wait side by side fire by their deadlines, and those due together in the order \
         in which they were armed.",
    ),
    (
        "cancelled stays silent",
        "A timer that was cancelled in time never fires.",
    ),
    (
        "stale cancels hit nothing",
        "Cancelling a timer that has fired already touches no other timer.",
    ),
    (
        "messages accounted for",
        "Every message arrives exactly as often as the protocol says, with its own content.",
    ),
    (
        "socket timeouts",
        "A read or write gives up no earlier than its timeout, and no byte is lost by it.",
    ),
    (
        "datagram bytes whole",
        "From datagrams that were lost, repeated and shuffled on the way come exactly the bytes that \
         were sent.",
    ),
    (
        "live timers as modelled",
        "The runtime keeps exactly those timers that an independent model says are still waiting.",
    ),
    (
        "memory back after peaks",
        "When a peak of timers is over, the memory it took has been given back.",
    ),
    (
        "idle takes no processor",
        "An executor with nothing to do takes next to no processor time, however many timers wait.",
    ),
    (
        "lateness p50",
        "Half of the timers fire within this time after their deadline, bursts apart.",
    ),
    (
        "lateness p99.9",
        "Of a thousand timers, 999 fire within this time after their deadline.",
    ),
    (
        "lateness max",
        "The latest of those timers fires within this time after its deadline.",
    ),
    (
        "lateness max in bursts",
        "The last of 100,000 timers with one deadline fires within this time after it.",
    ),
    (
        "ping p99.9 beside bursts",
        "Of a thousand questions over a socket, 999 are answered within this time, although thousands \
         of timers are due beside them.",
    ),
    (
        "ping max beside bursts",
        "The slowest of those answers comes within this time.",
    ),
    (
        "memory after warm-up",
        "Once the run is under way, the process hardly grows any more.",
    ),
    (
        "memory after the end",
        "When everything has ended, the program has given back the memory it asked for.",
    ),
    ("descriptors constant", "No file or socket is left open."),
    (
        "executors ended well",
        "Every thread of the run came to its end without an error.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::verdict::{Evidence, Verdict};

    #[test]
    fn every_line_of_the_verdict_has_a_sentence() {
        for row in Verdict::new(&Evidence::default()).rows {
            let meaning = of(&row.invariant);
            assert!(
                meaning.is_some_and(|meaning| meaning.ends_with('.')),
                "{}",
                row.invariant
            );
        }
        assert_eq!(of("no such line"), None);
    }
}
