//! Administration: SQL, and what tables there are.
//!
//! Lives on: any tokio runtime.
//! Invariants: no call is tried again by itself: who asks decides whether it may be done twice.
use super::client::{FlightClient, table_path};
use super::error::FlightError;
use arrow_flight::{Action, Criteria, FlightDescriptor};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use mink_proto::{DescribeTable, NodeDescription, TableDescription};
use mink_record::arrow::read_schema;
use mink_types::TablePath;

/// Rows that one action may answer with.
const ROWS_MAX: usize = 1 << 20;

impl FlightClient {
    /// Runs one statement (CREATE, ALTER, DROP, SHOW, DESCRIBE); its rows, each an object.
    ///
    /// ```no_run
    /// # async fn example(client: mink_client::flight::FlightClient) -> Result<(), mink_client::flight::FlightError> {
    /// client.sql("CREATE TABLE IF NOT EXISTS sales.orders (id BIGINT, amount DECIMAL(10, 2))").await?;
    /// for row in client.sql("SHOW TABLES IN sales").await? {
    ///     println!("{}", row["table"]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Refused` for a statement that is not understood; `NotFound`, `Exists`, `Conflict`; `Unknown` if it may have been carried out.
    pub async fn sql(&self, text: &str) -> Result<Vec<serde_json::Value>, FlightError> {
        let rows = self.sql_json(text).await?;
        rows.iter().map(|row| serde_json::from_slice(row).map_err(FlightError::protocol)).collect()
    }

    /// As `sql`; each row as the JSON text that the node sent, whose fields stand in the order in which they are to be shown.
    ///
    /// # Errors
    /// Those of `sql`.
    pub async fn sql_json(&self, text: &str) -> Result<Vec<Bytes>, FlightError> {
        self.action("sql", text.as_bytes().to_vec()).await
    }

    /// The node that the client was connected to: who it is, and where its listeners are.
    ///
    /// ```no_run
    /// # async fn example(client: mink_client::flight::FlightClient) -> Result<(), mink_client::flight::FlightError> {
    /// let node = client.describe_node().await?;
    /// println!("node {} of {}; Kafka clients connect to {}", node.node_id, node.cluster, node.kafka);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the connection; `Refused` by what is no node.
    pub async fn describe_node(&self) -> Result<NodeDescription, FlightError> {
        let answer = self.action("node.describe", Vec::new()).await?;
        let first = answer.first().ok_or_else(|| FlightError::protocol("no node in it"))?;
        Ok(mink_proto::decode("NodeDescription", first)?)
    }

    /// A table: its buckets, keys and options.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn describe(&self, table: &str) -> Result<TableDescription, FlightError> {
        let TablePath { database, table } = table_path(table)?;
        let asked = DescribeTable { database: database.to_string(), table: table.to_string() };
        let answer = self.action("table.describe", mink_proto::encode(&asked)).await?;
        let first = answer.first().ok_or_else(|| FlightError::protocol("no table in it"))?;
        Ok(mink_proto::decode("TableDescription", first)?)
    }

    /// The addresses (`DATABASE.TABLE`) of all tables that begin with `prefix`, such as `sales.`.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn tables(&self, prefix: &str) -> Result<Vec<String>, FlightError> {
        let criteria = Criteria { expression: Bytes::copy_from_slice(prefix.as_bytes()) };
        let answer =
            self.home().list_flights(criteria).await.map_err(|status| FlightError::from_status(&status))?;
        let (mut flights, mut tables) = (answer.into_inner(), Vec::new());
        while let Some(info) = flights.message().await.map_err(|status| FlightError::from_status(&status))? {
            let path = info.flight_descriptor.map(|descriptor| descriptor.path).unwrap_or_default();
            if path.is_empty() {
                return Err(FlightError::protocol("a table without a name"));
            }
            tables.push(path.join("."));
        }
        Ok(tables)
    }

    /// The Arrow schema of a table's rows.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn schema(&self, table: &str) -> Result<SchemaRef, FlightError> {
        let TablePath { database, table } = table_path(table)?;
        let descriptor = FlightDescriptor::new_path(vec![database.to_string(), table.to_string()]);
        let answer =
            self.home().get_schema(descriptor).await.map_err(|status| FlightError::from_status(&status))?;
        let framed = answer.into_inner().schema;
        let message = unframed(&framed).ok_or_else(|| FlightError::protocol("the schema is cut off"))?;
        Ok(read_schema(message).map_err(FlightError::protocol)?.schema)
    }

    /// Carries an action out; the bodies of its results.
    pub(super) async fn action(&self, name: &str, body: Vec<u8>) -> Result<Vec<Bytes>, FlightError> {
        let action = Action { r#type: name.into(), body: body.into() };
        let answer =
            self.home().do_action(action).await.map_err(|status| FlightError::from_status(&status))?;
        let (mut results, mut bodies) = (answer.into_inner(), Vec::new());
        while let Some(result) =
            results.message().await.map_err(|status| FlightError::from_status(&status))?
        {
            if bodies.len() >= ROWS_MAX {
                return Err(FlightError::protocol(format_args!("more than {ROWS_MAX} rows")));
            }
            bodies.push(result.body);
        }
        Ok(bodies)
    }
}

/// A message of Arrow IPC without the marker and the length before it.
fn unframed(bytes: &[u8]) -> Option<&[u8]> {
    let bytes = bytes.strip_prefix(&[0xff; 4]).unwrap_or(bytes);
    let (length, message) = bytes.split_first_chunk::<4>()?;
    message.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::unframed;

    #[test]
    fn a_framed_message_is_taken_out_and_a_cut_one_is_not() {
        assert_eq!(unframed(&[255, 255, 255, 255, 2, 0, 0, 0, 7, 8, 0]), Some(&[7, 8][..]));
        assert_eq!(unframed(&[2, 0, 0, 0, 7, 8]), Some(&[7, 8][..]));
        assert_eq!(unframed(&[2, 0, 0, 0, 7]), None);
        assert_eq!(unframed(&[255, 255, 255, 255, 2]), None);
    }
}
