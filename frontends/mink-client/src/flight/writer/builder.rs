//! A writer that is being set up: what it is asked for, who it is, and what it has stored before.
//!
//! Lives on: any tokio runtime.
//! Invariants: I6: a writer that is resumed goes on with the sequences that the server tells; what it cannot tell apart is refused.
use super::encode::Encoding;
use super::lane::Pace;
use super::link::Link;
use super::route::{Named, Partition, Route, partition_of};
use super::{
    BUCKETS_MAX, IN_FLIGHT_IDEMPOTENT_MAX, IN_FLIGHT_MAX, Known, Setup, UNACKED_BYTES_MAX, Writer, WriterId,
};
use crate::flight::client::table_path;
use crate::flight::{FlightClient, FlightError};
use mink_ddl::Statement;
use mink_proto::{Append, FindWriter, OpenWriter, PartitionValue, TableDescription, WriterState};
use mink_types::{ArrowCompression, Sequence, TablePath};
use std::collections::BTreeMap;
use std::time::Duration;

/// A message's part that is not rows, and what the server adds, in bytes and as a part of the whole.
const ENVELOPE_BYTES: usize = 4 << 10;
const ENVELOPE_PART: usize = 8;
/// Where SHOW PARTITIONS has a partition's number.
const PARTITION: &str = "partition";

#[derive(Clone, Copy, Debug)]
enum Identity {
    None,
    New,
    /// `replays`: all that it has stored is written again, and passed over.
    Resumed {
        id: WriterId,
        replays: bool,
    },
}

/// A writer that is being set up. What is not said: the bucket and partition of each row as its values say, else any, not idempotent, a linger of 5 ms, batches of 1 MiB, 5 of them on their way,
/// 64 MiB that are not acked, two minutes for a delivery.
///
/// ```no_run
/// use std::time::Duration;
/// # async fn example(client: mink_client::flight::FlightClient) -> Result<(), mink_client::flight::FlightError> {
/// let writer = client.writer("sales.orders").bucket(2).idempotent().linger(Duration::from_millis(20)).open().await?;
/// println!("resume me as {:?}", writer.id());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct WriterBuilder {
    client: FlightClient,
    table: String,
    bucket: Option<u32>,
    partition: Vec<PartitionValue>,
    identity: Identity,
    pace: Pace,
    in_flight: usize,
    unacked_bytes: usize,
}

impl WriterBuilder {
    pub(in crate::flight) fn new(client: FlightClient, table: &str) -> WriterBuilder {
        WriterBuilder {
            client,
            table: table.into(),
            bucket: None,
            partition: Vec::new(),
            identity: Identity::None,
            pace: Pace {
                linger: Duration::from_millis(5),
                batch_bytes: 1 << 20,
                delivery_timeout: Duration::from_mins(2),
            },
            in_flight: IN_FLIGHT_IDEMPOTENT_MAX,
            unacked_bytes: 64 << 20,
        }
    }

    /// All rows go to this bucket. Without it each goes where the table's bucket key says; where there is none, a writer fills the table's
    /// buckets in turn, a batch each.
    pub fn bucket(mut self, bucket: u32) -> WriterBuilder {
        self.bucket = Some(bucket);
        self
    }

    /// All rows go to the partition with this value of this column, which is there already; one call for each column that the table is
    /// partitioned by. Without it each goes to the partition that its values say, which is made with its first row.
    pub fn partition(mut self, column: &str, value: &str) -> WriterBuilder {
        self.partition.push(PartitionValue { column: column.into(), value: value.into() });
        self
    }

    /// Each batch is stored once, whatever is sent again. Without it a batch whose ack is lost is sent again all the same, and may be
    /// stored twice.
    pub fn idempotent(mut self) -> WriterBuilder {
        self.identity = Identity::New;
        self
    }

    /// As `idempotent`, going on behind the last row that this writer has stored. The writer that had the id before must be gone: of two at
    /// once, each has its batches taken for repeats of the other's.
    pub fn resume(mut self, id: WriterId) -> WriterBuilder {
        self.identity = Identity::Resumed { id, replays: false };
        self
    }

