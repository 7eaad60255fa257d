//! What the server answers: a service of tonic.
//!
//! tonic wants methods, their futures and their streams to be `Send`, for runtimes that move tasks.

use std::pin::Pin;
use std::time::Duration;

use futures_lite::{Stream, StreamExt, stream};
use tonic::{Request, Response, Status};

use crate::greeting::greeter_server::Greeter;
use crate::greeting::{CountReply, CountRequest, GreetReply, GreetRequest};

/// Waits by its function, a `sleep`.
pub struct Service<S>(pub S);

#[tonic::async_trait]
impl<S, F> Greeter for Service<S>
where
    S: Fn(Duration) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    type CountStream = Pin<Box<dyn Stream<Item = Result<CountReply, Status>> + Send>>;

    async fn greet(&self, request: Request<GreetRequest>) -> Result<Response<GreetReply>, Status> {
        let GreetRequest { name, pause_millis } = request.into_inner();
        if name.is_empty() {
            return Err(Status::invalid_argument("a greeting needs a name"));
        }
        if pause_millis > 0 {
            self.0(Duration::from_millis(pause_millis.into())).await;
        }
        let text = format!("hello, {name}");
        Ok(Response::new(GreetReply { text }))
    }

    async fn count(
        &self,
        request: Request<CountRequest>,
    ) -> Result<Response<Self::CountStream>, Status> {
        let CountRequest {
            count,
            pause_millis,
        } = request.into_inner();
        let pause = Duration::from_millis(pause_millis.into());
        let sleep = self.0.clone();
        let numbers = stream::iter(1..=count).then(move |number| {
            let sleep = sleep(pause);
            async move {
                sleep.await;
                Ok(CountReply { number })
            }
        });
        Ok(Response::new(numbers.boxed()))
    }
}
