//! Lines become records of Kafka's.
//!
//! Lives on: the command's task; lines are read on a thread of their own.
//! Invariants: what is read and not yet acked is bounded by the producer's buffer and the lines that wait; it reports success only when every
//! record was acked.
use super::FileForm;
use super::input::{Bytes, Source, begin_text, is_stdin, next_line};
use super::json::other_layout;
use super::portion::{PORTION_BYTES, PORTION_ROWS, Progress, Reading, Sink, Stop};
use crate::address::{Kafka, NodeAddress, topic};
use crate::failure::{Failure, interrupted};
use crate::form::named::check_partition_number;
use crate::form::{self, Encoding, NewRecord};
use crate::numbers;
use indicatif::ProgressBar;
use mink_client::{
    Client, ClientError, Codec, ErrorCode, HeaderRef, Producer, ProducerConfig, Record, partition_of_key,
};
use mink_types::TablePath;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How long a table that is not there is looked for. A node that makes tables on first use has made it when it answers.
const LOOKUP_PATIENCE: Duration = Duration::from_millis(300);

/// How long records that were handed over are waited for once the user has stopped it.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

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
        check_partition_number(table, producer.partitions().count(), self.args.partition)?;
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

    /// Hands over all lines.
    async fn write_all(
        &mut self,
        lines: &mut Reading<Vec<Vec<u8>>>,
        progress: &ProgressBar,
    ) -> Result<(), Failure> {
        while let Some(some) = lines.next().await {
            let some = some.map_err(|error| {
                let file = &self.args.file;
                let from = if is_stdin(file) { String::new() } else { format!("{}: ", file.display()) };
                Failure::failed(format!(
                    "{from}{error}; {} before it written",
                    numbers::records(self.records)
                ))
            })?;
            for line in some {
                self.write(&line).await?;
                progress.set_message(numbers::records(self.records));
                progress.tick();
            }
        }
        Ok(())
    }

    /// Ends what the user has stopped: records that were handed over are waited for, unless that takes long or is stopped too.
    async fn stop(self) -> Failure {
        let records = numbers::records(self.records);
        let closed = tokio::select! {
            closed = timeout(STOP_PATIENCE, self.close()) => matches!(closed, Ok(Ok(()))),
            () = interrupted() => false,
        };
        Failure::Interrupted(if closed {
            format!("interrupted: {records} written")
        } else {
            format!("interrupted: {records} sent, of which not all are known to be stored")
        })
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
    let (source, line) = (Source::open(&args.file)?, args.line);
    let mut lines = Reading::start(move |sink| read(source.bytes(&Progress::default()), line, sink))?;
    let mut output = Output { args: &args, open: None, records: 0 };
    let progress = ProgressBar::new_spinner();
    let begun = Instant::now();
    let written = tokio::select! {
        written = output.write_all(&mut lines, &progress) => Some(written),
        () = interrupted() => None,
    };
    let records = output.records;
    let Some(written) = written else {
        progress.finish_and_clear();
        return Err(output.stop().await);
    };
    let ended = output.close().await;
    progress.finish_and_clear();
    ended?;
    eprintln!("wrote {} to {} in {}", numbers::records(records), args.table, numbers::time(begun.elapsed()));
    written
}

/// Reads all lines. Those that have come go on before one that may be long in coming.
fn read(mut bytes: Bytes, line: LineForm, sink: &Sink<Vec<Vec<u8>>>) -> Result<(), Stop> {
    if line == LineForm::Json {
        begin_text(&mut bytes, FileForm::Json)?;
    }
    let (mut lines, mut held, mut number) = (Vec::new(), 0, 0);
    let ended = loop {
        number += 1;
        let mut line = Vec::new();
        match next_line(&mut bytes, &mut line, number) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(stop) => break Err(stop),
        }
        held += line.len();
        lines.push(line);
        if bytes.buffer().is_empty() || held >= PORTION_BYTES || lines.len() >= PORTION_ROWS {
            held = 0;
            sink.send(std::mem::take(&mut lines))?;
        }
    };
    if !lines.is_empty() {
        sink.send(lines)?;
    }
    ended
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

fn record(line: &[u8], args: &RecordsArgs) -> Result<NewRecord, String> {
    match args.line {
        LineForm::Value => Ok(NewRecord { value: Some(line.to_vec()), ..NewRecord::default() }),
        LineForm::Json => {
            let text = std::str::from_utf8(line).map_err(|_| "not UTF-8; --format value takes any bytes")?;
            form::parse(text, args.encoding).map_err(|error| format!("{error}{}", other_layout(line)))
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

    /// What is read of an input, and how it ended.
    async fn lines_of(input: &'static [u8], line: LineForm) -> (Vec<String>, Option<String>) {
        let bytes: Bytes = std::io::BufReader::new(Box::new(input));
        let mut reading = Reading::start(move |sink| read(bytes, line, sink)).expect("a thread");
        let mut found = Vec::new();
        while let Some(lines) = reading.next().await {
            match lines {
                Ok(lines) => {
                    found.extend(lines.into_iter().map(|line| String::from_utf8(line).expect("text")));
                }
                Err(what) => return (found, Some(what)),
            }
        }
        (found, None)
    }

    #[tokio::test]
    async fn lines_end_with_a_newline_or_the_input_and_a_mark_is_part_of_values_alone() {
        let (found, ended) = lines_of(b"one\n\nthree", LineForm::Value).await;
        assert_eq!((found, ended), (vec!["one".to_owned(), String::new(), "three".into()], None));
        let marked = "\u{feff}{}\n".as_bytes();
        assert_eq!(lines_of(marked, LineForm::Json).await, (vec!["{}".to_owned()], None));
        assert_eq!(lines_of(marked, LineForm::Value).await, (vec!["\u{feff}{}".to_owned()], None));
    }

    #[tokio::test]
    async fn what_is_no_json_lines_is_told_with_what_makes_them() {
        let (_, ended) = lines_of(b"PAR1\x15\x00\x15", LineForm::Json).await;
        assert!(ended.expect("no text").contains("Parquet"));
        for (text, hint) in [(&b"[{\"key\":\"a\"}]"[..], "jq -c '.[]'"), (b"{", "jq -c .")] {
            let (args, _file) = without_a_node(text);
            let Err(Failure::Failed(words)) = write(args).await else { panic!("that is no line") };
            assert!(words.contains(hint), "{words}");
        }
    }
}
