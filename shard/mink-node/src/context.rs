//! What every task of a node is given: handles, and who the node is. No state of its own.
//!
//! Lives on: the service runtime.
use crate::config::NodeConfig;
use crate::error::NodeEnd;
use crate::garbage::GarbageCounters;
use crate::groups::Ask;
use crate::lease::{Lease, LeaseTimes};
use crate::opened::Opened;
use crate::retention::RetentionCounters;
use crate::running::Running;
use crate::stall::Stall;
use crate::takeover::Taker;
use futures::channel::mpsc;
use mink_api::Broker;
use mink_metadata::State;
use mink_object::ObjectStore;
use mink_router::{BytePermits, Sender, ShardIndex, shard_of};
use mink_rt::{Service, mutant};
use mink_shard::{Control, ShardHandle};
use mink_sql::Metadata;
use mink_types::{BucketId, ClusterUuid, Incarnation, TableUuid, WalChain};
use s3stream::{Compactor, Reader, Wal};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Reasons to end that may wait to be heard; the first one is what counts.
const ENDS_MAX: usize = 16;
/// The listener whose addresses Kafka clients are told.
const KAFKA: &str = "kafka";

/// The handles of a node, shared by its tasks.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: NodeConfig,
    pub(crate) service: Service,
    pub(crate) uuid: ClusterUuid,
    pub(crate) chain: WalChain,
    pub(crate) metadata: Metadata,
    pub(crate) wal: Wal,
    pub(crate) reader: Reader,
    pub(crate) shards: Vec<ShardHandle>,
    pub(crate) lease: Lease,
    pub(crate) opened: Opened,
    /// Whether writes become durable.
    pub(crate) stall: Stall,
    /// Plans that are being carried out: reads, recoveries, compactions.
    pub(crate) running: Running,
    /// None if compaction is off.
    pub(crate) compactor: Option<Arc<Compactor>>,
    pub(crate) retention: RetentionCounters,
    pub(crate) garbage: GarbageCounters,
    /// Set once when the node begins to drain: it opens nothing and creates nothing any more.
    pub(crate) draining: AtomicBool,
    /// Bytes that searches by time may inflate to, over all clients: they wait for one another (K-29, I20).
    pub(crate) inflating: BytePermits,
    /// Batches whose records would have gone beyond what one may inflate to.
    pub(crate) inflated_refused: AtomicU64,
    /// What was found lost or damaged when chains were taken over.
    pub(crate) lost: Mutex<Vec<String>>,
    pub(crate) ends: mpsc::Sender<NodeEnd>,
    /// The way to the task that coordinates consumer groups.
    pub(crate) groups: Sender<Ask>,
}

/// The way by which a node is told that it must end.
pub(crate) fn ends() -> (mpsc::Sender<NodeEnd>, mpsc::Receiver<NodeEnd>) {
    mpsc::channel(ENDS_MAX)
}

impl Context {
    pub(crate) fn me(&self) -> Incarnation {
        self.chain.incarnation
    }

    pub(crate) fn state(&self) -> State {
        self.metadata.view()
    }

    /// Whether the read lease holds: what is read now is what every other would read.
    pub(crate) fn lease_holds(&self) -> bool {
        self.lease.holds(self.service.now()) || mutant("lease-ignored")
    }

    /// The nodes that Kafka clients can be sent to, by node id.
    pub(crate) fn brokers(&self) -> Vec<Broker> {
        let state = self.state();
        let mut brokers: Vec<Broker> = state
            .live()
            .filter_map(|(_, life)| {
                let kafka = life.listener(KAFKA)?;
                Some(Broker { node: life.node(), host: kafka.host.clone(), port: kafka.port })
            })
            .collect();
        // Two lives of one node can be unfenced for a moment: the younger one counts.
        brokers.reverse();
        brokers.sort_by_key(|broker| broker.node);
        brokers.dedup_by_key(|broker| broker.node);
        brokers
    }

    /// A topic id. Random ones do not meet; the log refuses one that does.
    pub(crate) fn draw_uuid(&self) -> TableUuid {
        let mut bytes = [0; 16];
        let (high, low) = bytes.split_at_mut(8);
        high.copy_from_slice(&self.service.random_u64().to_be_bytes());
        low.copy_from_slice(&(self.service.random_u64() | 1).to_be_bytes());
        TableUuid(bytes)
    }

    pub(crate) fn lease_times(&self) -> LeaseTimes {
        LeaseTimes { ttl: self.config.lease_ttl }
    }

    pub(crate) fn shard(&self, bucket: BucketId) -> Option<&ShardHandle> {
        let ShardIndex(index) = shard_of(bucket, self.shards.len());
        self.shards.get(index)
    }

    /// Sends to every shard; one that is gone has told why it ended.
    pub(crate) async fn tell_shards(&self, control: impl Fn() -> Control) {
        for shard in &self.shards {
            drop(shard.controls.send(control()).await);
        }
    }

    /// The store in which the WAL of an incarnation lies. One that kept it beside its stream objects kept it in the cluster's
    /// store, whatever that was called then: the store's identity was compared at start.
    pub(crate) fn wal_store_of(
        &self,
        state: &State,
        incarnation: Incarnation,
    ) -> Result<Arc<dyn ObjectStore>, String> {
        let registered = state.incarnation(incarnation).ok_or("it is not registered")?;
        if registered.wal_storage == registered.storage {
            Ok(Arc::clone(&self.config.stores.stream))
        } else if registered.wal_storage == self.config.stores.wal.address() {
            Ok(Arc::clone(&self.config.stores.wal))
        } else {
            (self.config.stores.open)(&registered.wal_storage)
        }
    }

    /// Takes chains over in this node's name.
    pub(crate) fn taker(&self) -> Taker<'_> {
        Taker {
            config: &self.config,
            service: &self.service,
            metadata: &self.metadata,
            uuid: self.uuid,
            me: self.chain,
            reader: &self.reader,
        }
    }

    /// Notes what of a chain is lost, each piece once: a chain may be walked more than once.
    pub(crate) fn note_lost(&self, words: Vec<String>) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let known: BTreeSet<String> = lost.iter().cloned().collect();
        lost.extend(words.into_iter().filter(|word| !known.contains(word)));
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Asks the node to end. Only the first reason counts, so one that finds no room changes nothing.
    pub(crate) fn end(&self, end: NodeEnd) {
        drop(self.ends.clone().try_send(end));
    }
}
