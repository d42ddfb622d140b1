//! Reading the demo's flights back: by offset all of them, by time some places; compared byte for byte.
//!
//! Lives on: the command's task.
use super::feed::partition;
use super::flights::Flight;
use crate::failure::Failure;
use crate::numbers;
use mink_client::{Client, Position, ReadRecord, Reader};
use std::time::{Duration, Instant};

/// Moments at which each partition is asked for the first record at or after them.
const MOMENTS: usize = 5;
/// How long one read waits; nothing is expected to come late.
const WAIT: Duration = Duration::from_secs(5);

/// What was read back and found equal.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) records: u64,
    /// Places found by time.
    pub(super) times: usize,
    pub(super) took: Duration,
}

pub(super) async fn all(
    client: &Client,
    topic: &str,
    partitions: i32,
    flights: &[Flight],
) -> Result<Checked, Failure> {
    let begun = Instant::now();
    let mut checked = Checked { records: 0, times: 0, took: Duration::ZERO };
    for index in 0..partitions {
        let expected: Vec<&Flight> =
            flights.iter().filter(|flight| partition(flight, partitions) == index).collect();
        checked.records += by_offset(client, topic, index, &expected).await?;
        checked.times += by_time(client, topic, index, flights, &expected).await?;
    }
    checked.took = begun.elapsed();
    Ok(checked)
}

fn failed(error: &mink_client::ClientError) -> Failure {
    Failure::failed(format!("reading back: {error}"))
}

/// A difference is a fault of Mink, and worth a report.
fn differs(what: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("{what}. This is a fault of Mink: please report it with this output"))
}

async fn by_offset(client: &Client, topic: &str, index: i32, expected: &[&Flight]) -> Result<u64, Failure> {
    let end = client
        .offset(topic, index, Position::Latest)
        .await
        .map_err(|error| failed(&error))?
        .offset
        .unwrap_or(0);
    if usize::try_from(end) != Ok(expected.len()) {
        let (end, sent) = (numbers::count(end.unsigned_abs()), numbers::count(expected.len() as u64));
        return Err(differs(format!("partition {index} holds {end} records, {sent} were acked")));
    }
    let reader = Reader::new(client, topic, index);
    let (mut at, mut read) = (0, expected.iter());
    while at < end {
        let answer = reader.read(at, WAIT).await.map_err(|error| failed(&error))?;
        for (offset, record) in (at..).zip(&answer.records) {
            let flight =
                read.next().ok_or_else(|| differs(format!("partition {index} holds more than was sent")))?;
            if let Some(part) = difference(record, flight, offset) {
                return Err(differs(format!(
                    "partition {index}, offset {offset}: the {part} is not the one that was acked"
                )));
            }
        }
        if answer.next <= at {
            return Err(differs(format!(
                "partition {index} gives nothing from offset {at} on, but ends at {end}"
            )));
        }
        at = answer.next;
    }
    Ok(expected.len() as u64 - read.len() as u64)
}

/// The first part in which a record differs from its flight.
fn difference(record: &ReadRecord, flight: &Flight, offset: i64) -> Option<&'static str> {
    let headers = flight.headers();
    let same_headers = record.headers.len() == headers.len()
        && record.headers.iter().zip(&headers).all(|((name, value), header)| {
            name.as_ref() == header.key.as_bytes() && value.as_deref() == header.value
        });
    [
        ("offset", record.offset == offset),
        ("timestamp", record.timestamp == flight.timestamp),
        ("key", record.key.as_deref() == flight.key.as_deref().map(str::as_bytes)),
        ("value", record.value.as_deref() == Some(flight.value.as_bytes())),
        ("list of headers", same_headers),
    ]
    .into_iter()
    .find_map(|(part, same)| (!same).then_some(part))
}

async fn by_time(
    client: &Client,
    topic: &str,
    index: i32,
    flights: &[Flight],
    expected: &[&Flight],
) -> Result<usize, Failure> {
    let moments = flights.iter().step_by((flights.len() / MOMENTS).max(1)).map(|flight| flight.timestamp);
    let mut found = 0;
    for moment in moments {
        // Flights are in order of their time, so this is the first at or after the moment.
        let first = expected.partition_point(|flight| flight.timestamp < moment);
        let should_be = i64::try_from(first).ok().filter(|_| first < expected.len());
        let is = client
            .offset(topic, index, Position::AtOrAfter(moment))
            .await
            .map_err(|error| failed(&error))?
            .offset;
        if is != should_be {
            return Err(differs(format!(
                "partition {index} at time {moment}: offset {is:?} instead of {should_be:?}"
            )));
        }
        found += 1;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_record_is_compared() {
        let flight = Flight {
            key: None,
            value: "{}".into(),
            timestamp: 5,
            carrier: "UA".into(),
            origin: "EWR".into(),
            dest: "IAH".into(),
            distance: 1400,
            arr_delay: None,
        };
        let same = ReadRecord {
            offset: 7,
            timestamp: 5,
            key: None,
            value: Some("{}".into()),
            headers: vec![("carrier".into(), Some("UA".into())), ("origin".into(), Some("EWR".into()))],
        };
        assert_eq!(difference(&same, &flight, 7), None);
        assert_eq!(difference(&same, &flight, 8), Some("offset"));
        for (part, other) in [
            ("timestamp", ReadRecord { timestamp: 6, ..same.clone() }),
            ("key", ReadRecord { key: Some("".into()), ..same.clone() }),
            ("value", ReadRecord { value: Some("{} ".into()), ..same.clone() }),
            ("list of headers", ReadRecord { headers: vec![same.headers[0].clone()], ..same.clone() }),
        ] {
            assert_eq!(difference(&other, &flight, 7), Some(part));
        }
    }
}
