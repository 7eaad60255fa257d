//! The service. It is independent of the runtime, except for sleeping.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, Instant};

use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};

/// Bytes that are at hand, or those of the request as they come.
pub type Body = Either<Full<Bytes>, Incoming>;

/// Answers one request, if it is admitted; errors are reported to the client.
///
/// # Errors
///
/// Never.
pub async fn respond<S>(
    request: Request<Incoming>,
    admitted: Result<(), impl Display>,
    sleep: impl Fn(Duration) -> S,
) -> Result<Response<Body>, Infallible>
where
    S: Future<Output = ()>,
{
    if let Err(why) = admitted {
        return Ok(refuse(&why));
    }
    let path = request.uri().path();
    Ok(match (request.method(), path.strip_prefix("/")) {
        (&Method::GET, Some("")) => text(StatusCode::OK, "hello from one thread per core\n"),
        (&Method::GET, Some(path)) => match path.split_once('/') {
            Some(("bytes", count)) => match number(count, BYTES_MAX) {
                Some(count) => Response::new(Either::Left(Full::from(vec![b'x'; count]))),
                None => no_number(BYTES_MAX),
            },
            Some(("slow", duration_ms)) => match number(duration_ms, SLOW_MS_MAX) {
                Some(duration_ms) => {
                    sleep(Duration::from_millis(duration_ms as u64)).await;
                    text(StatusCode::OK, "at last\n")
                }
                None => no_number(SLOW_MS_MAX),
            },
            Some(("compute", duration_us)) => match number(duration_us, COMPUTE_US_MAX) {
                Some(duration_us) => {
                    compute(Duration::from_micros(duration_us as u64));
                    text(StatusCode::OK, "computed\n")
                }
                None => no_number(COMPUTE_US_MAX),
            },
            _ => not_found(),
        },
        (&Method::POST, Some("echo")) => Response::new(Either::Right(request.into_body())),
        _ => not_found(),
    })
}

/// Answers a request that is not served, in as little time as possible.
fn refuse(why: &impl Display) -> Response<Body> {
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"));
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Stands for what a request costs: keeps the thread for so long.
fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn number(digits: &str, max: usize) -> Option<usize> {
    digits.parse().ok().filter(|&number| number <= max)
}

fn no_number(max: usize) -> Response<Body> {
    let told = format!("this wants a number from 0 to {max}\n");
    text(StatusCode::BAD_REQUEST, told)
}

fn not_found() -> Response<Body> {
    text(
        StatusCode::NOT_FOUND,
        "there are GET /, GET /bytes/N, GET /slow/MS, GET /compute/US and POST /echo\n",
    )
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(text.into())));
    *response.status_mut() = status;
    response
}

const BYTES_MAX: usize = 64 << 20;
const SLOW_MS_MAX: usize = 60_000;
const COMPUTE_US_MAX: usize = 1_000_000;
