//! The connections of a server: their limits, their panics, and how they finish.

use crate::Error;
use crate::body::{self, Incoming};
use crate::transport::Transport;
use bytes::Bytes;
use futures_lite::FutureExt;
use glommio::future::timeout;
use glommio::sync::{CancellationToken, Gate, Pass};
use glommio_quic::{Connection, StreamId, VarInt};
use h3::error::Code;
use h3::quic::{RecvStream as _, SendStream as _};
use h3::server::RequestResolver;
use hyper::body::Body;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::service::Service;
use hyper::{Method, Request, Response};
use std::cell::Cell;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// The connections of a server; clones are the same connections.
///
/// A service is one of [`hyper`], as with `glommio-hyper`, whose requests have bodies of this crate's
/// type [`Incoming`]. One of tower becomes that by `hyper_util::service::TowerToHyperService`. It is
/// called for each request, in a task of its own, and dropped if the client does not want the
/// response any more.
///
/// A panic of a service, or of the body of a response, resets its stream; it is logged by `tracing`
/// at the level `error`, and [counted](Self::panics).
///
/// # Examples
///
/// See the [crate](crate).
#[derive(Clone)]
pub struct Connections {
    shared: Rc<Shared>,
}

/// Sets limits of [`Connections`].
#[derive(Clone, Debug)]
pub struct ConnectionsBuilder {
    headers_bytes: u64,
    headers_timeout: Duration,
}

struct Shared {
    options: ConnectionsBuilder,
    /// They are to finish, and they are to be closed.
    is_ending: CancellationToken,
    is_over: CancellationToken,
    /// Those that a shutdown waits for.
    open: Gate,
    open_count: Cell<usize>,
    panics: Cell<u64>,
}

impl ConnectionsBuilder {
    /// How long the headers of a request, and its trailers, may be, as HTTP/3 counts: the bytes of
    /// names and values, and 32 for each. Default 65,536. A longer one is answered by status 431.
    #[must_use]
    pub fn headers_bytes(mut self, most: u64) -> Self {
        self.headers_bytes = most;
        self
    }

    /// How long the headers of a request may take from its first byte on. Default 10 seconds. Then
    /// the stream is reset.
    #[must_use]
    pub fn headers_timeout(mut self, limit: Duration) -> Self {
        self.headers_timeout = limit;
        self
    }

    /// No connections so far.
    pub fn build(self) -> Connections {
        Connections {
            shared: Rc::new(Shared {
                options: self,
                is_ending: CancellationToken::new(),
                is_over: CancellationToken::new(),
                open: Gate::new(),
                open_count: Cell::new(0),
                panics: Cell::new(0),
            }),
        }
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self::new()
    }
}

impl Connections {
    /// No connections so far, with the default limits.
    pub fn new() -> Connections {
        Connections::builder().build()
    }

    /// Sets limits. How many requests a connection may have at a time, and how much they may send
    /// before it is read, is up to its [`TransportConfig`](glommio_quic::TransportConfig).
    pub fn builder() -> ConnectionsBuilder {
        ConnectionsBuilder {
            headers_bytes: 65_536,
            headers_timeout: Duration::from_secs(10),
        }
    }

    /// Serves `connection`: a future of its end, to be spawned as a task. The connection counts
    /// from this call on, until the future is done or dropped.
    ///
    /// # Errors
    ///
    /// The connection is lost, other than by a client that has closed it in good order.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub fn serve<S, B>(
        &self,
        connection: Connection,
        service: S,
    ) -> impl Future<Output = Result<(), Error>> + use<S, B>
    where
        S: Service<Request<Incoming>, Response = Response<B>> + 'static,
        S::Error: Into<Box<dyn StdError + Send + Sync>>,
        B: Body + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let open = Open::new(Rc::clone(&self.shared));
        async move {
            let shared = &open.shared;
            let serve = serve(shared, connection, Rc::new(service));
            let over = async {
                shared.is_over.cancelled().await;
                Err(Error::ShutDown)
            };
            serve.or(over).await
        }
    }

    /// Asks the clients to finish (GOAWAY): requests that have come are answered, no more are taken,
    /// and a connection is closed when the client has all of its responses. After `limit` it is
    /// closed at once. Returns how many were.
    ///
    /// New connections are treated so, too, but not waited for.
    ///
    /// # Cancel safety
    ///
    /// The clients are asked at the call, whether or not the future is polled; the limit begins at the
    /// first poll. If the future is dropped before its end, none is closed because of the limit.
    pub fn shutdown_within(&self, limit: Duration) -> impl Future<Output = usize> + use<> {
        self.shared.is_ending.cancel();
        let closed = self.shared.open.close();
        let shared = Rc::clone(&self.shared);
        async move {
            // An error says that they have finished before.
            if timeout(limit, closed).await.is_ok() {
                return 0;
            }
            let left = shared.open_count.get();
            shared.is_over.cancel();
            left
        }
    }

    /// How many there are that a shutdown waits for.
    pub fn open(&self) -> usize {
        self.shared.open_count.get()
    }

    /// How often a service has panicked, or a body.
    pub fn panics(&self) -> u64 {
        self.shared.panics.get()
    }
}

