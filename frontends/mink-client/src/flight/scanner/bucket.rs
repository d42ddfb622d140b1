//! One bucket's rows, over as many calls as it takes.
//!
//! Lives on: whoever polls the stream.
//! Owns: the call, and how far it has come.
//! Invariants: I2: a call that follows a broken one begins where that one's last rows ended; rows that lie before are an error, never given.
use super::Rows;
use super::decode::{Decoded, decode};
use super::follow::Calls;
use crate::flight::backoff::Backoff;
use crate::flight::client::Place;
use crate::flight::error::{Attempt, attempt};
use crate::flight::{FlightError, FlightErrorKind};
use arrow_flight::{FlightData, FlightDescriptor, Ticket};
use arrow_schema::SchemaRef;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use mink_proto::{BatchInfo, Command, Position, Scan, command, position, ticket};
use std::collections::VecDeque;
use tokio::time::Instant;
use tonic::{Status, Streaming};

/// A scan of one bucket.
pub(super) struct BucketScan {
    calls: Calls,
    /// What is left to read.
    scan: Scan,
    address: Option<String>,
    follow: bool,
    call: Option<Call>,
    /// Behind the last row that was looked at.
    next: Option<u64>,
    backoff: Backoff,
    /// Since when nothing has come.
    stuck: Option<Instant>,
    ended: bool,
}

/// The rows of one bucket after the other, `limit` of them; an error is the last item.
pub(super) fn in_turn(buckets: Vec<BucketScan>, limit: u64) -> BoxStream<'static, Result<Rows, FlightError>> {
    let next = |(mut buckets, left): (VecDeque<BucketScan>, u64)| async move {
        loop {
            let bucket = buckets.front_mut().filter(|_| left > 0)?;
            bucket.scan.limit = Some(left);
            match bucket.read().await {
                Ok(Some(rows)) => {
                    let left = left.saturating_sub(rows.batch.num_rows() as u64);
                    return Some((Ok(rows), (buckets, left)));
                }
                Ok(None) => drop(buckets.pop_front()),
                Err(error) => return Some((Err(error), (VecDeque::new(), 0))),
            }
        }
    };
    stream::unfold((VecDeque::from(buckets), limit), next).boxed()
}

struct Call {
    messages: Streaming<FlightData>,
    schema: Option<SchemaRef>,
}

impl BucketScan {
    pub(super) fn new(calls: Calls, place: Place, follow: bool) -> BucketScan {
        let Place { scan, address } = place;
        BucketScan {
            calls,
            scan,
            address,
            follow,
            call: None,
            next: None,
            backoff: Backoff::default(),
            stuck: None,
            ended: false,
        }
    }

