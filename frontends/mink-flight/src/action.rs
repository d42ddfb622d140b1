//! DoAction: administration, and what writers need to know.
//!
//! Lives on: the service runtime.
use crate::address;
use crate::node::Node;
use crate::statement;
use crate::status::OrStatus;
use arrow_flight::Action;
use mink_proto::{
    DescribeTable, FindWriter, NodeDescription, OpenWriter, TableDescription, TableOption, Writer,
    WriterState,
};
use mink_types::ProducerId;
use mink_types::schema::FieldId;
use std::net::{IpAddr, SocketAddr};
use tonic::Status;

/// Of a name that a client made up, in an error about it: the error travels in a header.
const NAME_CHARS_SHOWN: usize = 60;

/// Names and what they are for, as ListActions tells them.
pub(crate) const ACTIONS: [(&str, &str); 5] = [
    (
        "sql",
        "body: one statement of CREATE, ALTER, DROP, SHOW or DESCRIBE; answered by one JSON object a row",
    ),
    (
        "node.describe",
        "body: empty; answered by one mink.v1.NodeDescription: who the node is, and where its listeners are",
    ),
    ("table.describe", "body: mink.v1.DescribeTable; answered by one mink.v1.TableDescription"),
    ("writer.open", "body: mink.v1.OpenWriter; answered by one mink.v1.Writer"),
    (
        "writer.state",
        "body: mink.v1.FindWriter; answered by a mink.v1.WriterState for each bucket that knows the writer",
    ),
];

/// Carries an action out; the bodies of its results.
pub(crate) async fn action(node: &Node, action: Action) -> Result<Vec<Vec<u8>>, Status> {
    match action.r#type.as_str() {
        "sql" => {
            let text = std::str::from_utf8(&action.body)
                .map_err(|_| Status::invalid_argument("the statement is not text in UTF-8"))?;
            let rows = statement::run(node, text).await?;
            Ok(rows.iter().map(statement::Row::to_json).collect())
        }
        "node.describe" => Ok(vec![mink_proto::encode(&describe_node(node)?)]),
        "table.describe" => {
            let asked: DescribeTable = mink_proto::decode("DescribeTable", &action.body).or_status()?;
            Ok(vec![mink_proto::encode(&describe(node, &asked)?)])
        }
        "writer.open" => {
            let _: OpenWriter = mink_proto::decode("OpenWriter", &action.body).or_status()?;
            let id = node.admin.producer_id().or_status()?;
            Ok(vec![mink_proto::encode(&Writer { id: id.0, epoch: 0 })])
        }
        "writer.state" => {
            let asked: FindWriter = mink_proto::decode("FindWriter", &action.body).or_status()?;
            find_writer(node, &asked).await
        }
        other => {
            let other: String = other.chars().take(NAME_CHARS_SHOWN).collect();
            let known: Vec<_> = ACTIONS.iter().map(|(name, _)| *name).collect();
            Err(Status::unimplemented(format!("action {other:?} is unknown; known are {}", known.join(", "))))
        }
    }
}

fn describe_node(node: &Node) -> Result<NodeDescription, Status> {
    let (identity, state) = (node.admin.identity(), node.admin.state());
    let life = state.incarnation(identity.incarnation).ok_or_else(|| {
        Status::unavailable("the node has yet to read of its own registration; try again in a moment")
    })?;
    let address = |name| life.listener(name).map_or_else(String::new, |at| address_text(&at.host, at.port));
    Ok(NodeDescription {
        cluster: identity.cluster.as_str().to_owned(),
        node_id: identity.node.0,
        version: life.version.clone(),
        kafka: address("kafka"),
        flight: address("flight"),
        http: address("http"),
    })
}

/// HOST:PORT, with the brackets that an IPv6 address needs.
fn address_text(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, port).to_string(),
        Err(_) => format!("{host}:{port}"),
    }
}

fn describe(node: &Node, asked: &DescribeTable) -> Result<TableDescription, Status> {
    let path = address::table_path(&asked.database, &asked.table)?;
    let state = node.admin.state();
    let table = address::find(&state, &path)?;
    let named = |ids: &[FieldId]| -> Vec<String> {
        let columns = ids.iter().filter_map(|id| table.schema()?.column_by_id(*id));
        columns.map(|column| column.name.clone()).collect()
    };
    let options =
        table.options.list().into_iter().map(|(name, value)| TableOption { name: name.into(), value });
    Ok(TableDescription {
        table_id: table.id.0,
        database: path.database.to_string(),
        table: path.table.to_string(),
        schema: table.schema().map_or(0, |schema| schema.id().0),
        buckets: table.buckets,
        bucket_key: table.schema().map(|schema| named(schema.bucket_key())).unwrap_or_default(),
        partitioned_by: table.schema().map(|schema| named(schema.partitioned_by())).unwrap_or_default(),
        options: options.collect(),
        create_statement: statement::create_statement(table).unwrap_or_default(),
    })
}

async fn find_writer(node: &Node, asked: &FindWriter) -> Result<Vec<Vec<u8>>, Status> {
    let path = address::table_path(&asked.database, &asked.table)?;
    let state = node.admin.state();
    let table = address::find(&state, &path)?;
    let mut found = Vec::new();
    for bucket in table.bucket_ids() {
        let writers = node.source.producers(bucket, ProducerId(asked.id), 1).await.or_status()?;
        let of_writer = writers.into_iter().filter(|writer| writer.producer.0 == asked.id);
        found.extend(of_writer.map(|writer| {
            mink_proto::encode(&WriterState {
                partition: bucket.partition.0,
                bucket: bucket.bucket.0,
                epoch: i32::from(writer.epoch.0),
                last_sequence: writer.last_sequence.0,
            })
        }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::address_text;

    #[test]
    fn an_address_can_be_connected_to_as_it_is_told() {
        assert_eq!(address_text("box.example", 9092), "box.example:9092");
        assert_eq!(address_text("127.0.0.1", 9092), "127.0.0.1:9092");
        assert_eq!(address_text("fe80::1", 9092), "[fe80::1]:9092");
    }
}
