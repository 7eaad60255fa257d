//! What ends or stands still: a node with its kernel, or its processes alone; and disks that begin to fail.

use glommio::simulation::{self, Disk, FailureKind, Fault, Simulation};

use super::{HOUR, MILLISECOND, SECOND};
use crate::common::prelude::*;

const NODE: &str = "server";

fn cut() -> Fault {
    Fault::PowerCut {
        node: NODE.into(),
        off_for: 10 * SECOND,
    }
}

fn kill() -> Fault {
    Fault::Kill {
        node: NODE.into(),
        off_for: 10 * SECOND,
    }
}

/// Listens, and has a file whose bytes it writes without a sync. Tells how long that is at each start.
async fn serve(log: Log<u64>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.create(true).read(true).write(true);
    let file = file.buffered_open("/data").await?;
    log.push(file.file_size().await?);
    file.write_at(vec![7; 100], 0).await?;
    let listener = TcpListener::bind("0.0.0.0:7000")?;
    let _connection = listener.accept().await?;
    pending().await
}

/// What a client sees that is connected, and one that connects later, and what is left of the file.
fn seen_of(fault: &Fault) -> (String, String, Vec<u64>) {
    let (log, seen) = (Log::default(), Log::default());
    let (of_server, of_client) = (log.clone(), seen.clone());
    Simulation::builder()
        .seed(3)
        .disk(|disk| disk.lost_unsynced(true))
        .node(NODE, 1, move || serve(of_server.clone()))
        .client("client", move || {
            let seen = of_client.clone();
            async move {
                sleep(SECOND).await;
                let mut stream = TcpStream::connect("server:7000").await?;
                stream.set_read_timeout(Some(2 * SECOND))?;
                let read = stream.read(&mut [0]).await;
                seen.push(format!("{:?}", read.map_err(|it| it.kind())));
                let again = TcpStream::connect_timeout("server:7000", 2 * SECOND).await;
                seen.push(format!(
                    "{:?}",
                    again.map(drop).map_err(|it| io::Error::from(it).kind())
                ));
                sleep(20 * SECOND).await;
                Ok::<_, io::Error>(())
            }
        })
        .at(2 * SECOND, fault.clone())
        .run()
        .expect("nothing fails");
    let seen = seen.take();
    (seen[0].clone(), seen[1].clone(), log.take())
}

#[run_test]
fn a_kernel_lives_on_when_its_processes_are_killed() {
    let (connected, connecting, files) = seen_of(&kill());
    assert_eq!(
        (&*connected, &*connecting),
        ("Ok(0)", "Err(ConnectionRefused)")
    );
    assert_eq!(files, [0, 100], "what was written is there");
    let (connected, connecting, files) = seen_of(&cut());
    assert_eq!(
        (&*connected, &*connecting),
        ("Err(TimedOut)", "Err(TimedOut)")
    );
    assert_eq!(files[0], 0);
}

/// What a process has written is not safe before its kernel has synced it.
#[run_test]
fn a_power_cut_after_a_kill_takes_what_was_not_synced() {
    let mut lost = 0;
    for seed in 0..40 {
        let log = Log::default();
        let of_server = log.clone();
        Simulation::builder()
            .seed(seed)
            .disk(|disk| disk.lost_unsynced(true))
            .node(NODE, 1, move || serve(of_server.clone()))
            .at(2 * SECOND, kill())
            .at(3 * SECOND, cut())
            .run_for(20 * SECOND)
            .expect("nothing fails");
        let sizes = log.take();
        assert_eq!(sizes.len(), 2, "it starts once more");
        lost += usize::from(sizes[1] == 0);
    }
    assert!((5..40).contains(&lost), "{lost}");
}

/// When a client is connected, and when it has its answer, if the server stands still for a minute.
fn answered(fault: Fault) -> (u64, u64) {
    let log = Log::default();
    let seen = log.clone();
    Simulation::builder()
        .seed(5)
        .node(NODE, 1, || async {
            let listener = TcpListener::bind("0.0.0.0:7000")?;
            let mut stream = listener.accept().await?;
            let mut byte = [0];
            stream.read_exact(&mut byte).await?;
            stream.write_all(&byte).await?;
            stream.close().await
        })
        .client("client", move || {
            let log = seen.clone();
            async move {
                sleep(10 * SECOND).await;
                let mut stream = TcpStream::connect("server:7000").await?;
                log.push(simulation::elapsed().as_secs());
                stream.write_all(&[1]).await?;
                stream.read_exact(&mut [0]).await?;
                log.push(simulation::elapsed().as_secs());
                Ok::<_, io::Error>(())
            }
        })
        .at(SECOND, fault)
        .run()
        .expect("nothing fails");
    let times = log.take();
    (times[0], times[1])
}

#[run_test]
fn a_stopped_process_has_a_kernel_that_accepts_and_a_paused_machine_has_none() {
    let length = 60 * SECOND;
    let stop = Fault::Stop {
        node: NODE.into(),
        length,
    };
    assert_eq!(answered(stop), (10, 61));
    let pause = Fault::Pause {
        node: NODE.into(),
        length,
    };
    let (connected, answered) = answered(pause);
    assert!(connected >= 61 && answered >= 61, "{connected} {answered}");
}

