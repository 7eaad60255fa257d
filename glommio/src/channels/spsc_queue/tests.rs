use super::*;

/// The indices go round: a queue that has seen almost as many values as a `usize` counts works on.
#[test]
fn indices_wrap() {
    let (producer, consumer) = make_ends(4, || ());
    let start = usize::MAX - 5;
    for index in [&producer.tail, &producer.known_head] {
        index.set(start);
    }
    for index in [&consumer.head, &consumer.known_tail] {
        index.set(start);
    }
    let Lines {
        producer: line,
        consumer: other,
    } = &**producer.lines();
    for line in [line, other] {
        line.index.store(start, Ordering::Relaxed);
    }
    let mut queued = std::collections::VecDeque::new();
    for number in 0..40_usize {
        if number % 3 < 2 {
            let has_room = queued.len() < 4;
            assert_eq!(producer.try_push(number).is_none(), has_room);
            if has_room {
                queued.push_back(number);
            }
        } else {
            assert_eq!(consumer.try_pop(), queued.pop_front());
        }
        assert_eq!(producer.free_space(), 4 - queued.len());
    }
}
