//! What the tests of schemas share.
//!
//! Lives on: anywhere (pure).
mod create;
mod display;
mod evolution;
mod evolution_refused;
mod follows;
mod literals;
mod parts;
mod random;

use super::{ColumnPlace, DataType, Field, Schema, SchemaChange, SchemaDraft};

pub(super) fn path(dotted: &str) -> Vec<String> {
    dotted.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// A log table's first schema.
pub(super) fn log_table(columns: Vec<Field>) -> Schema {
    Schema::create(SchemaDraft { columns, ..SchemaDraft::default() }).expect("the columns are right")
}

/// Orders as in the manual: partitioned by `dt`, keyed by it and `order_id`, with a nested column.
pub(super) fn orders() -> Schema {
    let item = vec![
        Field::new("sku", DataType::Char { length: 8 }).not_null(),
        Field::new("count", DataType::Int),
        Field::new("price", DataType::Decimal { precision: 12, scale: 2 }),
    ];
    let columns = vec![
        Field::new("order_id", DataType::BigInt),
        Field::new("dt", DataType::String),
        Field::new("amount", DataType::Float),
        Field::new("items", DataType::array(DataType::Row(item))),
        Field::new("labels", DataType::map(DataType::Int, DataType::Binary { length: 4 })),
        Field::new("seen", DataType::Timestamp { precision: 3 }).not_null(),
    ];
    let primary_key = vec!["dt".to_owned(), "order_id".to_owned()];
    let partitioned_by = vec!["dt".to_owned()];
    Schema::create(SchemaDraft { columns, primary_key, partitioned_by, bucket_key: Vec::new() })
        .expect("a right draft")
}

pub(super) fn add(parent: &str, column: Field) -> SchemaChange {
    SchemaChange::AddColumn { parent: path(parent), column, place: ColumnPlace::Last }
}

pub(super) fn drop_column(dotted: &str) -> SchemaChange {
    SchemaChange::DropColumn { path: path(dotted) }
}

pub(super) fn rename(dotted: &str, name: &str) -> SchemaChange {
    SchemaChange::RenameColumn { path: path(dotted), name: name.to_owned() }
}

pub(super) fn retype(dotted: &str, data_type: DataType) -> SchemaChange {
    SchemaChange::ChangeType { path: path(dotted), data_type }
}

pub(super) fn move_to(dotted: &str, place: ColumnPlace) -> SchemaChange {
    SchemaChange::Move { path: path(dotted), place }
}

pub(super) fn relax(dotted: &str) -> SchemaChange {
    SchemaChange::DropNotNull { path: path(dotted) }
}

pub(super) fn comment(dotted: &str, comment: &str) -> SchemaChange {
    SchemaChange::SetComment { path: path(dotted), comment: Some(comment.to_owned()) }
}

/// Names of the columns, or of the fields at a path, in their order.
pub(super) fn names(schema: &Schema, dotted: &str) -> Vec<String> {
    let path = path(dotted);
    if path.is_empty() {
        return schema.columns().iter().map(|column| column.name.clone()).collect();
    }
    let field = schema.field(&path).expect("it is there");
    field.data_type.children().iter().map(|child| child.name.clone()).collect()
}

pub(super) fn ids(schema: &Schema, dotted: &str) -> Vec<u32> {
    let path = path(dotted);
    if path.is_empty() {
        return schema.columns().iter().map(|column| column.id.0).collect();
    }
    let field = schema.field(&path).expect("it is there");
    field.data_type.children().iter().map(|child| child.id.0).collect()
}
