//! A log and an administration in memory, whose steps a test can hold back.
//!
//! Lives on: tests only.
mod admin;
mod groups;
mod running;
mod stored;

pub(super) use running::{Running, config, start, start_on, start_with};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use mink_api::{AdminError, Found, LogSource};
use mink_metadata::{
    Answer, BucketOpening, Command, CommandResult, FEATURE_LEVEL_MAX, Group, NewTable, Refusal, Registration,
    State,
};
use mink_record::RecordError;
use mink_record::kafka::{
    BatchHeader, Keyless, first_at_or_after, keyless, max_timestamp_record, set_append_time,
    set_offset_and_epoch,
};
use mink_router::{
    AppendError, AppendReply, AppendTicket, Appended, BatchBytes, BytePermit, BytePermits, DurableReply,
    EpochEnd, FirstSequence, Lost, Position, ProducerState, Read, ReadAnswer, ReadError, ReadsAnswer,
    WatchedOffset, append_reply,
};
use mink_types::schema::Schema;
use mink_types::{
    BucketEpoch, BucketId, BucketIndex, ClusterUuid, CommitTime, DatabaseName, Incarnation, Limits, NodeId,
    Offset, ProducerEpoch, ProducerId, RequestId, Sequence, SessionId, TableId, TableOptions, TablePath,
    TableUuid, Timestamp, TimestampType,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// What the fake does with what it is asked; each bucket begins as the default says.
#[derive(Clone, Debug, Default)]
pub(super) struct Behaviour {
    /// Appends find no room: they wait to be handed over.
    pub(super) no_room: bool,
    /// Appends are taken and not ordered.
    pub(super) hold_order: bool,
    /// Appends are refused.
    pub(super) refuse: Option<AppendError>,
    /// Appends are ordered and not made durable.
    pub(super) hold_durable: bool,
    /// Reads are refused.
    pub(super) refuse_reads: Option<ReadError>,
}

#[derive(Debug, Default)]
struct Log {
    batches: Vec<(BatchHeader, Bytes)>,
    start: u64,
    end: u64,
    high_watermark: u64,
    behaviour: Behaviour,
    unordered: Vec<(BatchHeader, Bytes, TimestampType, AppendReply)>,
    undurable: Vec<(DurableReply, Appended, u64)>,
}

impl Log {
    fn order(&mut self, header: BatchHeader, batch: &[u8], timestamps: TimestampType, reply: AppendReply) {
        if let Some(error) = self.behaviour.refuse.clone() {
            reply.refuse(error);
            return;
        }
        let base_offset = Offset(self.end);
        let mut stored = BytesMut::from(batch);
        set_offset_and_epoch(&mut stored, base_offset.kafka(), 1).expect("a batch");
        if timestamps == TimestampType::LogAppendTime {
            set_append_time(&mut stored, APPENDED_AT.0).expect("a batch");
        }
        self.end += u64::try_from(header.record_count).expect("checked");
        let header = BatchHeader::parse(&stored).expect("a batch");
        self.batches.push((header, stored.freeze()));
        let appended =
            Appended { base_offset, commit_time: APPENDED_AT, log_start: Offset(0), duplicate: false };
        self.undurable.push((reply.ordered(base_offset), appended, self.end));
    }

    fn settle(&mut self) {
        if !self.behaviour.hold_order {
            for (header, batch, timestamps, reply) in std::mem::take(&mut self.unordered) {
                self.order(header, &batch, timestamps, reply);
            }
        }
        if !self.behaviour.hold_durable {
            for (reply, appended, end) in self.undurable.drain(..) {
                self.high_watermark = end;
                reply.durable(appended);
            }
        }
    }
}

#[derive(Debug)]
struct Inner {
    state: State,
    counter: u64,
    logs: BTreeMap<BucketId, Log>,
    opens: bool,
}

/// The node.
#[derive(Debug)]
pub(super) struct Fake {
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
    producer_ids: AtomicU64,
    /// What batches may inflate to in sum.
    pub(super) inflating: BytePermits,
    /// Reads and watches so far, and watches that wait now.
    pub(super) reads: AtomicUsize,
    pub(super) watches: AtomicUsize,
    pub(super) watching: AtomicUsize,
    pub(super) panic_on_locate: AtomicUsize,
    /// Changes of tables so far.
    pub(super) alterations: AtomicUsize,
    /// What administration refuses everything with.
    pub(super) refuses: Mutex<Option<AdminError>>,
    pub(super) groups: groups::FakeGroups,
    address: Mutex<Option<SocketAddr>>,
}

/// When the fake appends whatever it is given.
pub(super) const APPENDED_AT: CommitTime = CommitTime(1_777_000_000_123);

const NODE: NodeId = NodeId(7);
const INCARNATION: Incarnation = Incarnation(1);

impl Fake {
    fn new() -> Fake {
        let fake = Fake {
            inner: Mutex::new(Inner {
                state: State::new(ClusterUuid([7; 16])),
                counter: 0,
                logs: BTreeMap::new(),
                opens: true,
            }),
            changed: watch::channel(0).0,
            producer_ids: AtomicU64::new(1 << 24),
            inflating: BytePermits::new(u64::from(Limits::default().inflated_bytes_max)),
            reads: AtomicUsize::new(0),
            watches: AtomicUsize::new(0),
            watching: AtomicUsize::new(0),
            panic_on_locate: AtomicUsize::new(0),
            alterations: AtomicUsize::new(0),
            refuses: Mutex::new(None),
            groups: groups::FakeGroups::default(),
            address: Mutex::new(None),
        };
        let registered = fake.submit(&Command::Register(Registration {
            node: NODE,
            tag: 1,
            storage: "memory://".into(),
            wal_storage: "memory://".into(),
            listeners: Vec::new(),
            version: "test".into(),
            feature_level_max: FEATURE_LEVEL_MAX,
        }));
        for level in 2..=FEATURE_LEVEL_MAX {
            let raised = fake.submit(&Command::RaiseFeatureLevel { level });
            assert!(matches!(raised, CommandResult::Done(_)), "{raised:?}");
        }
        assert_eq!(registered, CommandResult::Done(Answer::Registered(INCARNATION)));
        for name in ["kafka", "sales"] {
            let name = DatabaseName::new(name).expect("a name");
            let created = fake.submit(&Command::CreateDatabase { name });
            assert!(matches!(created, CommandResult::Done(_)));
        }
        fake
    }

    fn submit(&self, command: &Command) -> CommandResult {
        let mut inner = self.inner.lock().expect("not poisoned");
        inner.counter += 1;
        let request = RequestId { session: SessionId([1; 16]), counter: inner.counter };
        let mut group = Group::new();
        group.push(request, command).expect("fits");
        let row = group.row(inner.state.witness());
        let mut results = inner.state.apply(&row).expect("applies");
        results.pop().expect("one result").1
    }

    /// Creates a topic of the Kafka database with open buckets.
    pub(super) fn topic(&self, name: &str, buckets: u32) -> TableId {
        self.table(&format!("kafka.{name}"), TableOptions { buckets, ..TableOptions::default() })
            .expect("created")
    }

    pub(super) fn table(&self, path: &str, options: TableOptions) -> Result<TableId, AdminError> {
        self.typed_table(path, options, None)
    }

    pub(super) fn typed_table(
        &self,
        path: &str,
        options: TableOptions,
        schema: Option<Arc<Schema>>,
    ) -> Result<TableId, AdminError> {
        let path = TablePath::parse(path).expect("a path");
        let buckets = options.buckets;
        let what = path.to_string();
        let counter = self.inner.lock().expect("not poisoned").counter;
        let mut uuid = [9; 16];
        uuid[8..].copy_from_slice(&counter.to_be_bytes());
        let table = match self.submit(&Command::CreateTable(NewTable {
            path,
            uuid: TableUuid(uuid),
            options,
            schema,
            kafka_database: DatabaseName::new("kafka").expect("a name"),
            buckets_max: 1_000_000,
        })) {
            CommandResult::Done(Answer::TableCreated(table)) => table,
            CommandResult::Refused(Refusal::TableExists { .. }) => return Err(AdminError::Exists { what }),
            other => {
                return Err(AdminError::Invalid { why: format!("{other:?}") });
            }
        };
        if self.inner.lock().expect("not poisoned").opens {
            self.open(table, 0..buckets);
        }
        Ok(table)
    }

    /// The topic of the name.
    pub(super) fn table_named(&self, name: &str) -> TableId {
        let inner = self.inner.lock().expect("not poisoned");
        let database = DatabaseName::new("kafka").expect("a name");
        inner.state.topic(&database, name).expect("created").id
    }

    /// Makes an internal table, and gives its address and id.
    pub(super) fn internal_table(&self) -> (String, TableUuid) {
        let name = DatabaseName::internal();
        let path = format!("{name}.group_offsets");
        let created = self.submit(&Command::CreateDatabase { name });
        assert!(matches!(created, CommandResult::Done(_)), "{created:?}");
        let id = self.table(&path, TableOptions::default()).expect("created");
        let uuid = self.inner.lock().expect("not poisoned").state.table(id).expect("there").uuid;
        (path, uuid)
    }

    fn open(&self, table: TableId, buckets: std::ops::Range<u32>) {
        let buckets: Vec<BucketOpening> = buckets
            .map(|bucket| BucketOpening {
                bucket: BucketId::unpartitioned(table, BucketIndex(bucket)),
                epoch: BucketEpoch(0),
            })
            .collect();
        let opened = self.submit(&Command::Open { by: INCARNATION, buckets: buckets.clone(), from: None });
        assert!(matches!(opened, CommandResult::Done(_)), "{opened:?}");
        let mut inner = self.inner.lock().expect("not poisoned");
        inner.logs.extend(buckets.iter().map(|opening| (opening.bucket, Log::default())));
    }

    /// New tables are opened from now on, or not.
    pub(super) fn opens(&self, opens: bool) {
        self.inner.lock().expect("not poisoned").opens = opens;
    }

    /// Changes how a bucket behaves, and lets go of what is no longer held back.
    pub(super) fn behave(&self, table: TableId, bucket: u32, behaviour: Behaviour) {
        let mut inner = self.inner.lock().expect("not poisoned");
        let log = inner.logs.get_mut(&BucketId::unpartitioned(table, BucketIndex(bucket))).expect("open");
        log.behaviour = behaviour;
        log.settle();
        drop(inner);
        self.changed.send_modify(|n| *n += 1);
    }

    /// Drops the replies of what is ordered and not durable: as when the node is fenced.
    pub(super) fn lose(&self, table: TableId, bucket: u32) {
        let mut inner = self.inner.lock().expect("not poisoned");
        let log = inner.logs.get_mut(&BucketId::unpartitioned(table, BucketIndex(bucket))).expect("open");
        log.undurable.clear();
        log.unordered.clear();
    }

    /// Ordered end and appends that wait to be ordered.
    pub(super) fn end(&self, table: TableId, bucket: u32) -> (u64, usize) {
        let inner = self.inner.lock().expect("not poisoned");
        let log = &inner.logs[&BucketId::unpartitioned(table, BucketIndex(bucket))];
        (log.end, log.unordered.len())
    }

    /// Waits, at most ten seconds of the test's time, until `so` holds.
    pub(super) async fn until(&self, so: impl Fn(&Fake) -> bool) {
        self.until_within(10_000, so).await;
    }

    pub(super) async fn until_within(&self, milliseconds: u32, so: impl Fn(&Fake) -> bool) {
        for _ in 0..milliseconds {
            if so(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("did not come to pass");
    }

    fn room(&self, bucket: BucketId) -> bool {
        let inner = self.inner.lock().expect("not poisoned");
        inner.logs.get(&bucket).is_none_or(|log| !log.behaviour.no_room)
    }
}

#[async_trait]
impl LogSource for Fake {
    async fn keyless(
        &self,
        header: BatchHeader,
        batch: Bytes,
        most: usize,
    ) -> Result<Result<Keyless, RecordError>, Lost> {
        Ok(keyless(&header, batch, 1 << 20, most))
    }

    async fn inflating(&self, bytes: u64) -> BytePermit {
        self.inflating.take(bytes).await
    }

    async fn append(
        &self,
        bucket: BucketId,
        header: BatchHeader,
        batch: BatchBytes,
        timestamps: TimestampType,
        _first: FirstSequence,
        permit: BytePermit,
    ) -> Result<AppendTicket, Lost> {
        let mut changed = self.changed.subscribe();
        changed.wait_for(|_| self.room(bucket)).await.map_err(|_closed| Lost)?;
        let (reply, ticket) = append_reply(permit);
        let mut inner = self.inner.lock().expect("not poisoned");
        match inner.logs.get_mut(&bucket) {
            None => reply.refuse(AppendError::NotOwner { bucket }),
            Some(log) => {
                log.unordered.push((header, batch.into_shared(), timestamps, reply));
                log.settle();
            }
        }
        drop(inner);
        self.changed.send_modify(|n| *n += 1);
        Ok(ticket)
    }

    async fn read(&self, reads: Vec<Read>, bytes_max: u32) -> ReadsAnswer {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let inner = self.inner.lock().expect("not poisoned");
        let mut left = usize::try_from(bytes_max).expect("fits");
        let mut first = true;
        reads
            .into_iter()
            .map(|read| {
                let log = inner.logs.get(&read.bucket).ok_or(ReadError::NotOwner { bucket: read.bucket })?;
                if let Some(error) = log.behaviour.refuse_reads.clone() {
                    return Err(error);
                }
                if let Some(found) = read.leader_epoch.filter(|epoch| *epoch != 1) {
                    return Err(ReadError::EpochDiffers {
                        bucket: read.bucket,
                        current: BucketEpoch(1),
                        found,
                    });
                }
                if read.from.0 < log.start || read.from.0 > log.high_watermark {
                    return Err(ReadError::OutOfRange {
                        bucket: read.bucket,
                        offset: read.from,
                        start: Offset(log.start),
                        end: Offset(log.high_watermark),
                    });
                }
                let mut batches = Vec::new();
                let mut own = usize::try_from(read.bytes_max).expect("fits");
                for (header, batch) in &log.batches {
                    let last = u64::try_from(header.last_offset()).expect("not negative");
                    if last < read.from.0 || last >= log.high_watermark {
                        continue;
                    }
                    if batch.len() > left.min(own) && !first {
                        break;
                    }
                    first = false;
                    left = left.saturating_sub(batch.len());
                    own = own.saturating_sub(batch.len());
                    batches.push(batch.clone());
                }
                Ok(ReadAnswer {
                    batches,
                    high_watermark: Offset(log.high_watermark),
                    log_start: Offset(log.start),
                    epoch: BucketEpoch(1),
                })
            })
            .collect()
    }

    async fn watch(&self, offsets: Vec<WatchedOffset>) {
        struct Watching<'a>(&'a AtomicUsize);
        impl Drop for Watching<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.watches.fetch_add(1, Ordering::SeqCst);
        self.watching.fetch_add(1, Ordering::SeqCst);
        let _watching = Watching(&self.watching);
        let mut changed = self.changed.subscribe();
        let more = || {
            let inner = self.inner.lock().expect("not poisoned");
            offsets.iter().any(|watched| {
                inner.logs.get(&watched.bucket).is_none_or(|log| log.high_watermark > watched.seen.0)
            })
        };
        drop(changed.wait_for(|_| more()).await);
    }

    async fn locate(&self, bucket: BucketId, position: Position, _: Option<i32>) -> Result<Found, ReadError> {
        assert_eq!(self.panic_on_locate.load(Ordering::SeqCst), 0, "asked for");
        let inner = self.inner.lock().expect("not poisoned");
        let log = inner.logs.get(&bucket).ok_or(ReadError::Opening { bucket })?;
        let found = match position {
            Position::Earliest => (Some(Offset(log.start)), None),
            Position::Latest => (Some(Offset(log.high_watermark)), None),
            Position::AtOrAfter { time: Timestamp(target), .. } => {
                let found = log.batches.iter().find_map(|(header, batch)| {
                    first_at_or_after(header, batch.clone(), target, 1 << 20).expect("sound")
                });
                found.map_or((None, None), |found| {
                    (Offset::from_kafka(found.offset), Some(Timestamp(found.timestamp)))
                })
            }
            Position::MaxTimestamp => {
                let all = log.batches.iter().filter_map(|(header, batch)| {
                    max_timestamp_record(header, batch.clone(), 1 << 20).expect("sound")
                });
                all.max_by_key(|found| found.timestamp).map_or((None, None), |found| {
                    (Offset::from_kafka(found.offset), Some(Timestamp(found.timestamp)))
                })
            }
        };
        Ok(Found { offset: found.0, timestamp: found.1, epoch: BucketEpoch(1) })
    }

    /// Everything was written at epoch 1.
    async fn epoch_end(
        &self,
        bucket: BucketId,
        epoch: BucketEpoch,
        leader_epoch: Option<i32>,
    ) -> Result<Option<EpochEnd>, ReadError> {
        let inner = self.inner.lock().expect("not poisoned");
        let log = inner.logs.get(&bucket).ok_or(ReadError::Opening { bucket })?;
        let current = BucketEpoch(1);
        if let Some(found) = leader_epoch.filter(|found| *found != 1) {
            return Err(ReadError::EpochDiffers { bucket, current, found });
        }
        let end = if epoch == current { Offset(log.high_watermark) } else { Offset(0) };
        Ok((epoch <= current).then_some(EpochEnd { epoch, end }))
    }

    /// The producers of the batches that are durable.
    async fn producers(
        &self,
        bucket: BucketId,
        from: ProducerId,
        most: usize,
    ) -> Result<Vec<ProducerState>, ReadError> {
        let inner = self.inner.lock().expect("not poisoned");
        let log = inner.logs.get(&bucket).ok_or(ReadError::Opening { bucket })?;
        if let Some(error) = log.behaviour.refuse_reads.clone() {
            return Err(error);
        }
        let visible = |header: &&BatchHeader| Offset(log.high_watermark).kafka() > header.last_offset();
        let stamped = log.batches.iter().map(|(header, _)| header).filter(|header| header.is_idempotent());
        let states = stamped.filter(visible).map(|header| {
            let state = ProducerState {
                producer: ProducerId(header.producer_id),
                epoch: ProducerEpoch(header.producer_epoch),
                last_sequence: Sequence(header.base_sequence + header.last_offset_delta),
                last_commit_time: CommitTime(0),
            };
            (state.producer, state)
        });
        let by_id: BTreeMap<_, _> = states.collect();
        Ok(by_id.range(from..).map(|(_, state)| *state).take(most).collect())
    }
}
