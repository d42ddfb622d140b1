//! Records without a key are found in batches of every codec, and what cannot be opened is refused.

use super::*;

fn batch_of(keys: &[Option<&[u8]>], codec: Codec) -> (BatchHeader, Bytes) {
    let mut builder = BatchBuilder::new();
    for key in keys {
        builder
            .push(RecordRef { timestamp: 9, key: *key, value: Some(b"v"), ..RecordRef::default() })
            .expect("a record");
    }
    let batch = builder.build(codec, None).expect("a batch");
    (BatchHeader::parse(&batch).expect("a batch"), batch)
}

#[test]
fn each_is_counted_and_the_first_are_listed() {
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let (header, batch) = batch_of(&[Some(b"k"), None, Some(b""), None, None], codec);
        let found = keyless(&header, batch.clone(), CAP, 2).expect("opens");
        assert_eq!(found, Keyless { count: 3, first: vec![1, 3] }, "{codec}");
        assert_eq!(keyless(&header, batch, CAP, 0).expect("opens").first, Vec::<u32>::new());
        let (header, batch) = batch_of(&[Some(b"k"), Some(b"")], codec);
        assert_eq!(
            keyless(&header, batch, CAP, 9).expect("opens"),
            Keyless::default(),
            "an empty key is one"
        );
    }
}

#[test]
fn i19_i20_what_cannot_be_opened_is_refused() {
    let (header, batch) = batch_of(&[Some(b"k".as_slice()); 500], Codec::Gzip);
    let error = keyless(&header, batch.clone(), 64, 9).expect_err("a bomb");
    assert_eq!(error.kind(), Kind::InflatedTooLarge);
    let mut broken = batch.to_vec();
    broken[HEADER_BYTES..].fill(0xee);
    assert_eq!(keyless(&header, broken.into(), CAP, 9).expect_err("no gzip").kind(), Kind::InvalidRecord);
    let (header, batch) = batch_of(&[Some(b"k"), Some(b"l")], Codec::None);
    let mut cut = batch.to_vec();
    cut[HEADER_BYTES] = 0x7e;
    assert_eq!(keyless(&header, cut.into(), CAP, 9).expect_err("no record").kind(), Kind::InvalidRecord);
}
