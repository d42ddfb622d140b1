//! The fake's listener, whose connections can be broken.
//!
//! Lives on: the test's runtime.
use super::calls::Calls;
use super::{Fake, Table};
use arrow_flight::flight_service_server::FlightServiceServer;
use futures::stream;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{DuplexStream, copy_bidirectional, duplex};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tonic::transport::Server;

/// Bytes that lie between a socket and the server.
const BETWEEN_BYTES: usize = 64 << 10;

pub(super) async fn listen(table: Table) -> Arc<Fake> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let fake = Arc::new(Fake {
        table: Mutex::new(table),
        acks: watch::Sender::new(true),
        cut: watch::Sender::new(0),
        grown: Notify::new(),
        closing: Notify::new(),
        closed: AtomicBool::new(false),
        address: listener.local_addr().expect("it is bound").to_string(),
    });
    let (sender, mut connections) = mpsc::channel::<io::Result<DuplexStream>>(16);
    tokio::spawn(accept(listener, Arc::clone(&fake), sender));
    let incoming = stream::poll_fn(move |context| connections.poll_recv(context));
    let service = FlightServiceServer::new(Calls(Arc::clone(&fake))).max_decoding_message_size(usize::MAX);
    tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
    fake
}

async fn accept(listener: TcpListener, fake: Arc<Fake>, connections: mpsc::Sender<io::Result<DuplexStream>>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = fake.closing.notified() => break,
        };
        let (Ok((mut socket, _)), (mut near, far)) = (accepted, duplex(BETWEEN_BYTES)) else { break };
        let mut cut = fake.cut.subscribe();
        if connections.send(Ok(far)).await.is_err() {
            break;
        }
        tokio::spawn(async move {
            tokio::select! {
                copied = copy_bidirectional(&mut socket, &mut near) => drop(copied),
                changed = cut.changed() => drop(changed),
            }
        });
    }
    drop(listener);
    fake.cut_connections();
    fake.closed.store(true, Ordering::Relaxed);
}
