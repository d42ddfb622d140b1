//! Columns cut out of a stored message are the columns that decoding it gives.

use super::super::decode::decode;
use super::super::layout::counts_of;
use super::super::message::Message;
use super::*;
use arrow_buffer::Buffer;
use arrow_schema::SchemaRef;

/// What the arrow-ipc crate reads of a message.
fn read_by_arrow(metadata: &[u8], body: &[u8], schema: &SchemaRef) -> RecordBatch {
    let message = arrow_ipc::root_as_message(metadata).expect("a message");
    assert_eq!(usize::try_from(message.bodyLength()), Ok(body.len()));
    let batch = message.header_as_record_batch().expect("a record batch");
    let (buffer, dictionaries) = (Buffer::from_slice_ref(body), std::collections::HashMap::default());
    let version = arrow_ipc::MetadataVersion::V5;
    arrow_ipc::reader::read_record_batch(
        &buffer,
        batch,
        SchemaRef::clone(schema),
        &dictionaries,
        None,
        &version,
    )
    .expect("a sound batch")
}

fn random_columns(random: &mut Random, schema: &Schema) -> Vec<FieldId> {
    let mut ids: Vec<FieldId> = schema.columns().iter().map(|column| column.id).collect();
    for at in (1..ids.len()).rev() {
        ids.swap(at, random.below(at + 1));
    }
    ids.truncate(random.below(ids.len() + 1));
    ids
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_pruned_message_decodes_to_the_projected_rows(
        seed: u64,
        compression in proptest::sample::select(COMPRESSIONS.to_vec()),
    ) {
        let mut random = Random(seed);
        let schema = random_schema(&mut random);
        let batch = batch_of(&random_rows(&mut random, schema.columns()), schema.columns());
        let stored = encode(&batch, &schema, EncodeOptions { compression }, None).expect("sound rows");
        let stored = ArrowBatch::parse(&stored).expect("our own batch");
        let wanted = random_columns(&mut random, &schema);
        let places: Vec<usize> = wanted
            .iter()
            .map(|id| schema.columns().iter().position(|column| column.id == *id).expect("its own"))
            .collect();
        let expected = batch.project(&places).expect("its own columns");
        prop_assert_eq!(&stored.decode_columns(&schema, &wanted).expect("our own batch"), &expected);

        let pruned = stored.prune(&schema, &wanted).expect("our own batch");
        let body = Bytes::from(pruned.body.concat());
        prop_assert_eq!(body.len(), pruned.body_length);
        prop_assert!(pruned.body_length.is_multiple_of(8));
        let kept = expected.schema();
        let message = Message::read(&pruned.metadata, counts_of(kept.fields()), body.len()).expect("sound");
        prop_assert!(message.in_order);
        prop_assert_eq!(&decode(&message, &body, &kept, 1 << 20).expect("sound"), &expected);
        prop_assert_eq!(read_by_arrow(&pruned.metadata, &body, &kept), expected);
    }

    #[test]
    fn others_read_what_is_stored(seed: u64, compression in proptest::sample::select(COMPRESSIONS.to_vec())) {
        let mut random = Random(seed);
        let schema = random_schema(&mut random);
        let batch = batch_of(&random_rows(&mut random, schema.columns()), schema.columns());
        let stored = encode(&batch, &schema, EncodeOptions { compression }, None).expect("sound rows");
        let stored = ArrowBatch::parse(&stored).expect("our own batch");
        prop_assert_eq!(read_by_arrow(stored.metadata(), stored.body(), &arrow_schema(&schema)), batch);
    }
}

#[test]
fn bytes_of_other_columns_are_not_touched() {
    let schema =
        schema(vec![column("a", DataType::Bytes), column("b", DataType::Int), column("c", DataType::Bytes)]);
    let row = |n| vec![Value::Bytes(vec![1; 1_000]), Value::Integer(n), Value::Bytes(vec![2; 1_000])];
    let rows: Vec<_> = (0..10).map(row).collect();
    let stored = encode(&batch_of(&rows, schema.columns()), &schema, PLAIN, None).expect("sound rows");
    let stored = ArrowBatch::parse(&stored).expect("our own batch");
    let [a, b, c] = [FieldId(1), FieldId(2), FieldId(3)];
    let pruned = stored.prune(&schema, &[b]).expect("its own column");
    assert_eq!(pruned.body_length, 40);
    // Slices of the stored body, side by side where the columns are.
    assert_eq!(stored.prune(&schema, &[a, b, c]).expect("its own columns").body.len(), 1);
    assert_eq!(stored.prune(&schema, &[c, a]).expect("its own columns").body.len(), 2);
    let none = stored.prune(&schema, &[]).expect("no column");
    assert_eq!((none.body_length, none.body.len()), (0, 0));
    assert_eq!(kind(stored.prune(&schema, &[b, b])), Kind::SchemaMismatch);
    assert_eq!(kind(stored.prune(&schema, &[FieldId(4)])), Kind::SchemaMismatch);
    assert_eq!(kind(stored.decode_columns(&schema, &[FieldId(0)])), Kind::SchemaMismatch);
}

#[test]
fn another_schema_is_refused() {
    let schema = schema(vec![column("a", DataType::Int)]);
    let stored =
        encode(&batch_of(&[vec![Value::Null]], schema.columns()), &schema, PLAIN, None).expect("a row");
    let stored = ArrowBatch::parse(&stored).expect("our own batch");
    let next = schema.alter(&[mink_types::schema::SchemaChange::RenameColumn {
        path: vec!["a".into()],
        name: "b".into(),
    }]);
    let next = next.expect("a new name");
    assert_eq!(kind(stored.decode(&next)), Kind::SchemaMismatch);
    assert_eq!(kind(stored.prune(&next, &[FieldId(1)])), Kind::SchemaMismatch);
}