    /// Its rows; an error is the last item.
    pub(super) fn rows(self) -> BoxStream<'static, Result<Rows, FlightError>> {
        stream::unfold(self, |mut scan| async move {
            if scan.ended {
                return None;
            }
            match scan.read().await {
                Ok(rows) => rows.map(|rows| (Ok(rows), scan)),
                Err(error) => {
                    scan.ended = true;
                    Some((Err(error), scan))
                }
            }
        })
        .boxed()
    }

    /// The next rows; none at the end.
    async fn read(&mut self) -> Result<Option<Rows>, FlightError> {
        loop {
            if self.scan.limit == Some(0) || self.is_at_end() {
                return Ok(None);
            }
            let mut call = match self.call.take() {
                Some(call) => call,
                None => match self.open().await {
                    Ok(call) => call,
                    Err(status) => {
                        self.wait_after(&status).await?;
                        continue;
                    }
                },
            };
            match call.messages.next().await {
                Some(Ok(data)) => {
                    let rows = self.take(&mut call, &data)?;
                    self.call = Some(call);
                    if rows.is_some() {
                        return Ok(rows);
                    }
                }
                Some(Err(status)) => self.wait_after(&status).await?,
                None if self.follow => {
                    self.wait_after(&Status::unavailable("the server has ended the stream")).await?;
                }
                None => return Ok(None),
            }
        }
    }

    fn is_at_end(&self) -> bool {
        matches!((self.next, self.scan.until), (Some(next), Some(until)) if next >= until)
    }

    fn open(&mut self) -> BoxFuture<'static, Result<Call, Status>> {
        if let Some(next) = self.next {
            self.scan.from = Some(Position { position: Some(position::Position::Offset(next)) });
        }
        let (mut rpc, scan, follow) =
            (self.calls.client.at(self.address.as_deref()), self.scan.clone(), self.follow);
        Box::pin(async move {
            let answer = if follow {
                let command = Command { command: Some(command::Command::Scan(scan)) };
                let descriptor = FlightDescriptor::new_cmd(mink_proto::encode(&command));
                let first = FlightData::default().with_descriptor(descriptor);
                // The end of what the client says would be the end of the call.
                rpc.do_exchange(stream::iter([first]).chain(stream::pending())).await
            } else {
                let ticket = mink_proto::Ticket { ticket: Some(ticket::Ticket::Scan(scan)) };
                rpc.do_get(Ticket::new(mink_proto::encode(&ticket))).await
            };
            answer.map(|answer| Call { messages: answer.into_inner(), schema: None })
        })
    }

    /// What a message holds, if it is rows.
    fn take(&mut self, call: &mut Call, data: &FlightData) -> Result<Option<Rows>, FlightError> {
        let decoded = decode(data, call.schema.as_ref())?;
        if let Decoded::Schema(schema) = decoded {
            call.schema = Some(schema);
            return Ok(None);
        }
        let batch = match decoded {
            Decoded::Rows(batch) => Some(batch),
            Decoded::Schema(_) | Decoded::Nothing if data.app_metadata.is_empty() => return Ok(None),
            Decoded::Schema(_) | Decoded::Nothing => None,
        };
        let info: BatchInfo = mink_proto::decode("BatchInfo", &data.app_metadata)?;
        let count = batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        self.check(&info, count)?;
        (self.next, self.stuck, self.backoff) = (Some(info.next_offset), None, Backoff::default());
        self.scan.limit = self.scan.limit.map(|limit| limit.saturating_sub(count));
        Ok(batch.map(|batch| Rows {
            batch,
            bucket: info.bucket,
            partition: info.partition,
            base_offset: info.base_offset,
            next_offset: info.next_offset,
            commit_time_ms: info.commit_time_ms,
        }))
    }

    /// Refuses rows that were given before, or lie elsewhere than the server says.
    fn check(&self, info: &BatchInfo, count: u64) -> Result<(), FlightError> {
        let elsewhere = self.scan.bucket.is_some_and(|bucket| bucket != info.bucket);
        let again = self.next.is_some_and(|next| info.base_offset < next);
        let too_many = info.next_offset.checked_sub(info.base_offset).is_none_or(|offsets| count > offsets);
        if elsewhere || again || too_many {
            return Err(FlightError::protocol(format_args!(
                "{count} rows from {} to {} of bucket {}, where bucket {:?} was read below {:?}",
                info.base_offset, info.next_offset, info.bucket, self.scan.bucket, self.next
            )));
        }
        Ok(())
    }

    /// Waits before the next call, and finds out who answers it; gives the error if that makes no sense.
    async fn wait_after(&mut self, status: &Status) -> Result<(), FlightError> {
        let error = FlightError::from_status(status);
        if self.calls.evolves && error.kind() == FlightErrorKind::Refused && self.evolve().await? {
            return Ok(());
        }
        // A conflict is with a schema that the node does not know yet.
        let may_succeed = error.is_retriable() || error.kind() == FlightErrorKind::Conflict;
        let since = *self.stuck.get_or_insert_with(Instant::now);
        if !may_succeed || since.elapsed() >= self.calls.patience {
            return Err(error);
        }
        tracing::debug!(%error, next = ?self.next, "a scan goes on");
        tokio::time::sleep(self.backoff.next()).await;
        let unreachable = attempt(status) == Attempt::NeverSent && self.address.is_some();
        self.address = match self.calls.client.places(&self.scan).await {
            Ok(places) if !unreachable => places.into_iter().next().and_then(|place| place.address),
            // Where the client is connected, they know more.
            Ok(_) | Err(_) => None,
        };
        Ok(())
    }

    /// Takes to the table's newest columns; false if the scan has them.
    async fn evolve(&mut self) -> Result<bool, FlightError> {
        let described =
            self.calls.client.describe(&format!("{}.{}", self.scan.database, self.scan.table)).await?;
        let is_same = self.scan.table_id == described.table_id;
        let is_newer = is_same && self.scan.schema.is_some_and(|schema| schema < described.schema);
        if is_newer {
            self.scan.schema = Some(described.schema);
        }
        Ok(is_newer)
    }
}
