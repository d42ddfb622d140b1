//! Lines become records of Kafka's.
//!
//! Lives on: the command's task; lines are read on the blocking pool.
//! Invariants: what is read and not yet acked is bounded by the producer's buffer; it reports success only when every record was acked.
use super::input::is_stdin;
use crate::address::{Kafka, NodeAddress, topic};
use crate::failure::Failure;
use crate::form::{self, Encoding, NewRecord};
use crate::numbers;
use indicatif::ProgressBar;
use mink_client::{
    Client, ClientError, Codec, ErrorCode, HeaderRef, Producer, ProducerConfig, Record, partition_of_key,
};
use mink_types::TablePath;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, BufReader};

/// Longest line, in bytes: what a record may have, with room for its JSON.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// How long a table that is not there is looked for. A node that makes tables on first use has made it when it answers.
const LOOKUP_PATIENCE: Duration = Duration::from_millis(300);

/// What is written, and where to.
#[derive(Debug)]
pub(super) struct RecordsArgs {
    pub(super) table: TablePath,
    pub(super) file: PathBuf,
    pub(super) line: LineForm,
    pub(super) encoding: Encoding,
    pub(super) partition: Option<i32>,
    pub(super) codec: Codec,
    pub(super) node: NodeAddress,
}

/// What a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LineForm {
    /// One record as a JSON object.
    Json,
    /// The value alone.
    Value,
}

/// The way to the topic, opened with the first record: input without any makes no topic.
struct Output<'a> {
    args: &'a RecordsArgs,
    open: Option<(Producer, i32)>,
    /// Records handed to the producer.
    records: u64,
}

impl Output<'_> {
    /// The producer and the number of partitions.
    async fn open(&mut self) -> Result<(&Producer, i32), Failure> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.start().await?,
        };
        let (producer, partitions) = self.open.insert(open);
        Ok((producer, *partitions))
    }

    async fn start(&self) -> Result<(Producer, i32), Failure> {
        let RecordsArgs { table, codec, node, .. } = self.args;
        let Kafka { client, address } = node.kafka().await?;
        look_up(table, &address).await?;
        let config = ProducerConfig { codec: *codec, ..ProducerConfig::default() };
        let started = Producer::start(&client, &topic(table), config).await;
        let producer = started.map_err(|error| not_begun(error, table, &address))?;
        let partitions = i32::try_from(producer.partitions().count()).unwrap_or(i32::MAX);
        Ok((producer, partitions))
    }

    async fn write(&mut self, line: &[u8]) -> Result<(), Failure> {
        let number = self.records;
        let wrong = |error: String| {
            Failure::failed(format!(
                "line {}: {error}; {} before it written",
                number + 1,
                numbers::records(number)
            ))
        };
        let record = record(line, self.args).map_err(wrong)?;
        let chosen = self.args.partition.or(record.partition);
        let (producer, partitions) = self.open().await?;
        let partition = chosen.unwrap_or_else(|| match &record.key {
            Some(key) => partition_of_key(key, partitions),
            None => i32::try_from(number % u64::from(partitions.unsigned_abs().max(1))).unwrap_or(0),
        });
        send(producer, partition, &record).await.map_err(|error| wrong(error.to_string()))?;
        self.records += 1;
        Ok(())
    }

    async fn close(self) -> Result<(), Failure> {
        let Some((producer, _)) = self.open else { return Ok(()) };
        producer.close().await.map_err(|error| {
            Failure::failed(format!("not every record was acked; the first that was not: {error}"))
        })
    }
}

/// Writes all lines.
pub(super) async fn write(args: RecordsArgs) -> Result<(), Failure> {
    let mut lines = open(&args.file).await?;
    let mut output = Output { args: &args, open: None, records: 0 };
    let progress = ProgressBar::new_spinner();
    let begun = Instant::now();
    let mut line = Vec::new();
    let written = loop {
        match next_line(&mut lines, &mut line).await {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(Failure::failed(format!("{}: {error}", args.file.display()))),
        }
        if let Err(failure) = output.write(&line).await {
            break Err(failure);
        }
        progress.set_message(numbers::records(output.records));
        progress.tick();
    };
    let records = output.records;
    let ended = output.close().await;
    progress.finish_and_clear();
    ended?;
    eprintln!("wrote {} to {} in {}", numbers::records(records), args.table, numbers::time(begun.elapsed()));
    written
}

/// Refuses soon what is not there: the producer's own client is patient, since to it a table may only be late.
async fn look_up(table: &TablePath, address: &str) -> Result<(), Failure> {
    let hasty = Client::with_patience(address, LOOKUP_PATIENCE).await.map_err(Failure::kafka(address))?;
    match hasty.topic(&topic(table)).await {
        Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => {
            Err(not_begun(error, table, address))
        }
        // Anything else may pass, and is told by the producer if it does not.
        _ => Ok(()),
    }
}

