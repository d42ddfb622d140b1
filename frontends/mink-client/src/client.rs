//! A client of one cluster: who leads which partition, and a connection to each server.
//!
//! Lives on: any tokio runtime; cheap to clone.
//! Owns: the connections and what is known of the topics.
use crate::connection::{ANSWER_TIMEOUT, Connection};
use crate::error::{ClientError, ErrorKind};
use mink_kafka_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use mink_kafka_wire::{ErrorCode, Request};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// First and longest pause between attempts of a call that may succeed later.
pub(crate) const PAUSE_FIRST: Duration = Duration::from_millis(20);
pub(crate) const PAUSE_MAX: Duration = Duration::from_millis(500);

/// A topic as the cluster describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topic {
    pub name: String,
    pub id: [u8; 16],
    pub partitions: Vec<Partition>,
}

/// A partition and who leads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partition {
    pub index: i32,
    pub leader: i32,
    pub leader_epoch: i32,
}

/// A client. Clones share connections, and a connection answers in order: whoever waits long for records (a `Reader` that follows)
/// holds up what others ask of the same client, and takes one of its own with [`Client::apart`].
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bootstrap: Vec<String>,
    client_id: String,
    /// How long a call is tried again before its error is given.
    patience: Duration,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    addresses: BTreeMap<i32, String>,
    /// By address. Each has a lock of its own, so that a server that does not answer holds nobody else up.
    connections: BTreeMap<String, Arc<Mutex<Option<Arc<Connection>>>>>,
    topics: BTreeMap<String, Topic>,
}

impl Client {
    /// Connects to a cluster by any of its servers (`HOST:PORT`, several by commas).
    pub async fn connect(bootstrap: &str) -> Result<Client, ClientError> {
        Client::with_patience(bootstrap, Duration::from_secs(30)).await
    }

    /// As `connect`; calls that may succeed later are tried again for `patience`.
    pub async fn with_patience(bootstrap: &str, patience: Duration) -> Result<Client, ClientError> {
        let bootstrap = bootstrap.split(',').map(|address| address.trim().to_owned()).collect();
        let client = Client::new(bootstrap, patience);
        client.any_server().await?;
        Ok(client)
    }

    fn new(bootstrap: Vec<String>, patience: Duration) -> Client {
        let known = Mutex::new(Known::default());
        Client(Arc::new(Inner { bootstrap, client_id: "mink".into(), patience, known }))
    }

    /// A client of the same cluster with connections of its own, made when they are needed.
    #[must_use]
    pub fn apart(&self) -> Client {
        Client::new(self.0.bootstrap.clone(), self.0.patience)
    }