    /// As `resume`, for a source that is read again from its start, in the same order: the rows that this writer has stored are passed over,
    /// in each bucket as many as it has there. For tables whose rows say where they go, and for writers whose bucket is named.
    pub fn replay(mut self, id: WriterId) -> WriterBuilder {
        self.identity = Identity::Resumed { id, replays: true };
        self
    }

    /// How long rows may wait for others to travel with them.
    pub fn linger(mut self, linger: Duration) -> WriterBuilder {
        self.pace.linger = linger;
        self
    }

    /// From how many bytes on rows travel at once.
    pub fn batch_bytes(mut self, bytes: usize) -> WriterBuilder {
        self.pace.batch_bytes = bytes;
        self
    }

    /// How many batches may be on their way to a bucket at once: 1 to 64, of an idempotent writer 1 to 5.
    pub fn in_flight(mut self, batches: usize) -> WriterBuilder {
        self.in_flight = batches;
        self
    }

    /// How many bytes of rows may wait for their acks; `write` waits for room. Rows that are more by themselves go alone.
    pub fn unacked_bytes(mut self, bytes: usize) -> WriterBuilder {
        self.unacked_bytes = bytes;
        self
    }

    /// How long rows are sent again before they are given up: as `Unknown` if they were sent, else as `Refused`.
    pub fn delivery_timeout(mut self, timeout: Duration) -> WriterBuilder {
        self.pace.delivery_timeout = timeout;
        self
    }

    /// Opens the writer.
    ///
    /// # Errors
    /// `NotFound` for a table that does not exist; `Refused` for what cannot be had; those of the connection.
    pub async fn open(self) -> Result<Writer, FlightError> {
        let path = table_path(&self.table)?;
        self.check()?;
        let description = self.client.describe(&self.table).await?;
        let named = Named { partition: !self.partition.is_empty(), bucket: self.bucket.is_some() };
        let route = Route::of(&description, named)?;
        let (identity, known) = self.identify(&path, &description).await?;
        let buckets = self.buckets(&description, route.as_ref(), identity.map(|writer| writer.id));
        let replays = matches!(self.identity, Identity::Resumed { replays: true, .. });
        if replays && buckets.len() > 1 {
            return Err(FlightError::refused(format!(
                "the rows of table {path} may go to any of its buckets, so those that are stored cannot be told apart; name the bucket to replay"
            )));
        }
        let append = Append {
            database: path.database.to_string(),
            table: path.table.to_string(),
            bucket: None,
            partition: self.partition.clone(),
            writer: identity,
            table_id: description.table_id,
            partition_id: 0,
        };
        let setup = Setup {
            link: Link::new(self.client.clone(), append, self.in_flight),
            path,
            pace: self.pace,
            encoding: encoding(&description),
            known,
            replays,
        };
        let room = self.unacked_bytes.clamp(1, UNACKED_BYTES_MAX);
        let id = identity.map(|writer| WriterId(writer.id));
        Ok(Writer::new(id, setup, room, route, buckets))
    }

    fn check(&self) -> Result<(), FlightError> {
        let most = match self.identity {
            Identity::None => IN_FLIGHT_MAX,
            Identity::New | Identity::Resumed { .. } => IN_FLIGHT_IDEMPOTENT_MAX,
        };
        if !(1..=most).contains(&self.in_flight) {
            let asked = self.in_flight;
            return Err(FlightError::refused(format!(
                "in_flight is {asked}; such a writer takes 1 to {most}"
            )));
        }
        Ok(())
    }

