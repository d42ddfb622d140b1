//! `mink write`: lines of a file or of stdin become records.
//!
//! Lives on: the command's task; lines are read on the blocking pool.
//! Invariants: what is read and not yet acked is bounded by the producer's buffer; it reports success only when every record was acked.
use crate::address::{KafkaAddress, table_path, topic};
use crate::failure::Failure;
use crate::form::{self, Encoding, NewRecord};
use crate::numbers;
use clap::{Args, ValueEnum};
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

const EXAMPLES: &str = "\
Examples:
  mink write kafka.events events.jsonl
  mink read kafka.events | mink write kafka.copy
  mink write kafka.lines --format value /var/log/syslog

A JSON line has any of key, value, headers, timestamp, partition:
  {\"key\":\"a\",\"value\":\"text\",\"headers\":[[\"name\",\"x\"]],\"timestamp\":\"2026-01-31T10:00:00Z\"}
A value that is no text, such as {\"amount\":1}, is stored as its JSON text. Bytes are {\"base64\":\"...\"}.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WriteArgs {
    /// DATABASE.TABLE; a Kafka topic is kafka.TOPIC
    #[arg(value_parser = table_path)]
    table: TablePath,
    /// Lines to write; - is stdin
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// What a line is
    #[arg(long, value_enum, value_name = "FORM", default_value_t = LineForm::Json)]
    format: LineForm,
    /// How keys, values and headers stand in JSON lines
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Encoding::Text)]
    encoding: Encoding,
    /// All records to this partition; else by their own, their key's as Kafka's clients choose it, or in turn
    #[arg(long, value_name = "P")]
    partition: Option<i32>,
    /// Compression: none, gzip, snappy, lz4, zstd
    #[arg(long, value_name = "NAME", default_value = "none", value_parser = codec)]
    compression: Codec,
    #[command(flatten)]
    node: KafkaAddress,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum LineForm {
    /// One record as a JSON object
    Json,
    /// The value alone
    Value,
}

/// A codec by Kafka's name for it.
pub(crate) fn codec(name: &str) -> Result<Codec, String> {
    let found = Codec::ALL.into_iter().find(|codec| codec.name() == name);
    found.ok_or_else(|| "use none, gzip, snappy, lz4 or zstd".into())
}

/// The way to the topic, opened with the first record: input without any makes no topic.
struct Output<'a> {
    args: &'a WriteArgs,
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
        let WriteArgs { table, compression, node, .. } = self.args;
        let client = node.connect().await?;
        look_up(table, &node.kafka).await?;
        let config = ProducerConfig { codec: *compression, ..ProducerConfig::default() };
        let started = Producer::start(&client, &topic(table), config).await;
        let producer = started.map_err(|error| not_begun(error, table, &node.kafka))?;
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

pub(crate) async fn run(args: WriteArgs) -> Result<(), Failure> {
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
    if file.as_os_str() == "-" {
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

fn record(line: &[u8], args: &WriteArgs) -> Result<NewRecord, String> {
    match args.format {
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

    /// Nothing listens at the node's address, so whatever asks it fails.
    fn without_a_node(input: &[u8]) -> (WriteArgs, tempfile::NamedTempFile) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), input).unwrap();
        let args = WriteArgs {
            table: table_path("kafka.never").unwrap(),
            file: file.path().into(),
            format: LineForm::Json,
            encoding: Encoding::Text,
            partition: None,
            compression: Codec::None,
            node: KafkaAddress { kafka: "127.0.0.1:1".into() },
        };
        (args, file)
    }

    #[tokio::test]
    async fn input_without_a_record_asks_nothing_of_the_node_and_makes_no_topic() {
        let (args, _file) = without_a_node(b"");
        assert_eq!(run(args).await, Ok(()));
        let (args, _file) = without_a_node(b"no record\n");
        let Err(Failure::Failed(words)) = run(args).await else { panic!("that is no record") };
        assert!(words.starts_with("line 1: ") && words.ends_with("0 records before it written"), "{words}");
    }

    #[tokio::test]
    async fn the_first_record_opens_the_way_to_the_topic() {
        let (args, _file) = without_a_node(b"{\"value\":\"v\"}\n");
        let record = b"{\"value\":\"v\"}";
        let args = WriteArgs { node: KafkaAddress { kafka: "not an address".into() }, ..args };
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

    #[test]
    fn codecs_have_kafkas_names() {
        assert_eq!(codec("zstd"), Ok(Codec::Zstd));
        assert!(codec("brotli").unwrap_err().contains("lz4"));
    }
}
