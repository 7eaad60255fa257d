//! The examples, each as a process, and what the recipes of the book do.

mod servers;
mod tls;

#[cfg(feature = "http3")]
mod axum_server;
mod broker;
mod files;
mod grpc_server;
mod hot_restart;
mod http_servers;
mod moving_connections;
mod recipes;
mod reliable_udp;
#[cfg(feature = "simulation")]
mod simulated_http;
mod small;
mod tcp_servers;
mod tick_store;
mod transcripts;
mod websocket;