/// One of the connections.
struct Open {
    shared: Rc<Shared>,
    /// `None` if it has come after a shutdown.
    pass: Option<Pass>,
}

impl Open {
    fn new(shared: Rc<Shared>) -> Open {
        let pass = shared.open.enter().ok();
        shared
            .open_count
            .update(|count| count + usize::from(pass.is_some()));
        Open { shared, pass }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let counted = usize::from(self.pass.is_some());
        self.shared.open_count.update(|count| count - counted);
    }
}

async fn serve<S, B>(
    shared: &Rc<Shared>,
    connection: Connection,
    service: Rc<S>,
) -> Result<(), Error>
where
    S: Service<Request<Incoming>, Response = Response<B>> + 'static,
    S::Error: Into<Box<dyn StdError + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let mut http = h3::server::builder();
    http.max_field_section_size(shared.options.headers_bytes);
    let mut http = http
        .build::<_, Bytes>(Transport::splitting(connection.clone()))
        .await?;
    // Those that a shutdown waits for.
    let requests = Gate::new();
    let ending = async {
        shared.is_ending.cancelled().await;
        Ok(None)
    };
    let mut ending = pin!(ending);
    loop {
        match http.accept().or(ending.as_mut()).await {
            Ok(Some(resolver)) => {
                let (shared, service) = (Rc::clone(shared), Rc::clone(&service));
                let connection = connection.clone();
                let request = async move {
                    // Pinned, as a future that is moved into another one makes that twice as large.
                    let answer = pin!(answer(&shared, &connection, resolver, &*service));
                    match AssertUnwindSafe(answer).catch_unwind().await {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => tracing::debug!(%error, "a request has failed"),
                        Err(payload) => {
                            shared.panics.set(shared.panics.get() + 1);
                            contained(|| tracing::error!("a service has panicked"));
                            contained(|| drop(payload));
                        }
                    }
                };
                if let Ok(task) = requests.spawn(request) {
                    task.detach();
                }
            }
            Ok(None) => break,
            Err(error) if error.is_h3_no_error() => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    // GOAWAY names the first request that is not processed.
    http.shutdown(1).await?;
    // A client may send it again elsewhere, and is to hear so.
    let reject = async {
        while let Ok(Some(mut late)) = http.accept().await {
            let stream = &mut late.frame_stream.stream;
            stream.stop_sending(Code::H3_REQUEST_REJECTED.value());
            stream.reset(Code::H3_REQUEST_REJECTED.value());
        }
        std::future::pending().await
    };
    let finished = async {
        // It is not closed twice.
        let _ = requests.close().await;
    };
    finished.or(reject).await;
    Ok(())
}

/// Answers one request. It is over when the client has all of the response.
async fn answer<S, B>(
    shared: &Shared,
    connection: &Connection,
    resolver: RequestResolver<Transport, Bytes>,
    service: &S,
) -> Result<(), Error>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn StdError + Send + Sync>>,
    B: Body,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let resolved = timeout(shared.options.headers_timeout, resolver.resolve_request());
    let (request, stream) = resolved.await.map_err(|_| Error::HeadersTimedOut)??;
    let id = VarInt::from_u64(stream.id().into_inner()).expect("both have 62 bits");
    let stopped = connection.stopped(StreamId::from(id));
    let (mut send, recv) = stream.split();
    let is_head = request.method() == Method::HEAD;
    let body = Incoming::of_request(recv, request.headers());
    let respond = async {
        let response = service.call(request.map(|()| body)).await;
        let response = response.map_err(|error| Error::Service(error.into()))?;
        let (mut parts, body) = response.into_parts();
        remove_hop_by_hop(&mut parts.headers);
        send.send_response(Response::from_parts(parts, ())).await?;
        match is_head {
            true => Ok(send.finish().await?),
            false => body::send(&mut send, body).await,
        }
    };
    let mut stopped = pin!(stopped);
    let cancelled = async {
        match stopped.as_mut().await {
            // The client wants no response, or is gone.
            Ok(Some(_)) | Err(_) => Err(Error::Stopped),
            Ok(None) => std::future::pending().await,
        }
    };
    respond.or(cancelled).await?;
    // It is ready again if it was before.
    let received = connection.stopped(StreamId::from(id));
    let _ = received.await;
    Ok(())
}

/// Does what may panic in turn: a subscriber, or what the panic of a service carried.
fn contained(act: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(act)) {
        std::mem::forget(payload);
    }
}

/// What means nothing in HTTP/3, and makes a message malformed (RFC 9114, section 4.2).
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    const NAMES: [HeaderName; 4] = [
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        HeaderName::from_static("keep-alive"),
    ];
    for name in NAMES {
        headers.remove(name);
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("open", &self.open())
            .field("panics", &self.panics())
            .finish_non_exhaustive()
    }
}
