//! A bare sink and source of Arrow Flight: what a node is measured against. DoPut decodes each batch and drops it, with an ack for each; DoGet
//! encodes prepared batches. The transport is set up as a node's is; there is no log, no check, no store, no memory bound.
//!
//! Lives on: a tokio runtime of its own with so many threads.
//! Owns: for each table, how much was put and the first batches of it, which are what is read.
mod calls;
mod tables;

use arrow_flight::flight_service_server::FlightServiceServer;
use calls::Calls;
use clap::Parser;
use futures::stream;
use std::sync::Arc;
use tables::{Codec, Tables};
use tokio::net::TcpListener;
use tonic::transport::Server;

/// As the node's listener has them (frontends/mink-flight/src/server.rs).
const CALLS_PER_CONNECTION_MAX: u32 = 128;
const CALL_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// A bare Arrow Flight server, for benches/flight alone.
#[derive(Debug, Parser)]
#[command(name = "bare-flight")]
struct Arguments {
    /// Where it listens
    #[arg(long, default_value = "127.0.0.1:9200")]
    listen: String,
    /// Threads of its runtime
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// How batches that are read are compressed, and those that are put are to be
    #[arg(long, value_enum, default_value_t = Codec::None)]
    compression: Codec,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(arguments.threads.into())
        .enable_all()
        .build()?;
    runtime.block_on(serve(arguments))
}

async fn serve(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(&arguments.listen).await?;
    eprintln!("bare-flight ready flight={}", listener.local_addr()?);
    let connections = stream::unfold(listener, |listener| async move {
        let accepted = listener.accept().await.and_then(|(socket, _)| {
            socket.set_nodelay(true)?;
            Ok(socket)
        });
        Some((accepted, listener))
    });
    let tables = Arc::new(Tables::new(arguments.compression));
    let calls = FlightServiceServer::new(Calls(tables))
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(usize::MAX);
    Server::builder()
        .max_concurrent_streams(CALLS_PER_CONNECTION_MAX)
        .initial_stream_window_size(CALL_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .add_service(calls)
        .serve_with_incoming(connections)
        .await?;
    Ok(())
}
