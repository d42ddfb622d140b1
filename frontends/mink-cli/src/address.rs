//! Where commands find a node, and what a table's name means as a topic.
//!
//! Lives on: anywhere (pure).
use crate::failure::Failure;
use clap::Args;
use mink_client::Client;
use mink_types::TablePath;
use std::time::Duration;

/// Database whose tables are topics by their bare name, unless the node was told another.
const KAFKA_DATABASE: &str = "kafka";
/// How long a command tries to reach a node that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a node's administration is.
#[derive(Clone, Debug, Args)]
pub(crate) struct AdminAddress {
    /// HTTP listener of a node; http:// may stand before it
    #[arg(long, env = "MINK_ADDR", value_name = "HOST:PORT", default_value = "127.0.0.1:9180")]
    pub(crate) addr: String,
}

impl AdminAddress {
    /// `http://HOST:PORT`, with nothing behind the port.
    pub(crate) fn url(&self) -> Result<String, Failure> {
        let address = self.addr.trim_end_matches('/');
        let refuse = |why: &str| Err(Failure::usage(format!("--addr {address}: {why}")));
        match address.split_once("://") {
            Some(("http", rest)) if !rest.is_empty() => Ok(address.to_owned()),
            None if names_a_port(address) => Ok(format!("http://{address}")),
            Some(("http", _)) | None => refuse("write HOST:PORT, the node's http= address"),
            Some(("https", _)) => refuse("nodes speak plain HTTP; write HOST:PORT, the node's http= address"),
            Some(("grpc", _)) => refuse(
                "nodes of this version have no Flight listener; write HOST:PORT, the node's http= address",
            ),
            Some((scheme, _)) => {
                refuse(&format!("{scheme}:// is not known; write HOST:PORT, the node's http= address"))
            }
        }
    }
}

/// Whether it is HOST:PORT. Without a port a client would go to port 80, where no node listens.
fn names_a_port(address: &str) -> bool {
    let parts = address.rsplit_once(':');
    parts.is_some_and(|(host, port)| !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok())
}

/// Where records go in and out.
#[derive(Clone, Debug, Args)]
pub(crate) struct KafkaAddress {
    /// Kafka listener of a node; several by commas
    #[arg(long, env = "MINK_KAFKA", value_name = "HOST:PORT", default_value = "127.0.0.1:9092")]
    pub(crate) kafka: String,
}

impl KafkaAddress {
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        Client::with_patience(&self.kafka, PATIENCE).await.map_err(Failure::kafka(&self.kafka))
    }
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

    #[test]
    fn addresses_are_http_with_or_without_saying_so_and_others_are_refused_in_words() {
        let url = |addr: &str| AdminAddress { addr: addr.into() }.url();
        for (address, expected) in [
            ("http://127.0.0.1:9180/", "http://127.0.0.1:9180"),
            ("127.0.0.1:9180", "http://127.0.0.1:9180"),
            ("localhost:9180/", "http://localhost:9180"),
            ("[::1]:9180", "http://[::1]:9180"),
        ] {
            assert_eq!(url(address), Ok(expected.into()));
        }
        for refused in [
            "grpc://127.0.0.1:9123",
            "box",
            ":9180",
            "box:port",
            "a/b:1",
            "https://a:1",
            "ftp://a",
            "http://",
        ] {
            let Err(Failure::Usage(words)) = url(refused) else { panic!("{refused} is taken") };
            assert!(words.contains("write HOST:PORT"), "{words}");
        }
    }

    #[test]
    fn a_table_of_the_kafka_database_is_a_topic_by_its_bare_name() {
        assert_eq!(topic(&table_path("kafka.hello").unwrap()), "hello");
        assert_eq!(topic(&table_path("kafka.a.b").unwrap()), "a.b");
        assert_eq!(topic(&table_path("sales.orders").unwrap()), "sales.orders");
        assert!(table_path("hello").unwrap_err().contains("kafka.hello"));
    }
}