    /// The buckets of rows that do not say theirs, to be written to in turn.
    fn buckets(&self, table: &TableDescription, route: Option<&Route>, id: Option<i64>) -> Vec<Option<u32>> {
        if self.bucket.is_some() || route.is_some_and(Route::chooses_buckets) || table.buckets == 0 {
            return vec![self.bucket];
        }
        // Writers of a wide table begin at different places.
        let seed = id.and_then(|id| u64::try_from(id).ok()).unwrap_or_else(random);
        let first = u32::try_from(seed % u64::from(table.buckets)).unwrap_or(0);
        (0..table.buckets.min(BUCKETS_MAX))
            .map(|at| u32::try_from((u64::from(first) + u64::from(at)) % u64::from(table.buckets)).ok())
            .collect()
    }

    /// Who it is, and what is stored under that name.
    async fn identify(
        &self,
        path: &TablePath,
        table: &TableDescription,
    ) -> Result<(Option<mink_proto::Writer>, Known), FlightError> {
        let id = match self.identity {
            Identity::None => return Ok((None, Known::default())),
            Identity::New => {
                let opened = self.client.action("writer.open", mink_proto::encode(&OpenWriter {})).await?;
                let first = opened.first().ok_or_else(|| FlightError::protocol("no writer in it"))?;
                return Ok((Some(mink_proto::decode("Writer", first)?), Known::default()));
            }
            Identity::Resumed { id, .. } => id.0,
        };
        let mut known = Known::default();
        if !table.partitioned_by.is_empty() {
            known.partitions = self.partitions(path, table).await?;
            // One that nobody has made yet holds nothing.
            let named = partition_of(table, &self.partition)?;
            known.only = named.and_then(|named| known.partitions.get(&named).copied());
        }
        let (database, name) = (path.database.to_string(), path.table.to_string());
        let asked = FindWriter { database, table: name, id };
        let mut epoch = 0;
        for state in self.client.action("writer.state", mink_proto::encode(&asked)).await? {
            let state: WriterState = mink_proto::decode("WriterState", &state)?;
            if state.last_sequence < 0 || state.epoch < 0 {
                return Err(FlightError::protocol("a writer's state below 0"));
            }
            epoch = epoch.max(state.epoch);
            let next = Sequence(state.last_sequence).plus(1);
            known.stored.insert((state.partition, state.bucket), next);
        }
        Ok((Some(mink_proto::Writer { id, epoch }), known))
    }

    /// The table's partitions, and the numbers that the server knows them by.
    async fn partitions(
        &self,
        path: &TablePath,
        table: &TableDescription,
    ) -> Result<BTreeMap<Partition, u64>, FlightError> {
        if table.partitioned_by.iter().any(|column| column == PARTITION) {
            return Err(FlightError::refused(format!(
                "table {path} is partitioned by a column called {PARTITION}: a writer of it cannot be resumed, for the list of partitions has their numbers under that name"
            )));
        }
        let mut partitions = BTreeMap::new();
        for row in self.client.sql(&Statement::ShowPartitions { path: path.clone() }.to_string()).await? {
            let text = |column: &String| Some((column.clone(), row.get(column)?.as_str()?.to_owned()));
            let values: Option<Partition> = table.partitioned_by.iter().map(text).collect();
            let id = row.get(PARTITION).and_then(serde_json::Value::as_u64);
            let (values, id) =
                values.zip(id).ok_or_else(|| FlightError::protocol("a partition without its values"))?;
            partitions.insert(values, id);
        }
        Ok(partitions)
    }
}

/// How the table wants its batches.
fn encoding(table: &TableDescription) -> Encoding {
    let option = |name: &str| {
        table.options.iter().find(|option| option.name == name).map(|option| option.value.as_str())
    };
    let compression = match option("table.log.arrow.compression") {
        Some("zstd") => ArrowCompression::Zstd,
        Some("lz4") => ArrowCompression::Lz4,
        _ => ArrowCompression::None,
    };
    let most: usize = option("max.message.bytes").and_then(|bytes| bytes.parse().ok()).unwrap_or(1 << 20);
    let message_bytes_max = most.saturating_sub(most / ENVELOPE_PART + ENVELOPE_BYTES).max(1);
    Encoding { compression, message_bytes_max }
}

fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}
