//! Asks one server what the scripts want to know, and writes the answers down.
//! Lives on: the test's tokio runtime.
//! Owns: the connection, the names of the run, the answers so far.
//! Invariants: no answer is left out: one that does not come is `closed` or `silent`; every wait has a bound.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::{BufMut as _, Bytes, BytesMut};
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use mink_kafka_wire::messages::fetch::FetchResponse;
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use mink_kafka_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponseTopic};
use mink_kafka_wire::{
    ApiKey, KafkaString, Request, Uuid, decode_response, encode_request, request_header_version,
};
use mink_record::kafka::batches;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::names::Names;
use super::tree::Tree;

const WITHIN: Duration = Duration::from_secs(30);
/// Longer than any answer here takes.
const SILENT_AFTER: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
const CLIENT: &str = "e2e";

/// Which answer: API, case, version.
pub(super) type Asked = (String, String, i16);
/// All answers of one server, on one line each.
pub(super) type Answers = BTreeMap<Asked, String>;

#[derive(Debug)]
pub(super) struct Asker {
    address: String,
    stream: TcpStream,
    next_id: i32,
    /// Whether the last request was not answered, on a connection that stayed open.
    is_silent: bool,
    pub(super) api: ApiKey,
    pub(super) version: i16,
    pub(super) names: Names,
    pub(super) answers: Answers,
}

async fn connect(address: &str) -> TcpStream {
    let stream = timeout(WITHIN, TcpStream::connect(address)).await.expect("in time").expect("accepted");
    stream.set_nodelay(true).unwrap();
    stream
}

