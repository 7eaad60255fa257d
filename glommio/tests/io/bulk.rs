//! `read_many`: many requests, few reads.

use std::collections::VecDeque;

use futures_lite::{Stream, stream};
use glommio::io::{IoVec, MergedBufferLimit, ReadAmplificationLimit};

use super::*;

type Requests = Vec<(u64, usize)>;

/// How many reads it took.
async fn read_all(
    file: &Rc<DmaFile>,
    requests: Requests,
    buffer_limit: MergedBufferLimit,
    read_amp_limit: ReadAmplificationLimit,
) -> Result<u64> {
    executor().io_stats();
    let len = file.file_size().await? as usize;
    let mut reads = file.read_many(stream::iter(requests.clone()), buffer_limit, read_amp_limit);
    for (position, size) in requests {
        let ((of, asked), data) = reads.next().await.expect("one for each")?;
        assert_eq!((of, asked), (position, size), "in their order");
        let start = len.min(position as usize);
        let end = len.min(position as usize + size);
        assert_eq!(
            *data,
            pattern(start, end - start),
            "{size} bytes at {position}"
        );
    }
    assert!(reads.next().await.is_none());
    assert!(reads.next().await.is_none(), "for good");
    Ok(executor().io_stats().all_rings().file_reads().0)
}

async fn opened(folder: &TempDir, len: usize) -> Result<Rc<DmaFile>> {
    let path = folder.path().join("file");
    filled(&path, len);
    Ok(Rc::new(DmaFile::open(&path).await?))
}

#[run_test(in_each_folder)]
async fn each_request_gets_its_bytes_whatever_is_merged(folder: TempDir) {
    let file = opened(&folder, 100_000).await?;
    let mut numbers = crate::common::Numbers::new(1);
    for _ in 0..20 {
        let requests: Requests = (0..50)
            .map(|_| (numbers.below(110_000), numbers.below(9_000) as usize))
            .collect();
        let custom = MergedBufferLimit::Custom(numbers.below(40_000) as usize);
        for limit in [
            MergedBufferLimit::NoMerging,
            MergedBufferLimit::default(),
            custom,
        ] {
            let gap = ReadAmplificationLimit::Custom(numbers.below(20_000) as usize);
            for gap in [
                ReadAmplificationLimit::default(),
                gap,
                ReadAmplificationLimit::NoLimit,
            ] {
                read_all(&file, requests.clone(), limit, gap).await?;
            }
        }
    }
    file.close_rc().await?;
}

#[run_test(in_folder)]
async fn neighbours_are_one_read_and_equal_reads_are_done_once(folder: TempDir) {
    let file = opened(&folder, 4096).await?;
    let blocks = 4096 / file.alignment();
    let small: Requests = (0..511).map(|at| (8 * at + 1, 7)).collect();
    let none = ReadAmplificationLimit::NoAmplification;
    let reads = read_all(&file, small.clone(), MergedBufferLimit::NoMerging, none).await?;
    assert_eq!(reads, blocks);
    let any = ReadAmplificationLimit::NoLimit;
    let whole = MergedBufferLimit::Custom(4096);
    assert_eq!(read_all(&file, small, whole, any).await?, 1);
    let apart: Requests = vec![(0, 10), (2000, 10), (4000, 10)];
    assert_eq!(read_all(&file, apart.clone(), whole, any).await?, 1);
    assert!(read_all(&file, apart, whole, none).await? >= 2.min(blocks));
    file.close_rc().await?;
}

#[run_test(in_folder)]
async fn beyond_the_end_there_is_nothing(folder: TempDir) {
    let file = opened(&folder, 1000).await?;
    let requests = vec![(900, 400), (1000, 10), (1 << 40, 10), (0, 0), (999, 1)];
    let whole = MergedBufferLimit::default();
    read_all(&file, requests, whole, ReadAmplificationLimit::NoLimit).await?;
    file.close_rc().await?;
}

#[run_test(in_folder)]
async fn an_error_is_for_each_of_its_requests_and_the_stream_goes_on(folder: TempDir) {
    let file = opened(&folder, 10_000).await?;
    let far = u64::MAX - 100;
    let requests = vec![
        (0, 10),
        (far, 10),
        (far + 5, 10),
        (5000, 10),
        (0, usize::MAX),
    ];
    let none = ReadAmplificationLimit::NoAmplification;
    let mut reads = file.read_many(stream::iter(requests), MergedBufferLimit::default(), none);
    assert_eq!(*reads.next().await.unwrap()?.1, pattern(0, 10));
    for _ in 0..2 {
        let (op, _, errno) = told(reads.next().await.unwrap().map(|(it, _)| it));
        assert_eq!((op, errno), ("Reading", Some(libc::EINVAL)));
    }
    assert_eq!(*reads.next().await.unwrap()?.1, pattern(5000, 10));
    // As much as is read at once.
    assert_eq!(reads.next().await.unwrap()?.1.len(), 10_000);
    assert!(reads.next().await.is_none());
    drop(reads);
    file.close_rc().await?;
}

/// Gives requests only when it is told to.
struct Slow {
    requests: VecDeque<(u64, usize)>,
    allowed: Rc<Cell<usize>>,
}

impl Stream for Slow {
    type Item = (u64, usize);

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        if self.allowed.get() == 0 {
            return Poll::Pending;
        }
        self.allowed.set(self.allowed.get() - 1);
        Poll::Ready(self.requests.pop_front())
    }
}

