//! A server before the fake, on a port of its own.
//!
//! Lives on: tests only.
use super::Fake;
use crate::{AnswerPermits, FramePermits, KafkaConfig, KafkaCounters, KafkaServer};
use mink_rt::{EpollRuntime, Runtime};
use mink_types::{DatabaseName, Limits};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A server that runs.
#[derive(Debug)]
pub(in crate::tests) struct Running {
    pub(in crate::tests) fake: Arc<Fake>,
    pub(in crate::tests) address: SocketAddr,
    pub(in crate::tests) counters: KafkaCounters,
    stop: Option<oneshot::Sender<()>>,
    pub(in crate::tests) server: tokio::task::JoinHandle<()>,
}

pub(in crate::tests) fn config() -> KafkaConfig {
    KafkaConfig {
        limits: Limits::default(),
        kafka_database: DatabaseName::new("kafka").expect("a name"),
        auto_create: true,
        default_partitions: 2,
        request_permits: FramePermits::ordinary(256 << 20),
        large_request_permits: FramePermits::large(256 << 20, 100 << 20),
        answer_permits: AnswerPermits::new(256 << 20),
        drain_timeout: Duration::from_secs(30),
    }
}

/// Starts a server on a port of its own.
pub(in crate::tests) async fn start_with(config: KafkaConfig) -> Running {
    start_on(TcpListener::bind("127.0.0.1:0").await.expect("a port"), config)
}

/// Starts a server on a listener.
pub(in crate::tests) fn start_on(listener: TcpListener, config: KafkaConfig) -> Running {
    let fake = Arc::new(Fake::new());
    let address = listener.local_addr().expect("bound");
    *fake.address.lock().expect("not poisoned") = Some(address);
    let service = EpollRuntime::attach().expect("within a runtime").service();
    let (source, admin, groups) =
        (Arc::<Fake>::clone(&fake), Arc::<Fake>::clone(&fake), Arc::<Fake>::clone(&fake));
    let server = KafkaServer::new(listener, config, source, admin, groups, service);
    let counters = server.counters();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(server.run(async move { drop(stopped.await) }));
    Running { fake, address, counters, stop: Some(stop), server }
}

pub(in crate::tests) async fn start() -> Running {
    start_with(config()).await
}

impl Running {
    pub(in crate::tests) fn stop(&mut self) {
        drop(self.stop.take());
    }
}
