//! Where commands find a node: one address is typed, the node tells the others. And what a table's name means as a topic.
//!
//! Lives on: the command's task; what reads a name is pure.
//! Talks to: a node, by whichever listener is needed.
//! Invariants: nobody is asked who is not needed: with `--kafka` a command that only moves records asks no other listener.
mod listener;

pub(crate) use listener::{Listener, Origin, unreachable};

use crate::api::Api;
use crate::failure::Failure;
use clap::Args;
use listener::text_of;
use mink_client::Client;
use mink_client::flight::{FlightClient, NodeDescription};
use mink_types::TablePath;
use serde_json::Value;
use std::net::SocketAddr;

/// Database whose tables are topics by their bare name, unless the node was told another.
const KAFKA_DATABASE: &str = "kafka";

/// Where a node is, for what is not about records of Kafka's clients.
#[derive(Clone, Debug, Args)]
pub(crate) struct AdminAddress {
    /// A node: HOST:PORT or grpc://HOST:PORT is its Flight listener, http://HOST:PORT its HTTP listener
    #[arg(long, env = "MINK_ADDR", value_name = "ADDRESS", default_value = "127.0.0.1:9123")]
    pub(crate) addr: String,
}

/// Where a node is: each of its listeners is found when it is asked for.
#[derive(Clone, Debug, Args)]
pub(crate) struct NodeAddress {
    #[command(flatten)]
    pub(crate) admin: AdminAddress,
    /// Kafka listener, in the place of the one that the node tells; several by commas
    #[arg(long, env = "MINK_KAFKA", value_name = "HOST:PORT")]
    pub(crate) kafka: Option<String>,
}

/// The way to a Kafka listener.
#[derive(Clone, Debug)]
pub(crate) struct Kafka {
    pub(crate) client: Client,
    /// Where it is, for what is said of it.
    pub(crate) address: String,
}

/// What `--addr` means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// HOST:PORT of a Flight listener.
    Flight(String),
    /// HOST:PORT of an HTTP listener.
    Http(String),
}

impl Place {
    fn authority(&self) -> &str {
        match self {
            Place::Flight(authority) | Place::Http(authority) => authority,
        }
    }
}

impl AdminAddress {
    /// What the address means.
    pub(crate) fn place(&self) -> Result<Place, Failure> {
        const WRITE: &str = "write HOST:PORT, the node's flight= address, or http:// and its http= address";
        let address = self.addr.trim_end_matches('/');
        let refuse = |why: &str| Err(Failure::usage(format!("--addr {}: {why}{WRITE}", self.addr)));
        let (scheme, authority) = address.split_once("://").unwrap_or(("grpc", address));
        match scheme {
            "grpc" | "grpc+tcp" | "http" if !names_a_port(authority) => refuse(""),
            "grpc" | "grpc+tcp" => Ok(Place::Flight(authority.to_owned())),
            "http" => Ok(Place::Http(authority.to_owned())),
            "https" | "grpc+tls" | "grpcs" => refuse("nodes speak without TLS; "),
            scheme => refuse(&format!("{scheme}:// is not known; ")),
        }
    }

    /// The node's Flight listener, which has answered.
    pub(crate) async fn flight(&self) -> Result<FlightClient, Failure> {
        let (authority, origin) = match self.place()? {
            Place::Flight(authority) => (authority, Origin::Addr),
            Place::Http(_) => (self.told(Listener::Flight, &self.describe().await?)?, self.by_the_node()),
        };
        Ok(listener::flight(&authority, &origin).await?.0)
    }

    /// The node's HTTP listener.
    pub(crate) async fn http(&self) -> Result<Api, Failure> {
        match self.place()? {
            Place::Http(authority) => Api::at(authority, Origin::Addr),
            Place::Flight(_) => {
                let authority = self.told(Listener::Http, &self.describe().await?)?;
                Api::at(authority, self.by_the_node())
            }
        }
    }

    /// What the node says of itself and its listeners.
    pub(crate) async fn describe(&self) -> Result<NodeDescription, Failure> {
        match self.place()? {
            Place::Flight(authority) => Ok(listener::flight(&authority, &Origin::Addr).await?.1),
            Place::Http(authority) => {
                let told = Api::at(authority, Origin::Addr)?.get("/node").await?;
                read_description(&told).ok_or_else(|| {
                    Failure::failed(format!(
                        "{}: what answers is no Mink node of this version: {told}",
                        self.addr
                    ))
                })
            }
        }
    }

    /// HOST:PORT of a listener that the node has told of.
    pub(crate) fn told(&self, listener: Listener, node: &NodeDescription) -> Result<String, Failure> {
        let told = match listener {
            Listener::Kafka => &node.kafka,
            Listener::Flight => &node.flight,
            Listener::Http => &node.http,
        };
        if told.is_empty() {
            return Err(Failure::failed(format!(
                "the node at {} has no {} listener, and this needs it: `mink serve {} HOST:PORT` gives it one",
                self.addr,
                listener.name(),
                listener.serve_flag()
            )));
        }
        Ok(reachable(told, self.place()?.authority()))
    }

    fn by_the_node(&self) -> Origin {
        Origin::Node(self.addr.clone())
    }
}

impl NodeAddress {
    /// The node's Flight listener, which has answered.
    pub(crate) async fn flight(&self) -> Result<FlightClient, Failure> {
        self.admin.flight().await
    }

