//! The examples, each as a process, and what the recipes of the book do.

mod servers;
mod tls;

mod axum_server;
mod balanced_server;
mod broker;
mod chat;
mod files;
mod grpc_server;
mod hot_restart;
mod http2_server;
mod http_server;
#[cfg(feature = "metrics")]
mod metrics;
mod moving_connections;
mod pipeline;
mod proxy;
mod recipes;
mod reliable_udp;
mod shards_kv;
#[cfg(feature = "simulation")]
mod simulated_broker;
#[cfg(feature = "simulation")]
mod simulated_http;
#[cfg(feature = "simulation")]
mod simulated_log;
mod small;
mod tick_store;
mod websocket;