#[run_test(in_folder)]
async fn a_slow_stream_of_requests_holds_nothing_up_and_spins_not(folder: TempDir) {
    let file = opened(&folder, 10_000).await?;
    let allowed = Rc::new(Cell::new(0));
    let slow = Slow {
        requests: [(0, 10), (10, 10), (20, 10)].into(),
        allowed: Rc::clone(&allowed),
    };
    let mut reads = file.read_many(
        slow,
        MergedBufferLimit::default(),
        ReadAmplificationLimit::NoLimit,
    );
    assert!(
        poll_once(reads.next()).await.is_none(),
        "nothing is asked for"
    );
    allowed.set(2);
    // Both are merged, and read although there could be more.
    assert_eq!(*reads.next().await.unwrap()?.1, pattern(0, 10));
    assert_eq!(*reads.next().await.unwrap()?.1, pattern(10, 10));
    assert!(poll_once(reads.next()).await.is_none());
    allowed.set(2);
    assert_eq!(*reads.next().await.unwrap()?.1, pattern(20, 10));
    assert!(reads.next().await.is_none());
    drop(reads);
    file.close_rc().await?;
}

/// Requests that never end, some of which are all the same.
#[run_test(in_folder)]
async fn requests_without_an_end_are_read_as_far_as_they_are_taken(folder: TempDir) {
    let file = opened(&folder, 100_000).await?;
    let asked = Rc::new(Cell::new(0));
    let count = Rc::clone(&asked);
    let same = stream::repeat((0, 4096)).map(move |request| {
        count.set(count.get() + 1);
        request
    });
    let mut reads = file.read_many(
        same,
        MergedBufferLimit::default(),
        ReadAmplificationLimit::NoLimit,
    );
    for _ in 0..3000 {
        assert_eq!(reads.next().await.unwrap()?.1.len(), 4096);
    }
    assert!(asked.get() < 20_000, "{}", asked.get());
    drop(reads);
    file.close_rc().await?;
}

#[run_test(in_each_folder)]
async fn limits_bound_what_is_under_way(folder: TempDir) {
    let file = opened(&folder, 1 << 20).await?;
    for (concurrency, memory, most) in [
        (1, None, 1),
        (3, None, 3),
        (100, Some(1), 1),
        (100, Some(4096), 2),
        (100, Some(10 * 4096), 11),
        (2, Some(1 << 30), 2),
    ] {
        let asked = Rc::new(Cell::new(0));
        let count = Rc::clone(&asked);
        let requests = stream::iter((0..100).map(|at| (at * 8192, 4096)));
        let requests = requests.map(move |request| {
            count.set(count.get() + 1);
            request
        });
        let mut reads = file
            .read_many(
                requests,
                MergedBufferLimit::NoMerging,
                ReadAmplificationLimit::default(),
            )
            .with_concurrency(concurrency)
            .with_memory_limit(memory);
        for taken in 0..100 {
            let (_, data) = reads.next().await.expect("there are more")?;
            assert_eq!(data.len(), 4096);
            // One is looked at in advance, to see whether it can be merged.
            let under_way = asked.get() - taken - 1;
            assert!(under_way <= most + 1, "{under_way} of {most}");
        }
    }
    file.close_rc().await?;
}

#[run_test(in_folder)]
async fn limits_of_zero_and_limits_that_come_late_are_refused(folder: TempDir) {
    let file = opened(&folder, 100).await?;
    let reads = || {
        let requests = stream::iter(vec![(0_u64, 10_usize)]);
        file.read_many(
            requests,
            MergedBufferLimit::default(),
            ReadAmplificationLimit::default(),
        )
    };
    panic_of(|| reads().with_concurrency(0));
    panic_of(|| reads().with_memory_limit(Some(0)));
    let mut polled = reads();
    polled.next().await.unwrap()?;
    panic_of(move || polled.with_concurrency(1));
    let mut polled = reads();
    polled.next().await.unwrap()?;
    panic_of(move || polled.with_memory_limit(None));
    assert_eq!(reads().size_hint(), (1, Some(1)));
    file.close_rc().await?;
}

/// What users ask with need be no pair.
#[run_test]
async fn requests_of_any_type_come_back() {
    struct Row {
        at: u64,
        name: String,
    }
    impl IoVec for Row {
        fn pos(&self) -> u64 {
            self.at
        }
        fn size(&self) -> usize {
            5
        }
    }
    let folder = folder();
    let file = opened(&folder, 100).await?;
    let rows = [7, 50, 98].map(|at| Row {
        at,
        name: format!("row {at}"),
    });
    let reads = file.read_many(
        stream::iter(rows),
        MergedBufferLimit::default(),
        ReadAmplificationLimit::default(),
    );
    let rows: Vec<_> = reads.try_collect::<_, _, Vec<_>>().await?;
    for (row, data) in rows {
        assert_eq!(row.name, format!("row {}", row.at));
        assert_eq!(*data, pattern(row.at as usize, data.len()));
    }
    file.close_rc().await?;
}

#[run_test(in_folder)]
async fn a_stream_that_is_dropped_gives_its_reads_up_and_keeps_the_file_until_then(
    folder: TempDir,
) {
    let file = opened(&folder, 1 << 20).await?;
    let requests = stream::iter((0..200).map(|at| (at * 4096, 4096)));
    let mut reads = file.read_many(
        requests,
        MergedBufferLimit::NoMerging,
        ReadAmplificationLimit::default(),
    );
    let kept = reads.next().await.unwrap()?.1;
    let path = file.path().expect("it has one").to_path_buf();
    file.close_rc().await?;
    assert_eq!(reads.next().await.unwrap()?.1.len(), 4096);
    drop(reads);
    assert_eq!(*kept, pattern(0, 4096));
    assert!(fs::metadata(path).is_ok());
}