    /// A connection to this address, made if need be.
    pub(crate) async fn server(&self, address: &str) -> Result<Arc<Connection>, ClientError> {
        let slot = Arc::clone(self.0.known.lock().await.connections.entry(address.into()).or_default());
        let mut slot = slot.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let connection = Arc::new(Connection::open(address, &self.0.client_id).await?);
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// A connection to any server of the cluster.
    pub(crate) async fn any_server(&self) -> Result<Arc<Connection>, ClientError> {
        let mut last = ClientError::new(ErrorKind::Misuse, "no server is named");
        for address in &self.0.bootstrap {
            match self.server(address).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// A connection to the leader of a partition.
    pub(crate) async fn leader(&self, topic: &str, partition: i32) -> Result<Arc<Connection>, ClientError> {
        let found = {
            let known = self.0.known.lock().await;
            known.leader(topic, partition)
        };
        let address = if let Some(address) = found {
            address
        } else {
            let found = self.describe(topic, false).await?;
            check_name(&found, topic)?;
            let known = self.0.known.lock().await;
            known.leader(topic, partition).ok_or_else(|| {
                let what = format!("partition {partition} of {topic}");
                ClientError::server(ErrorCode::LeaderNotAvailable.code(), &what, None)
            })?
        };
        self.server(&address).await
    }

    /// Forgets what is known of a topic: the next call asks anew.
    pub(crate) async fn forget(&self, topic: &str) {
        self.0.known.lock().await.topics.remove(topic);
    }

    /// Describes a topic, creating it if the server creates topics on first use.
    pub async fn topic(&self, name: &str) -> Result<Topic, ClientError> {
        let found = self.retrying(|| self.describe(name, true)).await?;
        check_name(&found, name)?;
        Ok(found)
    }

    /// Describes a topic if there is one.
    pub async fn find_topic(&self, name: &str) -> Result<Option<Topic>, ClientError> {
        Ok(self.find_topic_or_table(name).await?.filter(|found| found.name == name))
    }

    /// Describes the topic of this name, else the topic of the table of this name (`DATABASE.TABLE`): what is found bears its name as a topic.
    pub async fn find_topic_or_table(&self, name: &str) -> Result<Option<Topic>, ClientError> {
        let found = self.retrying(|| async {
            match self.describe(name, false).await {
                Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => Ok(None),
                ended => ended.map(Some),
            }
        });
        found.await
    }

    /// What the one name that is asked for means to the server, by the server's name for it.
    async fn describe(&self, name: &str, create: bool) -> Result<Topic, ClientError> {
        let topics = Some(vec![MetadataRequestTopic { name: Some(name.into()), ..Default::default() }]);
        let request =
            MetadataRequest { topics, allow_auto_topic_creation: create, ..MetadataRequest::default() };
        let answer = self.any_server().await?.call(&request, ANSWER_TIMEOUT).await?;
        let topics = self.learn(&answer).await?;
        topics
            .into_iter()
            .next()
            .ok_or_else(|| ClientError::new(ErrorKind::Protocol, format!("{name}: not in the answer")))
    }

    /// Describes all topics.
    pub async fn topics(&self) -> Result<Vec<Topic>, ClientError> {
        self.retrying(|| async {
            let request = MetadataRequest { topics: None, ..MetadataRequest::default() };
            let answer = self.any_server().await?.call(&request, ANSWER_TIMEOUT).await?;
            self.learn(&answer).await
        })
        .await
    }

    /// Where the cluster's servers are, as they say.
    pub(crate) async fn servers(&self) -> Result<Vec<String>, ClientError> {
        let request = MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() };
        let answer = self.any_server().await?.call(&request, ANSWER_TIMEOUT).await?;
        self.learn(&answer).await?;
        Ok(self.0.known.lock().await.addresses.values().cloned().collect())
    }

    async fn learn(&self, answer: &MetadataResponse) -> Result<Vec<Topic>, ClientError> {
        let mut topics = Vec::new();
        for found in &answer.topics {
            let name = found.name.as_ref().map(|name| name.as_str().to_owned()).unwrap_or_default();
            check(found.error_code, &name, None)?;
            let mut partitions = Vec::new();
            for partition in &found.partitions {
                check(
                    partition.error_code,
                    &format!("partition {} of {name}", partition.partition_index),
                    None,
                )?;
                partitions.push(Partition {
                    index: partition.partition_index,
                    leader: partition.leader_id,
                    leader_epoch: partition.leader_epoch,
                });
            }
            partitions.sort_by_key(|partition| partition.index);
            topics.push(Topic { name, id: found.topic_id.0, partitions });
        }
        let mut known = self.0.known.lock().await;
        known.addresses = answer
            .brokers
            .iter()
            .map(|broker| (broker.node_id, format!("{}:{}", broker.host.as_str(), broker.port)))
            .collect();
        for topic in &topics {
            known.topics.insert(topic.name.clone(), topic.clone());
        }
        Ok(topics)
    }

    /// Calls until it succeeds, fails for good, or patience runs out.
    pub(crate) async fn retrying<T, F: Future<Output = Result<T, ClientError>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<T, ClientError> {
        let (until, mut pause) = (Instant::now() + self.0.patience, PAUSE_FIRST);
        loop {
            match call().await {
                Err(error) if error.is_retriable() && Instant::now() < until => {
                    tracing::debug!(%error, "tried again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                ended => return ended,
            }
        }
    }

    /// Sends a request to any server.
    pub(crate) async fn ask<R: Request>(&self, request: &R) -> Result<R::Response, ClientError> {
        self.any_server().await?.call(request, ANSWER_TIMEOUT).await
    }
}

impl Known {
    fn leader(&self, topic: &str, partition: i32) -> Option<String> {
        let partition = self.topics.get(topic)?.partitions.iter().find(|p| p.index == partition)?;
        self.addresses.get(&partition.leader).cloned()
    }
}

/// Refuses a topic that was found by the name of its table: other requests would be answered under another name than they ask for.
fn check_name(found: &Topic, asked: &str) -> Result<(), ClientError> {
    if found.name == asked {
        return Ok(());
    }
    let words = format!("there is no topic {asked}; the table {asked} is the topic {}", found.name);
    Err(ClientError::new(ErrorKind::Misuse, words))
}

/// An error code as an error.
pub(crate) fn check(code: i16, what: &str, words: Option<&str>) -> Result<(), ClientError> {
    if code == ErrorCode::None.code() { Ok(()) } else { Err(ClientError::server(code, what, words)) }
}
