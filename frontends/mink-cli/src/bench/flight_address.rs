//! Where loads of Arrow batches go: a node's Flight listener, or any that is named.
//!
//! Lives on: the command's task.
use crate::address::{AdminAddress, Listener, Place};
use crate::failure::Failure;
use clap::Args;
use mink_client::flight::FlightClient;

/// A Flight listener that need not be a node's.
#[derive(Clone, Debug, Args)]
pub(super) struct FlightAddress {
    /// Flight listener, in the place of the one that --addr leads to: another node's, or the bare server of benches/flight
    #[arg(long, value_name = "HOST:PORT")]
    flight: Option<String>,
}

/// The way to a Flight listener that has answered.
pub(super) struct Flight {
    pub(super) client: FlightClient,
    /// `HOST:PORT`, for further connections.
    pub(super) address: String,
}

impl FlightAddress {
    /// The listener that is named, else that of the node.
    pub(super) async fn reach(&self, node: &AdminAddress) -> Result<Flight, Failure> {
        if let Some(address) = &self.flight {
            let client = FlightClient::connect(address).await;
            let client = client.map_err(|error| Failure::failed(format!("--flight {address}: {error}")))?;
            return Ok(Flight { client, address: address.clone() });
        }
        let client = node.flight().await?;
        let address = match node.place()? {
            Place::Flight(address) => address,
            Place::Http(_) => node.told(Listener::Flight, &node.describe().await?)?,
        };
        Ok(Flight { client, address })
    }
}
