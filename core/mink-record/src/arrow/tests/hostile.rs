//! Bytes that lie about themselves (I19, K-28, K-29).

use super::super::message::{Message, Node, Place};
use super::*;
use crate::kafka::HEADER_BYTES;

/// Everything that reads a batch: whatever it says, it returns.
fn read_all(frame: &Bytes, schema: &Schema) {
    let Ok(batch) = ArrowBatch::parse(frame) else { return };
    let _outcome = batch.verify_checksum();
    let _outcome = batch.statistics();
    let ids: Vec<FieldId> = schema.columns().iter().rev().map(|column| column.id).collect();
    let pruned = batch.prune(schema, &ids);
    let decoded = batch.decode(schema);
    let columns = batch.decode_columns(schema, &ids);
    if let (Ok(_), Ok(decoded)) = (pruned, decoded) {
        let columns = columns.expect("all columns were sound");
        for (at, column) in columns.columns().iter().rev().enumerate() {
            assert_eq!(column, decoded.column(at));
        }
    }
    let intake = Intake::new(schema, &arrow_schema(schema)).expect("the table's own schema");
    for compression in COMPRESSIONS {
        if let Ok(stored) = accept_as_sent(&intake, batch.metadata(), batch.body(), compression) {
            let stored = ArrowBatch::parse(&stored).expect("what was accepted is sound");
            stored.verify_checksum().expect("what was accepted is sound");
            stored.decode(schema).expect("what was accepted decodes");
            stored.statistics().expect("what was accepted is sound");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn i19_flipped_bytes_never_panic_and_what_is_accepted_decodes(
        seed: u64,
        compression in proptest::sample::select(COMPRESSIONS.to_vec()),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut random = Random(seed);
        let schema = random_schema(&mut random);
        let rows = random_rows(&mut random, schema.columns());
        let stored = encode(&batch_of(&rows, schema.columns()), &schema, EncodeOptions { compression }, None)
            .expect("sound rows");
        let mut bytes = stored.to_vec();
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] ^= byte;
        }
        let changed = bytes[21..] != stored[21..];
        let bytes = Bytes::from(bytes);
        if let Ok(batch) = ArrowBatch::parse(&bytes) && batch.rows() == rows.len() && bytes[..21] == stored[..21] {
            prop_assert_eq!(batch.verify_checksum().is_err(), changed);
        }
        read_all(&bytes, &schema);
    }

    #[test]
    fn i19_noise_never_panics(noise: Vec<u8>) {
        let schema = schema(vec![column("a", DataType::String), column("b", DataType::Int)]);
        let bytes = Bytes::from(noise);
        read_all(&bytes, &schema);
        let intake = Intake::new(&schema, &arrow_schema(&schema)).expect("the table's own schema");
        prop_assert!(accept_as_sent(&intake, &bytes, &bytes, ArrowCompression::None).is_err());
    }
}

fn sample() -> (Schema, Bytes) {
    let list = DataType::Array(Box::new(column("element", DataType::Int)));
    let schema = schema(vec![column("t", DataType::String), column("n", DataType::Int), column("l", list)]);
    let row = |text: &str, n: Value| {
        vec![Value::Text(text.into()), n, Value::List(vec![Value::Integer(1), Value::Null])]
    };
    let rows = [row("ab", Value::Integer(1)), row("cde", Value::Null), row("", Value::Integer(3))];
    let stored = encode(&batch_of(&rows, schema.columns()), &schema, PLAIN, None).expect("sound rows");
    (schema, stored)
}

#[test]
fn i19_a_batch_cut_anywhere_is_an_error() {
    let (schema, stored) = sample();
    for cut in 0..stored.len() {
        assert!(ArrowBatch::parse(&stored.slice(..cut)).is_err(), "{cut}");
        // Also with a length that fits what is left.
        let mut short = stored[..cut].to_vec();
        if cut > HEADER_BYTES {
            let length = i32::try_from(cut - 12).expect("short");
            short[8..12].copy_from_slice(&length.to_be_bytes());
            let short = Bytes::from(short);
            let decoded = ArrowBatch::parse(&short).and_then(|batch| batch.decode(&schema));
            assert!(decoded.is_err(), "{cut}");
        }
    }
    assert!(ArrowBatch::parse(&stored).and_then(|batch| batch.decode(&schema)).is_ok());
}