impl Asker {
    pub(super) async fn connect(address: &str) -> Self {
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("host:port");
        let mut asker = Self {
            address: address.to_owned(),
            stream: connect(address).await,
            next_id: 0,
            is_silent: false,
            api: ApiKey::ApiVersions,
            version: 0,
            names: Names::new(-1, port, 0, String::new()),
            answers: Answers::new(),
        };
        let request = MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() };
        let brokers = asker.quiet(12, &request).await.brokers;
        asker.names.node = brokers.first().expect("the one node").node_id;
        asker.names.suffix = "-first".to_owned();
        let topic = asker.topic("topic", 1).await;
        asker.names.epoch = asker.described(&topic).await.partitions[0].leader_epoch;
        asker
    }

    /// From here on answers are those of this API at this version, and names are new ones.
    pub(super) async fn begin(&mut self, api: ApiKey, version: i16) {
        (self.api, self.version) = (api, version);
        self.names = Names::new(
            self.names.node,
            self.names.port,
            self.names.epoch,
            format!("-{}-{version}", api.name()),
        );
        self.stream = connect(&self.address).await;
    }

    /// A name that is this run's own.
    pub(super) fn name(&self, name: &str) -> KafkaString {
        format!("{name}{}", self.names.suffix).into()
    }

    /// Asks with the version of the run and writes down what comes.
    pub(super) async fn ask<R: Request>(&mut self, case: &str, request: R) -> Option<R::Response> {
        let answer = self.try_ask(self.version, &request).await;
        self.note(case, answer.as_ref(), false);
        answer
    }

    /// As [`Asker::ask`], for answers about everything there is: only what is this run's own is written down.
    pub(super) async fn ask_own<R: Request>(&mut self, case: &str, request: R) -> Option<R::Response> {
        let answer = self.try_ask(self.version, &request).await;
        self.note(case, answer.as_ref(), true);
        answer
    }

    /// As [`Asker::ask`], for the answer of a Fetch: its batches are written down too.
    pub(super) fn note_fetch(&mut self, case: &str, answer: Option<FetchResponse>) {
        let Some(answer) = answer else { return self.note(case, answer.as_ref(), false) };
        let mut tree = Tree::of_debug(&format!("{answer:?}"));
        let runs = answer.responses.into_iter().flat_map(|topic| topic.partitions);
        let runs =
            runs.filter_map(|partition| Some((partition.partition_index, partition.records?.into_bytes())));
        let runs: Vec<_> = runs
            .filter(|(_, run)| !run.is_empty())
            .map(|(partition, run)| {
                Tree::Leaf(format!("\"{partition}: {}\"", batches_line(run, self.names.epoch)))
            })
            .collect();
        if let (Tree::Fields(fields), false) = (&mut tree, runs.is_empty()) {
            fields.push(("batches".to_owned(), Tree::List(runs)));
        }
        self.note_tree(case, tree);
    }

    pub(super) fn note<M: std::fmt::Debug>(&mut self, case: &str, answer: Option<&M>, own_only: bool) {
        let line = answer.map_or_else(
            || if self.is_silent { "silent" } else { "closed" }.to_owned(),
            |answer| {
                let mut tree = Tree::of_debug(&format!("{answer:?}"));
                if own_only {
                    tree.keep(&|name| name.contains(&self.names.suffix));
                }
                self.names.map(&mut tree, "");
                tree.sort();
                tree.line()
            },
        );
        self.write(case, line);
    }

    pub(super) fn write(&mut self, case: &str, line: String) {
        let asked = (self.api.name().to_owned(), case.to_owned(), self.version);
        let before = self.answers.insert(asked, line);
        assert_eq!(before, None, "{} {} has the case {case} twice", self.api.name(), self.version);
    }

    /// Writes an answer down as a whole that the script has made.
    pub(super) fn note_tree(&mut self, case: &str, mut tree: Tree) {
        self.names.map(&mut tree, "");
        tree.sort();
        self.write(case, tree.line());
    }

    /// Asks and writes nothing down.
    pub(super) async fn quiet<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let answer = self.try_ask(version, request).await;
        answer.unwrap_or_else(|| panic!("{} {}: no answer to {request:?}", self.api.name(), self.version))
    }

    /// The answer, or `None` if the server closed; then there is a new connection.
    pub(super) async fn try_ask<R: Request>(&mut self, version: i16, request: &R) -> Option<R::Response> {
        self.send(version, request).await;
        self.receive_of::<R>(version).await
    }

    /// The next answer, to a request of this run's version that was sent.
    pub(super) async fn receive_answer<R: Request>(&mut self) -> Option<R::Response> {
        self.receive_of::<R>(self.version).await
    }

    async fn receive_of<R: Request>(&mut self, version: i16) -> Option<R::Response> {
        let frame = self.receive().await?;
        let (_, answer) = decode_response::<R>(version, frame).expect("an answer that can be decoded");
        Some(answer)
    }

    /// Sends a request that is not answered.
    pub(super) async fn send<R: Request>(&mut self, version: i16, request: &R) {
        let frame = self.frame(version, request);
        self.send_bytes(&frame).await;
    }

    fn frame<R: Request>(&mut self, version: i16, request: &R) -> Bytes {
        self.next_id += 1;
        let frame = encode_request(version, self.next_id, Some(&CLIENT.into()), request);
        frame.unwrap_or_else(|error| panic!("{error}: {request:?}")).to_bytes()
    }

    /// An error means that the server closes; reading says so.
    async fn send_bytes(&mut self, frame: &[u8]) {
        let _ = timeout(WITHIN, self.stream.write_all(frame)).await.expect("the server reads");
    }

    pub(super) async fn receive(&mut self) -> Option<Bytes> {
        let read = async {
            let length = self.stream.read_i32().await?;
            let mut frame = vec![0; usize::try_from(length).unwrap()];
            self.stream.read_exact(&mut frame).await?;
            std::io::Result::Ok(frame)
        };
        let frame = timeout(SILENT_AFTER, read).await;
        self.is_silent = frame.is_err();
        let frame = frame.ok().and_then(Result::ok);
        if frame.is_none() {
            self.stream = connect(&self.address).await;
        }
        Some(frame?.into())
    }

    /// A good request with its last byte cut off, and with one too many.
    pub(super) async fn damaged<R: Request>(&mut self, request: R) {
        let whole = self.frame(self.version, &request);
        let body = whole.slice(4..);
        for (case, body) in [
            ("request cut short", body.slice(..body.len() - 1)),
            ("request with a byte too many", [&body[..], b"\0"].concat().into()),
        ] {
            let answer = self.ask_bytes(&body).await;
            let answer = answer.map(|frame| decode_response::<R>(self.version, frame).unwrap().1);
            self.note(case, answer.as_ref(), true);
        }
    }

    async fn ask_bytes(&mut self, body: &[u8]) -> Option<Bytes> {
        let mut frame = BytesMut::new();
        frame.put_u32(u32::try_from(body.len()).unwrap());
        frame.put_slice(body);
        self.send_bytes(&frame).await;
        self.receive().await
    }

    /// A header of this version with nothing behind it: the frame of the answer.
    pub(super) async fn ask_header(&mut self, version: i16) -> Option<Bytes> {
        let mut body = BytesMut::new();
        body.put_i16(self.api.code());
        body.put_i16(version);
        body.put_i32(1);
        body.put_i16(i16::try_from(CLIENT.len()).unwrap());
        body.put_slice(CLIENT.as_bytes());
        if version > 0 && request_header_version(self.api, version) >= 2 {
            body.put_u8(0);
        }
        self.ask_bytes(&body).await
    }

    /// Makes a topic whose records do not grow old, and waits until all its partitions are served. Gives its name.
    pub(super) async fn topic(&mut self, name: &str, partitions: i32) -> KafkaString {
        self.topic_with(name, partitions, &[("retention.ms", "-1")]).await
    }

    pub(super) async fn topic_with(
        &mut self,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> KafkaString {
        let full = self.name(name);
        let configs = configs
            .iter()
            .map(|(name, value)| CreatableTopicConfig { name: (*name).into(), value: Some((*value).into()) });
        let request = CreateTopicsRequest {
            topics: vec![CreatableTopic {
                name: full.clone(),
                num_partitions: partitions,
                replication_factor: 1,
                configs: configs.collect(),
                ..CreatableTopic::default()
            }],
            ..CreateTopicsRequest::default()
        };
        let answer = self.quiet(7, &request).await;
        assert_eq!(answer.topics[0].error_code, 0, "{answer:?}");
        self.served(&full, partitions).await;
        let id = self.id_of(&full).await;
        self.names.topic(name, id);
        full
    }

    /// Waits until these partitions are served.
    pub(super) async fn served(&mut self, topic: &KafkaString, partitions: i32) {
        let partition = |partition_index| ListOffsetsPartition {
            partition_index,
            timestamp: -1,
            ..ListOffsetsPartition::default()
        };
        let topics = vec![ListOffsetsTopic {
            name: topic.clone(),
            partitions: (0..partitions).map(partition).collect(),
        }];
        let request = ListOffsetsRequest { replica_id: -1, topics, ..ListOffsetsRequest::default() };
        self.until(&format!("{topic:?} is served"), 7, &request, |answer| {
            answer
                .topics
                .iter()
                .flat_map(|topic| &topic.partitions)
                .all(|partition| partition.error_code == 0)
        })
        .await;
    }

    /// The server's own epoch for what the scripts call `epoch`; below 0 it is no epoch.
    pub(super) fn epoch(&self, epoch: i32) -> i32 {
        if epoch < 0 { epoch } else { self.names.epoch + epoch }
    }

    /// The id of a topic; zero if there is none.
    pub(super) async fn id_of(&mut self, topic: &KafkaString) -> Uuid {
        self.described(topic).await.topic_id
    }

    async fn described(&mut self, topic: &KafkaString) -> MetadataResponseTopic {
        let topics =
            vec![MetadataRequestTopic { name: Some(topic.clone()), ..MetadataRequestTopic::default() }];
        let request = MetadataRequest {
            topics: Some(topics),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        self.quiet(12, &request).await.topics.swap_remove(0)
    }

    /// Asks until the answer is the one that is waited for.
    pub(super) async fn until<R: Request>(
        &mut self,
        what: &str,
        version: i16,
        request: &R,
        is_there: impl Fn(&R::Response) -> bool,
    ) {
        let deadline = Instant::now() + WITHIN;
        loop {
            let answer = self.quiet(version, request).await;
            if is_there(&answer) {
                return;
            }
            assert!(Instant::now() < deadline, "not in time: {what}: {answer:?}");
            tokio::time::sleep(POLL).await;
        }
    }
}

/// The batches of a run: offsets, epoch since the first one, length and checksum of each; a cut one at the end is not told.
fn batches_line(run: Bytes, epoch: i32) -> String {
    let told = batches(run).map_while(Result::ok).map(|(header, bytes)| {
        header.verify_checksum(&bytes).unwrap();
        let last = header.last_offset();
        format!(
            "{}..{last} epoch {} {} bytes {:08x}",
            header.base_offset,
            header.partition_leader_epoch - epoch,
            bytes.len(),
            header.checksum
        )
    });
    told.collect::<Vec<_>>().join(", ")
}