#[run_test]
fn kills_and_stops_come_by_chance() {
    let starts = Rc::new(Cell::new(0));
    let counted = Rc::clone(&starts);
    let failure = Simulation::builder()
        .seed(1)
        .node(NODE, 1, move || {
            counted.set(counted.get() + 1);
            pending::<()>()
        })
        .client("client", || async {
            sleep(HOUR).await;
            Err::<(), _>("an hour is over")
        })
        .kills(NODE, 30 * SECOND..90 * SECOND, SECOND..2 * SECOND)
        .stops(NODE, 10 * SECOND..30 * SECOND, SECOND..2 * SECOND)
        .run()
        .unwrap_err();
    let of_kind = |is: fn(&Fault) -> bool| failure.faults().iter().filter(|it| is(&it.1)).count();
    let kills = of_kind(|it| matches!(it, Fault::Kill { .. }));
    assert_eq!(kills + 1, starts.get());
    assert!((40..120).contains(&kills), "{kills}");
    assert!(of_kind(|it| matches!(it, Fault::Stop { .. })) > 60);
}

/// The disk of one node, from a moment on.
#[run_test]
fn a_disk_begins_to_fail_while_the_others_do_not() {
    let log = Log::default();
    let writes = |name: &'static str| {
        let log = log.clone();
        move || {
            let log = log.clone();
            async move {
                let file = BufferedFile::create("/data").await?;
                for second in 0..6_u64 {
                    let written = file.write_at(vec![1; 512], 0).await;
                    log.push((name, second, written.is_ok()));
                    sleep(SECOND).await;
                }
                io::Result::Ok(())
            }
        }
    };
    let change = |disk: Disk| Fault::DiskChange {
        node: "bad".into(),
        disk,
    };
    Simulation::builder()
        .seed(1)
        .client("bad", writes("bad"))
        .client("good", writes("good"))
        .at(
            2 * SECOND + 500 * MILLISECOND,
            change(Disk::default().errors(1.0)),
        )
        .at(4 * SECOND + 500 * MILLISECOND, change(Disk::default()))
        .run()
        .expect("nothing fails");
    let failed: Vec<_> = log.take().into_iter().filter(|it| !it.2).collect();
    assert_eq!(failed, [("bad", 3, false), ("bad", 4, false)]);
    let wrong = change(Disk::default().errors(2.0));
    let run = Simulation::builder()
        .client("bad", || sleep(SECOND))
        .at(MILLISECOND, wrong);
    let failure = run.run().unwrap_err();
    assert!(matches!(failure.kind(), FailureKind::Setup(_)), "{failure}");
}

const SECTOR: usize = 512;

/// Each sector of 16 has its number, or its number and 100 once it is written for a second time. What is read after
/// that.
fn read_back(disk: fn(Disk) -> Disk, seed: u64) -> Vec<[u8; SECTOR]> {
    let log = Log::default();
    let seen = log.clone();
    Simulation::builder()
        .seed(seed)
        .client("client", move || {
            let log = seen.clone();
            async move {
                let mut options = OpenOptions::new();
                let file = options.create(true).read(true).write(true);
                let file = file.buffered_open("/data").await?;
                let sector = |number: u8| [number; SECTOR];
                let all = |plus: u8| (0..16).flat_map(move |it| sector(it + plus)).collect();
                file.write_at(all(0), 0).await?;
                let fault = Fault::DiskChange {
                    node: "client".into(),
                    disk: disk(Disk::default()),
                };
                simulation::inject(Duration::ZERO, fault);
                sleep(SECOND).await;
                file.write_at(all(100), 0).await?;
                // Past the page cache, which has what was written.
                let file = DmaFile::open("/data").await?;
                let bytes = file.read_at(0, 16 * SECTOR).await?;
                for sector in bytes.chunks(SECTOR) {
                    log.push(sector.try_into().expect("they are whole"));
                }
                io::Result::Ok(())
            }
        })
        .run()
        .expect("nothing fails");
    log.take()
}

#[run_test]
fn disks_write_something_else_and_elsewhere() {
    let is_right = |(number, sector): &(usize, &[u8; SECTOR])| {
        sector.iter().all(|byte| usize::from(*byte) == number + 100)
    };
    for seed in 0..20 {
        let right = read_back(|disk| disk, seed);
        assert!(right.iter().enumerate().all(|it| is_right(&it)));
        let corrupt = read_back(|disk| disk.corrupt_writes(1.0), seed);
        let wrong: Vec<_> = corrupt
            .iter()
            .enumerate()
            .filter(|it| !is_right(it))
            .collect();
        assert_eq!(wrong.len(), 1, "one sector is not what was written");
        let misdirected = read_back(|disk| disk.misdirected_writes(1.0), seed);
        let wrong: Vec<_> = misdirected
            .iter()
            .enumerate()
            .filter(|it| !is_right(it))
            .collect();
        // Its own place has what was there before, and another one has it, unless chance has chosen the same.
        let lost: Vec<_> = wrong
            .iter()
            .filter(|(number, it)| usize::from(it[0]) == *number)
            .collect();
        let replaced: Vec<_> = wrong.iter().filter(|(_, it)| it[0] >= 100).collect();
        match (&*lost, &*replaced) {
            ([], []) => {}
            ([(number, _)], [(_, it)]) => assert_eq!(usize::from(it[0]), number + 100),
            _ => panic!("{wrong:?}"),
        }
        let rotten = read_back(|disk| disk.bit_rot(1.0), seed);
        let bits = rotten.iter().enumerate().flat_map(|(number, sector)| {
            sector
                .iter()
                .map(move |byte| (byte ^ (number as u8 + 100)).count_ones())
        });
        assert_eq!(bits.sum::<u32>(), 1, "one bit has flipped");
    }
}