/// What becomes of a sound message after `change`, as a client's and as a stored one.
fn lied(change: impl Fn(&mut Message, &mut Vec<u8>)) -> RecordError {
    let (schema, stored) = sample();
    let batch = ArrowBatch::parse(&stored).expect("our own batch");
    let mut message = batch.message(&schema).expect("our own message");
    let mut body = batch.body().to_vec();
    change(&mut message, &mut body);
    let metadata = message.write();
    let body = Bytes::from(body);
    let parts = frame::Parts {
        schema: schema.id(),
        rows: 3,
        statistics: &[0, 0],
        metadata: &metadata,
        body: &body,
        stamp: None,
    };
    let frame = parts.put_together().expect("small");
    let decoded = ArrowBatch::parse(&frame).and_then(|batch| batch.decode(&schema));
    assert_eq!(kind(decoded), Kind::InvalidRecord);
    let intake = Intake::new(&schema, &arrow_schema(&schema)).expect("the table's own schema");
    accept_as_sent(&intake, &metadata, &body, ArrowCompression::None).expect_err("a lie")
}

#[test]
fn i19_counts_and_places_are_held_against_schema_and_body() {
    let far = |offset, length| {
        lied(|message, _| {
            message.buffers[1] = Place { offset, length };
        })
    };
    for error in [
        lied(|message, _| message.nodes.truncate(3)),
        lied(|message, _| message.nodes.push(Node { rows: 3, nulls: 0 })),
        lied(|message, _| message.buffers.truncate(8)),
        lied(|message, _| message.buffers.push(Place { offset: 0, length: 0 })),
        lied(|message, _| message.rows = 0),
        lied(|message, _| message.rows = ARROW_ROWS_MAX + 1),
        lied(|message, _| message.nodes[0].nulls = 4),
        lied(|message, _| message.nodes[0].rows = usize::MAX),
        lied(|message, _| message.body_bytes += 8),
        far(1 << 40, 8),
        far(0, 1 << 40),
        far(usize::MAX, 8),
        far(8, usize::MAX),
    ] {
        assert_eq!(error.kind(), Kind::InvalidRecord, "{error}");
    }
}

#[test]
fn i19_arrays_are_checked_wholly() {
    let (schema, stored) = sample();
    let batch = ArrowBatch::parse(&stored).expect("our own batch");
    let places = batch.message(&schema).expect("our own message").buffers;
    let [_, text_offsets, text, n_nulls, _, _, list_offsets, ..] = places.as_slice() else {
        panic!("{places:?}")
    };
    for error in [
        // Text offsets that fall, and beyond the text; a list's beyond its elements.
        lied(|_, body| body[text_offsets.offset + 4] = 200),
        lied(|_, body| body[text_offsets.offset + 12] = 200),
        lied(|_, body| body[text_offsets.offset + 7] = 0x80),
        lied(|_, body| body[list_offsets.offset + 12] = 7),
        // Text that is not UTF-8, or a character cut in two by the offsets.
        lied(|_, body| body[text.offset] = 0xff),
        lied(|_, body| body[text.offset + 1..text.offset + 3].copy_from_slice("é".as_bytes())),
        // A bitmap with another number of nulls, and a missing one.
        lied(|_, body| body[n_nulls.offset] = 0xff),
        lied(|message, _| message.buffers[3].length = 0),
        // Values shorter than their rows, rows that differ.
        lied(|message, _| message.buffers[4].length = 8),
        lied(|message, _| message.nodes[1].rows = 2),
        lied(|message, _| message.nodes[2].rows = 2),
        // A list with more elements than there are.
        lied(|message, _| message.nodes[3].rows = 7),
    ] {
        assert_eq!(error.kind(), Kind::InvalidRecord, "{error}");
        assert!(error.message().contains("column"), "{error}");
    }
}

