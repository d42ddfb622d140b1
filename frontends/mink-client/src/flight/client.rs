//! Connections: the one to the node that was named, and those to nodes that own buckets elsewhere.
//!
//! Lives on: any tokio runtime; cheap to clone.
//! Owns: the connections, which come back by themselves.
use super::FlightErrorKind;
use super::error::FlightError;
use super::scanner::ScanBuilder;
use super::writer::{Streams, WriterBuilder};
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{FlightDescriptor, FlightEndpoint};
use mink_proto::{Command, Scan, command, ticket};
use mink_types::TablePath;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that answers no ping for so long is gone.
const PING_EVERY: Duration = Duration::from_secs(15);
const PING_PATIENCE: Duration = Duration::from_secs(15);
/// Bytes that the server may send ahead: of one call, of a connection.
const CALL_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Largest message that is taken; a batch inflates to 128 MiB at most.
const MESSAGE_BYTES_MAX: usize = 256 << 20;
/// Nodes to which connections are kept.
const PEERS_MAX: usize = 256;

/// Flight's calls over one connection.
pub(super) type Rpc = FlightServiceClient<Channel>;

/// A client of one cluster, by one of its nodes. Clones share its connection.
///
/// ```
/// # use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
/// # use arrow_flight::{Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest};
/// # use arrow_flight::{HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket};
/// # use futures::stream::{self, BoxStream, StreamExt};
/// # use tonic::{Request, Response, Status, Streaming};
/// # type Answers<T> = BoxStream<'static, Result<T, Status>>;
/// # fn no<T>() -> Result<Response<T>, Status> { Err(Status::unimplemented("not of this example")) }
/// # struct Node;
/// # #[tonic::async_trait]
/// # impl FlightService for Node {
/// #     type HandshakeStream = Answers<HandshakeResponse>;
/// #     type ListFlightsStream = Answers<FlightInfo>;
/// #     type DoGetStream = Answers<FlightData>;
/// #     type DoPutStream = Answers<PutResult>;
/// #     type DoExchangeStream = Answers<FlightData>;
/// #     type DoActionStream = Answers<arrow_flight::Result>;
/// #     type ListActionsStream = Answers<ActionType>;
/// #     async fn handshake(&self, _: Request<Streaming<HandshakeRequest>>) -> Result<Response<Self::HandshakeStream>, Status> { no() }
/// #     async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> { no() }
/// #     async fn get_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> { no() }
/// #     async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> { no() }
/// #     async fn get_schema(&self, _: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> { no() }
/// #     async fn do_get(&self, _: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> { no() }
/// #     async fn do_put(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> { no() }
/// #     async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> { no() }
/// #     async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> { no() }
/// #     async fn do_action(&self, action: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
/// #         assert_eq!(action.get_ref().body, "SHOW DATABASES");
/// #         let row = Ok(arrow_flight::Result { body: r#"{"database":"sales"}"#.into() });
/// #         Ok(Response::new(stream::iter([row]).boxed()))
/// #     }
/// # }
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let address = listener.local_addr()?.to_string();
/// # let connections = tokio_stream::wrappers::TcpListenerStream::new(listener);
/// # let node = tonic::transport::Server::builder().add_service(FlightServiceServer::new(Node));
/// # tokio::spawn(node.serve_with_incoming(connections));
/// use mink_client::flight::FlightClient;
///
/// let client = FlightClient::connect(&address).await?;
/// let rows = client.sql("SHOW DATABASES").await?;
/// assert_eq!(rows[0]["database"], "sales");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FlightClient(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    home: Channel,
    /// By address.
    peers: Mutex<BTreeMap<String, Channel>>,
    streams: Arc<Streams>,
}

/// Where a bucket is read and written.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// What the ticket says: the scan of this bucket alone.
    pub(super) scan: Scan,
    /// The owner's address, if the server told one.
    pub(super) address: Option<String>,
}