/// Why there is no way to the topic.
fn not_begun(error: ClientError, table: &TablePath, address: &str) -> Failure {
    match error.code() {
        Some(ErrorCode::UnknownTopicOrPartition) => Failure::failed(format!(
            "there is no table {table}, and the node makes none on first use; make it with `mink table create {table}`, or start the node with --kafka-auto-create true"
        )),
        _ => Failure::kafka(address)(error),
    }
}

async fn open(file: &Path) -> Result<Box<dyn AsyncBufRead + Unpin + Send>, Failure> {
    if is_stdin(file) {
        return Ok(Box::new(BufReader::new(tokio::io::stdin())));
    }
    let opened = tokio::fs::File::open(file).await;
    let opened =
        opened.map_err(|error| Failure::failed(format!("cannot read {}: {error}", file.display())))?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, opened)))
}

/// Reads a line without its end; false at the end of the input.
async fn next_line(
    lines: &mut (dyn AsyncBufRead + Unpin + Send),
    line: &mut Vec<u8>,
) -> Result<bool, String> {
    line.clear();
    let read = lines.take(LINE_BYTES_MAX).read_until(b'\n', line).await.map_err(|error| error.to_string())?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if read as u64 == LINE_BYTES_MAX {
        return Err(format!("a line is longer than {}", numbers::bytes(LINE_BYTES_MAX)));
    }
    Ok(read > 0)
}

fn record(line: &[u8], args: &RecordsArgs) -> Result<NewRecord, String> {
    match args.line {
        LineForm::Value => Ok(NewRecord { value: Some(line.to_vec()), ..NewRecord::default() }),
        LineForm::Json => {
            let text = std::str::from_utf8(line).map_err(|_| "not UTF-8; --format value takes any bytes")?;
            form::parse(text, args.encoding)
        }
    }
}

async fn send(producer: &Producer, partition: i32, record: &NewRecord) -> Result<(), ClientError> {
    let headers: Vec<HeaderRef<'_>> =
        record.headers.iter().map(|(key, value)| HeaderRef { key, value: value.as_deref() }).collect();
    let record = Record {
        timestamp: record.timestamp,
        key: record.key.as_deref(),
        value: record.value.as_deref(),
        headers: &headers,
    };
    // `close` tells of every delivery that failed.
    producer.send(partition, record).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{AdminAddress, table_path};

    /// Nothing listens at the node's address, so whatever asks it fails.
    fn without_a_node(input: &[u8]) -> (RecordsArgs, tempfile::NamedTempFile) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), input).unwrap();
        let args = RecordsArgs {
            table: table_path("kafka.never").unwrap(),
            file: file.path().into(),
            line: LineForm::Json,
            encoding: Encoding::Text,
            partition: None,
            codec: Codec::None,
            node: node("127.0.0.1:1"),
        };
        (args, file)
    }

    fn node(kafka: &str) -> NodeAddress {
        NodeAddress { admin: AdminAddress { addr: "127.0.0.1:1".into() }, kafka: Some(kafka.into()) }
    }

    #[tokio::test]
    async fn input_without_a_record_asks_nothing_of_the_node_and_makes_no_topic() {
        let (args, _file) = without_a_node(b"");
        assert_eq!(write(args).await, Ok(()));
        let (args, _file) = without_a_node(b"no record\n");
        let Err(Failure::Failed(words)) = write(args).await else { panic!("that is no record") };
        assert!(words.starts_with("line 1: ") && words.ends_with("0 records before it written"), "{words}");
    }

    #[tokio::test]
    async fn the_first_record_opens_the_way_to_the_topic() {
        let (args, _file) = without_a_node(b"{\"value\":\"v\"}\n");
        let record = b"{\"value\":\"v\"}";
        let args = RecordsArgs { node: node("not an address"), ..args };
        let mut output = Output { args: &args, open: None, records: 0 };
        let Err(Failure::Failed(words)) = output.write(record).await else { panic!("nobody is there") };
        assert!(words.contains("not an address"), "{words}");
    }

    #[tokio::test]
    async fn lines_end_with_a_newline_or_the_input() {
        let mut input = &b"one\n\nthree"[..];
        let mut line = Vec::new();
        let mut found = Vec::new();
        while next_line(&mut input, &mut line).await.unwrap() {
            found.push(String::from_utf8(line.clone()).unwrap());
        }
        assert_eq!(found, ["one", "", "three"]);
    }
}
