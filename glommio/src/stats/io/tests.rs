use super::*;

const ALL: [Counted; 7] = [
    Counted::Open,
    Counted::Close,
    Counted::Read,
    Counted::DedupedRead,
    Counted::BufferedRead,
    Counted::Write,
    Counted::BufferedWrite,
];

/// What `times` operations of the kind `ALL[at]` with `bytes` each come to.
fn volume(at: usize, times: u64, bytes: u64) -> (u64, u64) {
    (times, if at < 2 { 0 } else { times * bytes })
}

#[test]
fn each_operation_has_a_counter_of_its_own() {
    for (at, counted) in ALL.into_iter().enumerate() {
        let mut stats = RingIoStats::default();
        stats.count(counted, 7);
        stats.count(counted, 7);
        let mut expected = [(0, 0); 7];
        expected[at] = volume(at, 2, 7);
        assert_eq!(stats.counters(), expected, "{counted:?}");
    }
}

/// Each counter different, by `scale`.
fn filled(scale: u64) -> RingIoStats {
    let mut stats = RingIoStats::default();
    for (at, counted) in ALL.into_iter().enumerate() {
        for _ in 0..=at as u64 * scale {
            stats.count(counted, 10);
        }
    }
    stats
}

#[test]
fn the_sum_is_over_all_rings_and_all_counters() {
    let mut stats = IoStats {
        poll_ring: filled(100),
        ..IoStats::of_ring(filled(1))
    };
    stats.latency_ring = filled(10);
    let sum = stats.all_rings().counters();
    for (at, sum) in sum.into_iter().enumerate() {
        let times = 3 + 111 * at as u64;
        assert_eq!(sum, volume(at, times, 10), "{:?}", ALL[at]);
    }
}

#[test]
fn latencies_are_microseconds_and_are_merged() {
    let legs = [
        ReadLatency::Queued,
        ReadLatency::InKernel,
        ReadLatency::Untaken,
    ];
    for leg in legs {
        let mut stats = IoStats::of_ring(RingIoStats::default());
        stats.main_ring.record(leg, Duration::from_micros(100));
        stats.poll_ring.record(leg, Duration::from_millis(1));
        let sum = stats.all_rings();
        let sketches = [
            sum.pre_reactor_io_scheduler_latency_us(),
            sum.io_latency_us(),
            sum.post_reactor_io_scheduler_latency_us(),
        ];
        for (of, sketch) in legs.into_iter().zip(sketches) {
            assert_eq!(sketch.count(), if of == leg { 2 } else { 0 });
        }
        let sketch = sketches[legs
            .iter()
            .position(|of| *of == leg)
            .expect("it is one of them")];
        assert_eq!((sketch.min(), sketch.max()), (Some(100.0), Some(1000.0)));
        let low = sketch
            .quantile(0.25)
            .expect("a quantile")
            .expect("two values");
        assert!((99.0..=101.0).contains(&low), "{low} is accurate to 1 %");
    }
}

#[test]
fn debug_shows_the_twelve_counters_and_says_that_there_is_more() {
    let text = format!("{:?}", filled(1));
    assert_eq!(text.matches(": ").count(), 12, "{text}");
    assert!(text.ends_with(", .. }"), "{text}");
}