impl FlightClient {
    /// Connects to a node: `grpc://HOST:PORT` or `HOST:PORT`. A connection that breaks later comes back by itself.
    ///
    /// # Errors
    /// `Refused` for what is no such address; `Retry` if nobody answers there.
    pub async fn connect(address: &str) -> Result<FlightClient, FlightError> {
        let endpoint = endpoint(address)?;
        let home = endpoint.connect().await.map_err(|error| {
            let mut why = error.to_string();
            if let Some(source) = error.source() {
                why = format!("{why}: {source}");
            }
            FlightError::new(FlightErrorKind::Retry, format!("no connection to {address}: {why}"))
        })?;
        Ok(FlightClient(Arc::new(Inner { home, peers: Mutex::default(), streams: Arc::default() })))
    }

    /// A writer to a table (`DATABASE.TABLE`), to be set up and opened.
    pub fn writer(&self, table: &str) -> WriterBuilder {
        WriterBuilder::new(self.clone(), table)
    }

    /// A scan of a table (`DATABASE.TABLE`), to be set up and started.
    pub fn scan(&self, table: &str) -> ScanBuilder {
        ScanBuilder::new(self.clone(), table)
    }

    /// The places of writers' streams.
    pub(super) fn streams(&self) -> &Arc<Streams> {
        &self.0.streams
    }

    /// Calls to the node that the client was connected to.
    pub(super) fn home(&self) -> Rpc {
        rpc(self.0.home.clone())
    }

    /// Calls to the node at this address, or to the one that the client was connected to.
    pub(super) fn at(&self, address: Option<&str>) -> Rpc {
        let Some(address) = address else { return self.home() };
        let mut peers = self.0.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = peers.get(address) {
            return rpc(channel.clone());
        }
        let Ok(endpoint) = endpoint(address) else { return self.home() };
        if peers.len() >= PEERS_MAX {
            peers.clear();
        }
        let channel = endpoint.connect_lazy();
        peers.insert(address.to_owned(), channel.clone());
        rpc(channel)
    }

    /// Where the buckets of a scan are.
    pub(super) async fn places(&self, scan: &Scan) -> Result<Vec<Place>, Status> {
        let command = Command { command: Some(command::Command::Scan(scan.clone())) };
        let descriptor = FlightDescriptor::new_cmd(mink_proto::encode(&command));
        let info = self.home().get_flight_info(descriptor).await?.into_inner();
        info.endpoint.iter().map(place).collect()
    }
}

fn place(endpoint: &FlightEndpoint) -> Result<Place, Status> {
    let bytes = endpoint.ticket.as_ref().map(|ticket| ticket.ticket.as_ref()).unwrap_or_default();
    let ticket::Ticket::Scan(scan) = mink_proto::Ticket::read(bytes).map_err(|error| {
        Status::internal(format!("the server gave a ticket that makes no sense: {error}"))
    })?;
    let address = endpoint.location.first().map(|location| location.uri.clone());
    Ok(Place { scan, address })
}

fn rpc(channel: Channel) -> Rpc {
    FlightServiceClient::new(channel)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(usize::MAX)
}

fn endpoint(address: &str) -> Result<Endpoint, FlightError> {
    let refused = || {
        FlightError::refused(format!(
            "{address:?} is no address of a node; give grpc://HOST:PORT, or HOST:PORT"
        ))
    };
    let authority = address.strip_prefix("grpc://").unwrap_or(address).trim_end_matches('/');
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if authority.contains('/') || !has_port {
        return Err(refused());
    }
    let endpoint = Endpoint::from_shared(format!("http://{authority}")).map_err(|_| refused())?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_PATIENCE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(CALL_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES))
}

/// A table's address, checked.
pub(super) fn table_path(table: &str) -> Result<TablePath, FlightError> {
    TablePath::parse(table).map_err(|error| FlightError::refused(error.to_string()))
}
