//! The messages of the service `Greeter`, and what `tonic-prost-build` 0.14 makes of its methods:
//! what its `manual` module writes, which needs no `protoc`,
//! without the methods for compression, interceptors and limits of sizes.
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

/// Generated client implementations.
pub mod greeter_client {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value
    )]
    use tonic::codegen::http::Uri;
    use tonic::codegen::*;
    /// Greets.
    #[derive(Debug, Clone)]
    pub struct GreeterClient<T> {
        inner: tonic::client::Grpc<T>,
    }
    impl<T> GreeterClient<T>
    where
        T: tonic::client::GrpcService<tonic::body::Body>,
        T::Error: Into<StdError>,
        T::ResponseBody: Body<Data = Bytes> + std::marker::Send + 'static,
        <T::ResponseBody as Body>::Error: Into<StdError> + std::marker::Send,
    {
        pub fn new(inner: T) -> Self {
            let inner = tonic::client::Grpc::new(inner);
            Self { inner }
        }
        pub fn with_origin(inner: T, origin: Uri) -> Self {
            let inner = tonic::client::Grpc::with_origin(inner, origin);
            Self { inner }
        }
        /// A greeting.
        pub async fn greet(
            &mut self,
            request: impl tonic::IntoRequest<super::GreetRequest>,
        ) -> std::result::Result<tonic::Response<super::GreetReply>, tonic::Status> {
            self.inner.ready().await.map_err(|e| {
                tonic::Status::unknown(format!("Service was not ready: {}", e.into()))
            })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static("/greeting.Greeter/Greet");
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("greeting.Greeter", "Greet"));
            self.inner.unary(req, path, codec).await
        }
        /// Numbers, from one on, with a pause before each.
        pub async fn count(
            &mut self,
            request: impl tonic::IntoRequest<super::CountRequest>,
        ) -> std::result::Result<
            tonic::Response<tonic::codec::Streaming<super::CountReply>>,
            tonic::Status,
        > {
            self.inner.ready().await.map_err(|e| {
                tonic::Status::unknown(format!("Service was not ready: {}", e.into()))
            })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static("/greeting.Greeter/Count");
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("greeting.Greeter", "Count"));
            self.inner.server_streaming(req, path, codec).await
        }
    }
}
/// Generated server implementations.
pub mod greeter_server {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value
    )]
    use tonic::codegen::*;
    /// Generated trait containing gRPC methods that should be implemented for use with GreeterServer.
    #[async_trait]
    pub trait Greeter: std::marker::Send + std::marker::Sync + 'static {
        /// A greeting.
        async fn greet(
            &self,
            request: tonic::Request<super::GreetRequest>,
        ) -> std::result::Result<tonic::Response<super::GreetReply>, tonic::Status>;
        /// Server streaming response type for the Count method.
        type CountStream: tonic::codegen::tokio_stream::Stream<
                Item = std::result::Result<super::CountReply, tonic::Status>,
            > + std::marker::Send
            + 'static;
        /// Numbers, from one on, with a pause before each.
        async fn count(
            &self,
            request: tonic::Request<super::CountRequest>,
        ) -> std::result::Result<tonic::Response<Self::CountStream>, tonic::Status>;
    }
    /// Greets.
    #[derive(Debug)]
    pub struct GreeterServer<T> {
        inner: Arc<T>,
    }
    impl<T> GreeterServer<T> {
        pub fn new(inner: T) -> Self {
            Self {
                inner: Arc::new(inner),
            }
        }
    }
    impl<T, B> tonic::codegen::Service<http::Request<B>> for GreeterServer<T>
    where
        T: Greeter,
        B: Body + std::marker::Send + 'static,
        B::Error: Into<StdError> + std::marker::Send + 'static,
    {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = BoxFuture<Self::Response, Self::Error>;
        fn poll_ready(
            &mut self,
            _cx: &mut Context<'_>,
        ) -> Poll<std::result::Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, req: http::Request<B>) -> Self::Future {
            match req.uri().path() {
                "/greeting.Greeter/Greet" => {
                    #[allow(non_camel_case_types)]
                    struct GreetSvc<T: Greeter>(pub Arc<T>);
                    impl<T: Greeter> tonic::server::UnaryService<super::GreetRequest> for GreetSvc<T> {
                        type Response = super::GreetReply;
                        type Future = BoxFuture<tonic::Response<Self::Response>, tonic::Status>;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::GreetRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move { <T as Greeter>::greet(&inner, request).await };
                            Box::pin(fut)
                        }
                    }
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = GreetSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec);
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/greeting.Greeter/Count" => {
                    #[allow(non_camel_case_types)]
                    struct CountSvc<T: Greeter>(pub Arc<T>);
                    impl<T: Greeter> tonic::server::ServerStreamingService<super::CountRequest> for CountSvc<T> {
                        type Response = super::CountReply;
                        type ResponseStream = T::CountStream;
                        type Future =
                            BoxFuture<tonic::Response<Self::ResponseStream>, tonic::Status>;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::CountRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move { <T as Greeter>::count(&inner, request).await };
                            Box::pin(fut)
                        }
                    }
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = CountSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec);
                        let res = grpc.server_streaming(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                _ => Box::pin(async move {
                    let mut response = http::Response::new(tonic::body::Body::default());
                    let headers = response.headers_mut();
                    headers.insert(
                        tonic::Status::GRPC_STATUS,
                        (tonic::Code::Unimplemented as i32).into(),
                    );
                    headers.insert(
                        http::header::CONTENT_TYPE,
                        tonic::metadata::GRPC_CONTENT_TYPE,
                    );
                    Ok(response)
                }),
            }
        }
    }
    impl<T> Clone for GreeterServer<T> {
        fn clone(&self) -> Self {
            Self {
                inner: self.inner.clone(),
            }
        }
    }
    /// Generated gRPC service name
    pub const SERVICE_NAME: &str = "greeting.Greeter";
    impl<T> tonic::server::NamedService for GreeterServer<T> {
        const NAME: &'static str = SERVICE_NAME;
    }
}
