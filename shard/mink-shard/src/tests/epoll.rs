//! Two shards on real threads with the real WAL: nothing is lost between the cores and the service runtime.
use super::rig::*;
use crate::*;
use async_trait::async_trait;
use futures::FutureExt as _;
use mink_log::Recovered;
use mink_object::MemoryStore;
use mink_record::kafka::BatchHeader;
use mink_router::{Append, BytePermits, FirstSequence, ShardIndex, append_reply, reply, shard_of};
use mink_rt::{CoresConfig, EpollRuntime, Runtime, ServiceConfig};
use mink_types::*;
use s3stream::{CommitEnd, Commits, CommitsStopped, StreamCommit, StreamRewrite, Wal, WalConfig, WalParts};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SHARDS: usize = 2;
const BUCKETS: u32 = 8;
const BATCHES: u64 = 300;

/// Says yes to every commit: no flush is due in this test.
struct Applied;

#[async_trait]
impl Commits for Applied {
    async fn commit(&self, _: StreamCommit) -> Result<CommitEnd, CommitsStopped> {
        Ok(CommitEnd::Applied)
    }

    async fn rewrite(&self, rewrite: StreamRewrite) -> Result<CommitEnd, CommitsStopped> {
        panic!("nothing is compacted: {rewrite:?}")
    }
}

#[derive(Debug)]
struct NoObjects;

impl ObjectReads for NoObjects {
    fn read(
        &self,
        _: LogIndex,
        read: s3stream::ReadRequest,
    ) -> futures::future::BoxFuture<'static, Result<Vec<bytes::Bytes>, ObjectReadError>> {
        async move { panic!("nothing is flushed: {read:?}") }.boxed()
    }

    fn find(
        &self,
        _: LogIndex,
        find: ObjectFind,
    ) -> futures::future::BoxFuture<'static, Result<Option<bytes::Bytes>, ObjectReadError>> {
        async move { panic!("nothing is flushed: {find:?}") }.boxed()
    }
}

fn wal(runtime: &dyn Runtime) -> Wal {
    let store = Arc::new(MemoryStore::new());
    Wal::start(WalParts {
        service: runtime.service(),
        wal_store: Arc::<MemoryStore>::clone(&store),
        stream_store: store,
        cluster: ClusterName::new("mink").expect("valid"),
        uuid: ClusterUuid([7; 16]),
        chain: WalChain { node: NodeId(1), incarnation: Incarnation(1), tag: 1 },
        config: WalConfig { puts_per_second: None, ..WalConfig::default() },
        commits: Arc::new(Applied),
        fold: Arc::new(LogFold { limits: (&Limits::default()).into() }),
        witness: Arc::new(Witness::default),
    })
    .expect("a sound configuration")
}

/// Appends to one bucket, many in flight, and expects dense acks.
async fn produce(handle: ShardHandle, bucket: BucketId, permits: BytePermits) {
    let mut tickets = Vec::new();
    for _ in 0..BATCHES {
        let batch = batch(2);
        let header = BatchHeader::parse(&batch).expect("sound");
        let (reply, ticket) = append_reply(permits.take(batch.len() as u64).await);
        let timestamps = TimestampType::CreateTime;
        assert!(
            handle
                .appends
                .send(Append {
                    bucket,
                    header,
                    batch: batch.into(),
                    timestamps,
                    first: FirstSequence::Any,
                    reply
                })
                .await
                .is_ok()
        );
        tickets.push(ticket);
    }
    for (n, mut ticket) in (0_u64..).zip(tickets) {
        let ordered = ticket.ordered().await.expect("answered").expect("ordered");
        assert_eq!(ordered.base_offset, Offset(2 * n));
        assert_eq!(ticket.durable().await.expect("durable").base_offset, Offset(2 * n));
    }
}

#[test]
fn appends_over_real_cores_are_all_acked_densely() {
    let runtime = EpollRuntime::start(ServiceConfig::default()).expect("a runtime");
    let wal = wal(&*runtime);
    let mut handles = Vec::new();
    let mut inboxes = Vec::new();
    for index in 0..SHARDS {
        let config = ShardConfig::new(ShardIndex(index), SHARDS, &Limits::default(), 64 << 20);
        let (handle, inbox) = shard(config);
        let parts = ShardParts {
            sink: Box::new(wal.sender()),
            objects: Arc::new(NoObjects),
            service: runtime.service(),
        };
        handles.push(handle);
        inboxes.push(Some((inbox, parts)));
    }
    let inboxes = Arc::new(Mutex::new(inboxes));
    let main: mink_rt::CoreMain = Arc::new(move |core| {
        let (inbox, parts) = inboxes.lock().expect("no panic")[core.index()].take().expect("once");
        async move {
            run(core, inbox, parts).await;
        }
        .boxed_local()
    });
    let count = NonZeroUsize::new(SHARDS).expect("not zero");
    let cores = CoresConfig { count, pin: vec![], name: "shard", on_fatal: None };
    let cores = runtime.start_cores(cores, main).expect("started");
    let permits = BytePermits::new(64 << 20);
    let service = runtime.service();
    let test = async {
        let mut producers = Vec::new();
        for index in 0..BUCKETS {
            let bucket = BucketId::unpartitioned(TableId(1), BucketIndex(index));
            let handle = handles[shard_of(bucket, SHARDS).0].clone();
            let (reply, opened) = reply();
            let open = OpenBucket {
                bucket,
                recovered: Recovered { epoch: BucketEpoch(1), ..Recovered::default() },
                options: BucketOptions { batch_bytes_max: 1 << 20 },
                reply,
            };
            handle.controls.send(Control::Open(Box::new(open))).await.expect("the shard runs");
            opened.answer().await.expect("answered").expect("opened");
            producers.push(produce(handle, bucket, permits.clone()));
        }
        futures::future::join_all(producers).await;
    };
    let done = runtime.block_on(service.timeout(Duration::from_mins(1), test));
    assert!(done.is_ok(), "a wake was lost");
    cores.stop();
    runtime.block_on(cores.join()).expect("no panic");
}
