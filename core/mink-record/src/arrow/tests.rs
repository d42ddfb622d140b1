//! What the tests of the Arrow format share: rows as plain values, random schemas, and arrays made of both.

mod bombs;
mod evolved;
mod golden;
mod header;
mod hostile;
mod pruned;
mod rules;
mod schemas;
mod stated;
mod values;
mod writers;

use super::*;
use crate::kafka::{ProducedLimits, ProducerStamp};
use crate::{RecordError, RecordErrorKind as Kind};
use arrow_array::RecordBatch;
use arrow_ipc::writer::{CompressionContext, DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use bytes::Bytes;
use mink_types::ArrowCompression;
use mink_types::schema::{DataType, Field, FieldId, Literal, Schema, SchemaDraft};
use proptest::prelude::*;
use schemas::{Random, random_rows, random_schema};
use values::{Value, batch_of, rows_of};

const LIMITS: ProducedLimits = ProducedLimits { batch_bytes_max: 1 << 20, inflated_bytes_max: 4 << 20 };
const COMPRESSIONS: [ArrowCompression; 3] =
    [ArrowCompression::None, ArrowCompression::Lz4, ArrowCompression::Zstd];
const PLAIN: EncodeOptions = EncodeOptions { compression: ArrowCompression::None };

fn column(name: &str, data_type: DataType) -> Field {
    Field { id: FieldId::NONE, name: name.into(), data_type, nullable: true, default: None, comment: None }
}

fn required(name: &str, data_type: DataType) -> Field {
    Field { nullable: false, ..column(name, data_type) }
}

fn schema(columns: Vec<Field>) -> Schema {
    Schema::create(SchemaDraft { columns, ..SchemaDraft::default() }).expect("a sound schema")
}

fn kind<T: std::fmt::Debug>(result: Result<T, RecordError>) -> Kind {
    result.expect_err("must be refused").kind()
}

fn message<T: std::fmt::Debug>(result: Result<T, RecordError>) -> String {
    result.expect_err("must be refused").message().to_owned()
}

/// What a client sends of a batch that we encode: metadata and body of the stored one.
fn accept_as_sent(
    intake: &Intake,
    metadata: &[u8],
    body: &Bytes,
    compression: ArrowCompression,
) -> Result<Bytes, RecordError> {
    intake.accept(IpcMessage { metadata, body }, LIMITS, EncodeOptions { compression }, None)
}

/// What the arrow-ipc crate sends of a batch, without its dictionaries: metadata and body.
fn sent(batch: &RecordBatch) -> (Vec<u8>, Bytes) {
    let (ipc, mut tracker) = (IpcDataGenerator::default(), DictionaryTracker::new(false));
    let options = IpcWriteOptions::default();
    // Gives dictionaries their ids.
    let _schema = ipc.schema_to_bytes_with_dictionary_tracker(batch.schema_ref(), &mut tracker, &options);
    let (_, data) =
        ipc.encode(batch, &mut tracker, &options, &mut CompressionContext::default()).expect("sound rows");
    (data.ipc_message, Bytes::from(data.arrow_data))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rows_come_back_as_they_went(seed: u64, compression in proptest::sample::select(COMPRESSIONS.to_vec())) {
        let mut random = Random(seed);
        let schema = random_schema(&mut random);
        let rows = random_rows(&mut random, schema.columns());
        let batch = batch_of(&rows, schema.columns());
        let stamp = ProducerStamp { id: 7, epoch: 1, base_sequence: 100 };
        let stored = encode(&batch, &schema, EncodeOptions { compression }, Some(stamp)).expect("sound rows");
        let parsed = ArrowBatch::parse(&stored).expect("our own batch");
        parsed.verify_checksum().expect("our own checksum");
        prop_assert_eq!(parsed.rows(), rows.len());
        prop_assert_eq!(parsed.header().producer_id, 7);
        let decoded = parsed.decode(&schema).expect("our own batch");
        prop_assert_eq!(decoded.schema(), arrow_schema(&schema));
        prop_assert_eq!(rows_of(&decoded, schema.columns()), rows);
        prop_assert_eq!(decoded, batch);
    }

    #[test]
    fn a_message_of_the_tables_layout_is_kept_as_it_was_sent(
        seed: u64,
        sent in proptest::sample::select(COMPRESSIONS.to_vec()),
        table in proptest::sample::select(COMPRESSIONS.to_vec()),
    ) {
        let mut random = Random(seed);
        let schema = random_schema(&mut random);
        let rows = random_rows(&mut random, schema.columns());
        let batch = batch_of(&rows, schema.columns());
        let encoded = encode(&batch, &schema, EncodeOptions { compression: sent }, None).expect("sound rows");
        let encoded = ArrowBatch::parse(&encoded).expect("our own batch");
        let intake = Intake::new(&schema, &batch.schema()).expect("the table's own schema");
        prop_assert!(intake.is_same_layout());
        let stored = accept_as_sent(&intake, encoded.metadata(), encoded.body(), table).expect("sound");
        let stored = ArrowBatch::parse(&stored).expect("accepted");
        if sent == table {
            prop_assert_eq!(stored.body(), encoded.body());
            prop_assert_eq!(stored.metadata(), encoded.metadata());
        }
        prop_assert_eq!(stored.statistics(), encoded.statistics());
        prop_assert_eq!(stored.decode(&schema).expect("accepted"), batch);
    }
}