#[test]
fn i19_a_broken_element_at_the_end_of_a_buffer_is_not_looked_at() {
    let (schema, stored) = sample();
    let batch = ArrowBatch::parse(&stored).expect("our own batch");
    let message = batch.message(&schema).expect("our own message");
    let intake = Intake::new(&schema, &arrow_schema(&schema)).expect("the table's own schema");
    // Offsets of the text, numbers, offsets of the list, elements: the padding behind each gives it a byte more.
    for (at, whole) in [(4, 12), (6, 16), (8, 24)] {
        let mut longer = message.clone();
        assert_eq!(longer.buffers[at].length, whole, "{at}");
        longer.buffers[at].length += 1;
        longer.body_bytes += 8;
        let body = Bytes::from([batch.body().as_ref(), &[0; 8]].concat());
        let accepted = accept_as_sent(&intake, &longer.write(), &body, ArrowCompression::None);
        let accepted = ArrowBatch::parse(&accepted.expect("whole elements are there")).expect("accepted");
        assert_eq!(accepted.decode(&schema), batch.decode(&schema), "{at}");
    }
    for (at, place) in message.buffers.iter().enumerate().filter(|(_, place)| place.length > 1) {
        let error = lied(|message, _| message.buffers[at].length = place.length - 1);
        assert_eq!(error.kind(), Kind::InvalidRecord, "{at}: {error}");
    }
}

#[test]
fn i19_statistics_that_lie_are_refused() {
    let (_, stored) = sample();
    let at = frame::STATISTICS_AT;
    let with = |at: usize, bytes: &[u8]| {
        let mut forged = stored.to_vec();
        forged[at..at + bytes.len()].copy_from_slice(bytes);
        ArrowBatch::parse(&Bytes::from(forged)).expect("only its statistics changed").statistics()
    };
    assert!(with(at, &[2, 0]).is_ok());
    assert_eq!(kind(with(at, &[0xff, 0xff])), Kind::InvalidRecord);
    assert_eq!(kind(with(at, &[1, 0])), Kind::InvalidRecord, "bytes behind the last column");
    assert_eq!(kind(with(at + 14, &[0xff])), Kind::InvalidRecord, "flags");
    assert_eq!(kind(with(at + 15, &[9])), Kind::InvalidRecord, "a kind of value");
    assert_eq!(kind(with(at + 16, &[200])), Kind::InvalidRecord, "longer than any bound");
}

#[test]
fn a_message_that_is_no_record_batch_is_refused() {
    let (schema, _) = sample();
    let intake = Intake::new(&schema, &arrow_schema(&schema)).expect("the table's own schema");
    let options = IpcWriteOptions::default();
    let mut tracker = DictionaryTracker::new(false);
    let message = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(
        &arrow_schema(&schema),
        &mut tracker,
        &options,
    );
    let refused = accept_as_sent(&intake, &message.ipc_message, &Bytes::new(), ArrowCompression::None);
    assert_eq!(kind(refused), Kind::InvalidRecord);
}

#[test]
fn a_body_out_of_order_is_written_anew() {
    let (schema, stored) = sample();
    let batch = ArrowBatch::parse(&stored).expect("our own batch");
    let mut message = batch.message(&schema).expect("our own message");
    // The numbers of column n, at the end of the body.
    let moved = message.buffers[4];
    let mut body = batch.body().to_vec();
    body.resize(body.len().next_multiple_of(8), 0);
    message.buffers[4].offset = body.len();
    body.extend_from_slice(&batch.body()[moved.offset..moved.end()]);
    message.body_bytes = body.len();
    let intake = Intake::new(&schema, &arrow_schema(&schema)).expect("the table's own schema");
    let accepted = accept_as_sent(&intake, &message.write(), &Bytes::from(body), ArrowCompression::None);
    let accepted = ArrowBatch::parse(&accepted.expect("every buffer is in the body")).expect("accepted");
    assert_eq!(accepted.body(), batch.body());
    assert_eq!(accepted.decode(&schema), batch.decode(&schema));
}
