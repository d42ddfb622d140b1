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
use mink_client::{Codec, HeaderRef, Producer, ProducerConfig, Record, partition_of_key};
use mink_types::TablePath;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, BufReader};

/// Longest line, in bytes: what a record may have, with room for its JSON.
const LINE_BYTES_MAX: u64 = 64 << 20;

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

pub(crate) async fn run(args: WriteArgs) -> Result<(), Failure> {
    let mut lines = open(&args.file).await?;
    let client = args.node.connect().await?;
    let failed = Failure::kafka(&args.node.kafka);
    let config = ProducerConfig { codec: args.compression, ..ProducerConfig::default() };
    let producer = Producer::start(&client, &topic(&args.table), config).await.map_err(&failed)?;
    let partitions = i32::try_from(producer.partitions().count()).unwrap_or(i32::MAX);
    let progress = ProgressBar::new_spinner();
    let begun = Instant::now();
    let (mut line, mut number) = (Vec::new(), 0_u64);
    let stopped = loop {
        match next_line(&mut lines, &mut line).await {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) => break Some(format!("{}: {error}", args.file.display())),
        }
        let record = match record(&line, &args) {
            Ok(record) => record,
            Err(error) => break Some(format!("line {}: {error}", number + 1)),
        };
        let partition = args.partition.or(record.partition).unwrap_or_else(|| match &record.key {
            Some(key) => partition_of_key(key, partitions),
            None => i32::try_from(number % u64::from(partitions.unsigned_abs().max(1))).unwrap_or(0),
        });
        if let Err(error) = send(&producer, partition, &record).await {
            break Some(format!("line {}: {error}", number + 1));
        }
        number += 1;
        progress.set_message(numbers::records(number));
        progress.tick();
    };
    let ended = producer.close().await;
    progress.finish_and_clear();
    if let Err(error) = ended {
        return Err(Failure::failed(format!("not every record was acked; the first that was not: {error}")));
    }
    let took = numbers::time(begun.elapsed());
    eprintln!("wrote {} to {} in {took}", numbers::records(number), args.table);
    match stopped {
        Some(why) => Err(Failure::failed(format!("{why}; {} before it written", numbers::records(number)))),
        None => Ok(()),
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

async fn send(
    producer: &Producer,
    partition: i32,
    record: &NewRecord,
) -> Result<(), mink_client::ClientError> {
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
