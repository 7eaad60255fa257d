//! The messages, the client and the server of the service `Greeter`, in the shape that
//! `tonic-prost-build` gives to them, but written by hand: that needs no `protoc`.
//!
//! ```proto
//! package greeting;
//! service Greeter {
//!   rpc Greet(GreetRequest) returns (GreetReply);
//!   rpc Count(CountRequest) returns (stream CountReply);
//! }
//! ```

#[derive(Clone, PartialEq, prost::Message)]
pub struct GreetRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(uint32, tag = "2")]
    pub pause_millis: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct GreetReply {
    #[prost(string, tag = "1")]
    pub text: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CountRequest {
    #[prost(uint32, tag = "1")]
    pub count: u32,
    #[prost(uint32, tag = "2")]
    pub pause_millis: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CountReply {
    #[prost(uint32, tag = "1")]
    pub number: u32,
}

/// The client.
#[allow(
    dead_code,
    reason = "`compat/tokio_servers` has the module, and no client"
)]
pub mod greeter_client {
    use tonic::body::Body;
    use tonic::client::{Grpc, GrpcService};
    use tonic::codegen::http::uri::{PathAndQuery, Uri};
    use tonic::codegen::{Body as HttpBody, Bytes, GrpcMethod, StdError};
    use tonic::{IntoRequest, Request, Response, Status, Streaming};
    use tonic_prost::ProstCodec;

    use super::{CountReply, CountRequest, GreetReply, GreetRequest};

    #[derive(Debug, Clone)]
    pub struct GreeterClient<T> {
        inner: Grpc<T>,
    }

    impl<T> GreeterClient<T>
    where
        T: GrpcService<Body, Error: Into<StdError>>,
        T::ResponseBody: HttpBody<Data = Bytes, Error: Into<StdError> + Send> + Send + 'static,
    {
        pub fn new(inner: T) -> Self {
            let inner = Grpc::new(inner);
            Self { inner }
        }

        pub fn with_origin(inner: T, origin: Uri) -> Self {
            let inner = Grpc::with_origin(inner, origin);
            Self { inner }
        }

        pub async fn greet(
            &mut self,
            request: impl IntoRequest<GreetRequest>,
        ) -> Result<Response<GreetReply>, Status> {
            let request = self.ready(request, "Greet").await?;
            let path = PathAndQuery::from_static("/greeting.Greeter/Greet");
            self.inner.unary(request, path, ProstCodec::default()).await
        }

        pub async fn count(
            &mut self,
            request: impl IntoRequest<CountRequest>,
        ) -> Result<Response<Streaming<CountReply>>, Status> {
            let request = self.ready(request, "Count").await?;
            let path = PathAndQuery::from_static("/greeting.Greeter/Count");
            let codec = ProstCodec::default();
            self.inner.server_streaming(request, path, codec).await
        }

        async fn ready<M>(
            &mut self,
            request: impl IntoRequest<M>,
            method: &'static str,
        ) -> Result<Request<M>, Status> {
            let not_ready = |error: T::Error| {
                Status::unknown(format!("Service was not ready: {}", error.into()))
            };
            self.inner.ready().await.map_err(not_ready)?;
            let mut request = request.into_request();
            let method = GrpcMethod::new("greeting.Greeter", method);
            request.extensions_mut().insert(method);
            Ok(request)
        }
    }
}

/// The server.
pub mod greeter_server {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::task::{Context, Poll};

    use tonic::body::Body;
    use tonic::codegen::tokio_stream::Stream;
    use tonic::codegen::{Body as HttpBody, BoxFuture, Service, StdError, async_trait, http};
    use tonic::server::{Grpc, NamedService};
    use tonic::{Request, Response, Status};
    use tonic_prost::ProstCodec;

    use super::{CountReply, CountRequest, GreetReply, GreetRequest};

    #[async_trait]
    pub trait Greeter: Send + Sync + 'static {
        async fn greet(
            &self,
            request: Request<GreetRequest>,
        ) -> Result<Response<GreetReply>, Status>;

        type CountStream: Stream<Item = Result<CountReply, Status>> + Send + 'static;

        /// Numbers, from one on, with a pause before each.
        async fn count(
            &self,
            request: Request<CountRequest>,
        ) -> Result<Response<Self::CountStream>, Status>;
    }

    #[derive(Debug)]
    pub struct GreeterServer<T>(Arc<T>);

    impl<T> GreeterServer<T> {
        pub fn new(greeter: T) -> Self {
            Self(Arc::new(greeter))
        }
    }

    impl<T> Clone for GreeterServer<T> {
        fn clone(&self) -> Self {
            Self(Arc::clone(&self.0))
        }
    }

    impl<T, B> Service<http::Request<B>> for GreeterServer<T>
    where
        T: Greeter,
        B: HttpBody<Error: Into<StdError> + Send + 'static> + Send + 'static,
    {
        type Response = http::Response<Body>;
        type Error = Infallible;
        type Future = BoxFuture<Self::Response, Infallible>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: http::Request<B>) -> Self::Future {
            let greeter = Arc::clone(&self.0);
            Box::pin(async move {
                Ok(match request.uri().path() {
                    "/greeting.Greeter/Greet" => {
                        let greet = tower::service_fn(|request| {
                            let greeter = Arc::clone(&greeter);
                            async move { greeter.greet(request).await }
                        });
                        Grpc::new(ProstCodec::default()).unary(greet, request).await
                    }
                    "/greeting.Greeter/Count" => {
                        let count = tower::service_fn(|request| {
                            let greeter = Arc::clone(&greeter);
                            async move { greeter.count(request).await }
                        });
                        let mut grpc = Grpc::new(ProstCodec::default());
                        grpc.server_streaming(count, request).await
                    }
                    _ => Status::unimplemented("").into_http(),
                })
            })
        }
    }

    impl<T> NamedService for GreeterServer<T> {
        const NAME: &'static str = "greeting.Greeter";
    }
}