    /// The node's HTTP listener.
    pub(crate) async fn http(&self) -> Result<Api, Failure> {
        self.admin.http().await
    }

    /// The Kafka listener that `--kafka` names, else the node's. It has answered.
    pub(crate) async fn kafka(&self) -> Result<Kafka, Failure> {
        let (address, origin) = if let Some(address) = &self.kafka {
            (address.clone(), Origin::Kafka)
        } else {
            let node = self.admin.describe().await?;
            (self.admin.told(Listener::Kafka, &node)?, self.admin.by_the_node())
        };
        let client = listener::kafka(&address, &origin).await?;
        Ok(Kafka { client, address })
    }
}

/// Whether it is HOST:PORT.
fn names_a_port(address: &str) -> bool {
    let parts = address.rsplit_once(':');
    parts.is_some_and(|(host, port)| !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok())
}

/// The address that a node tells; one of all its interfaces is where the node was reached.
fn reachable(told: &str, reached: &str) -> String {
    let everywhere = told.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_unspecified());
    match (told.rsplit_once(':'), reached.rsplit_once(':')) {
        (Some((_, port)), Some((host, _))) if everywhere => format!("{host}:{port}"),
        _ => told.to_owned(),
    }
}

/// `/api/v1/node`.
fn read_description(told: &Value) -> Option<NodeDescription> {
    Some(NodeDescription {
        cluster: text_of(told, "cluster")?,
        node_id: u32::try_from(told.get("node")?.as_u64()?).ok()?,
        version: text_of(told, "version")?,
        kafka: text_of(told, "kafka")?,
        flight: text_of(told, "flight")?,
        http: text_of(told, "http")?,
    })
}

/// A table's name, `DATABASE.TABLE`.
pub(crate) fn table_path(text: &str) -> Result<TablePath, String> {
    TablePath::parse(text).map_err(|error| {
        format!("{error}; a table is named DATABASE.TABLE, and the topic `hello` is kafka.hello")
    })
}

/// The table as Kafka's clients call it.
pub(crate) fn topic(path: &TablePath) -> String {
    if path.database.as_str() == KAFKA_DATABASE { path.table.to_string() } else { path.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn addr(addr: &str) -> AdminAddress {
        AdminAddress { addr: addr.into() }
    }

    #[test]
    fn an_address_is_of_flight_unless_it_says_http_and_others_are_refused_in_words() {
        let flight = |authority: &str| Ok(Place::Flight(authority.into()));
        let http = |authority: &str| Ok(Place::Http(authority.into()));
        for (address, expected) in [
            ("127.0.0.1:9123", flight("127.0.0.1:9123")),
            ("grpc://box:9123/", flight("box:9123")),
            ("grpc+tcp://box:9123", flight("box:9123")),
            ("[::1]:9123", flight("[::1]:9123")),
            ("http://127.0.0.1:9180/", http("127.0.0.1:9180")),
            ("http://[::1]:9180", http("[::1]:9180")),
        ] {
            assert_eq!(addr(address).place(), expected);
        }
        for refused in [
            "box",
            ":9123",
            "box:port",
            "a/b:1",
            "https://a:1",
            "ftp://a:1",
            "http://",
            "http://box",
            "grpc://",
            "none",
        ] {
            let Err(Failure::Usage(words)) = addr(refused).place() else { panic!("{refused} is taken") };
            assert!(words.contains(refused) && words.contains("write HOST:PORT"), "{words}");
        }
    }

    #[test]
    fn a_listener_that_is_off_is_told_with_the_flag_that_starts_it() {
        let node = NodeDescription { flight: "10.0.0.1:9123".into(), ..NodeDescription::default() };
        assert_eq!(addr("box:1").told(Listener::Flight, &node), Ok("10.0.0.1:9123".into()));
        let Err(Failure::Failed(words)) = addr("box:1").told(Listener::Http, &node) else {
            panic!("a listener that is off is found")
        };
        assert!(words.contains("box:1") && words.contains("--http-listen HOST:PORT"), "{words}");
    }

    #[test]
    fn a_listener_on_all_interfaces_is_where_the_node_was_reached() {
        assert_eq!(reachable("0.0.0.0:9180", "box:9123"), "box:9180");
        assert_eq!(reachable("[::]:9180", "[fe80::1]:9123"), "[fe80::1]:9180");
        assert_eq!(reachable("other:9180", "box:9123"), "other:9180");
        assert_eq!(reachable("10.0.0.1:9180", "box:9123"), "10.0.0.1:9180");
    }

    #[test]
    fn a_description_over_http_is_the_one_over_flight() {
        let told = json!({ "cluster": "mink", "node": 3, "version": "0.1.0", "kafka": "a:1", "flight": "", "http": "a:3" });
        let read = read_description(&told).expect("whole");
        assert_eq!((read.node_id, read.kafka.as_str(), read.flight.as_str()), (3, "a:1", ""));
        assert_eq!(read_description(&json!({ "cluster": "mink" })), None);
    }

    #[test]
    fn a_table_of_the_kafka_database_is_a_topic_by_its_bare_name() {
        assert_eq!(topic(&table_path("kafka.hello").unwrap()), "hello");
        assert_eq!(topic(&table_path("kafka.a.b").unwrap()), "a.b");
        assert_eq!(topic(&table_path("sales.orders").unwrap()), "sales.orders");
        assert!(table_path("hello").unwrap_err().contains("kafka.hello"));
    }
}
