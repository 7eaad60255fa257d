//! A message and its answer over a socket of the same executor: what input and output feel of what
//! else the executor does.

use crate::check::probe::PING_EVERY;
use crate::workload::prelude::*;

/// The tasks that ask and answer.
pub(super) struct Ping {
    pace: Rc<Pace>,
    task: Task<()>,
}

/// How often to ask: not at all, or once a millisecond until this instant is near, and from then on without a pause,
/// since a pause is a timer and would have to wait behind the burst.
type Pace = Cell<Option<Instant>>;

impl Ping {
    pub(super) fn start(checker: &Rc<Checker>) -> Self {
        let pace = Rc::<Pace>::default();
        let task = spawn_local({
            let (checker, pace) = (Rc::clone(checker), Rc::clone(&pace));
            async move {
                let ended = converse(&checker, &pace).await;
                checker.ended(Invariant::Deliveries, "ping", ended);
            }
        });
        Ping { pace, task }
    }

    /// A burst is due at `deadline`.
    pub(super) fn hurry(&self, deadline: Instant) {
        self.pace.set(Some(deadline));
    }

    /// The burst is over.
    pub(super) fn rest(&self) {
        self.pace.set(None);
    }

    /// Waits for the end, which comes by itself when the run drains.
    pub(super) async fn end(self) {
        self.task.await;
    }
}

async fn converse(checker: &Checker, pace: &Pace) -> io::Result<()> {
    let (near, far) = pair().await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let answering = spawn_local(answer(far));
    ask(checker, pace, near).await?;
    answering.await
}

/// Two connected sockets of this executor.
pub(super) async fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (near, far) = zip(TcpStream::connect(address), listener.accept()).await;
    Ok((near?, far?))
}

async fn ask(checker: &Checker, pace: &Pace, mut near: TcpStream) -> io::Result<()> {
    let mut number: u64 = 0;
    while !checker.control.is_draining() {
        let Some(deadline) = pace.get() else {
            sleep(REST).await;
            continue;
        };
        number += 1;
        let mut heard = [0; 8];
        let sent = clock::now();
        near.write_all(&number.to_le_bytes()).await?;
        near.read_exact(&mut heard).await?;
        checker.stats.record(Timing::Ping, sent, clock::now());
        let heard = u64::from_le_bytes(heard);
        checker.holds(Invariant::Deliveries, heard == number, || {
            format!("ping {number} was answered with {heard}")
        });
        // In a simulation answers take no time, and time has to go on.
        if clock::now() + NEAR < deadline || checker.control.is_simulated() {
            sleep(PING_EVERY).await;
        }
    }
    Ok(())
}

/// Sends back what comes until the other side closes.
async fn answer(mut far: TcpStream) -> io::Result<()> {
    let mut message = [0; 8];
    loop {
        match far.read_exact(&mut message).await {
            Ok(()) => far.write_all(&message).await?,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

const NEAR: Duration = Duration::from_millis(10);
const REST: Duration = Duration::from_millis(5);
