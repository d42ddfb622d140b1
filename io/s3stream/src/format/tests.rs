//! The format: golden bytes, every cut and every flipped bit, hostile counts.
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::entry::{Entry, EntryKind, EpochStart, KnownChecksum};
use crate::testing::{chain, entry, uuid, witness};
use mink_types::{BucketEpoch, Offset, WalNumber};

fn header(kind: ObjectKind, number: u64) -> Header {
    Header {
        kind,
        cluster: uuid(),
        chain: chain(7),
        number,
        nonce: Nonce(*b"nonce-nonce-1234"),
        witness: witness(42),
        durable_through: number.checked_sub(2).map(WalNumber),
    }
}

fn entries() -> Vec<Entry> {
    vec![
        entry(2, 3, 10, 2, b"second bucket, first batch"),
        entry(1, 0, 0, 1, b"first"),
        entry(2, 3, 12, 1, b"second bucket, second batch"),
        Entry { kind: EntryKind::Decision, count: 0, producer: None, ..entry(1, 4, 1, 1, b"decided") },
        entry(1, 4, 1, 5, b"first, next epoch"),
    ]
}

fn wal_object(entries: &[Entry]) -> Vec<u8> {
    build(&header(ObjectKind::Data, 5), by_bucket(entries.iter())).payload.to_bytes().to_vec()
}

fn stream_object(entries: &[Entry]) -> Vec<u8> {
    let mut parts = by_bucket(entries.iter());
    for (at, part) in parts.values_mut().enumerate() {
        part.producers = (at == 0).then(|| "snapshot".into());
        part.epochs = epochs_of(&part.entries);
        if at == 1 {
            part.epochs.insert(0, EpochStart { epoch: BucketEpoch(1), start: Offset(4) });
        }
    }
    build(&header(ObjectKind::Stream, 9), parts).payload.to_bytes().to_vec()
}

fn seal_object() -> Vec<u8> {
    let by = Sealer { chain: chain(8) };
    seal(&header(ObjectKind::Seal { by }, 6)).payload.to_bytes().to_vec()
}

/// Reads an object as a takeover does, and then every block as a reader does.
fn decode(object: &[u8]) -> Result<(Header, Footer), FormatError> {
    let header = Header::decode(object)?;
    let (_, footer) = split_end(object, object.len() as u64)?;
    let footer = footer.ok_or(FormatError::Short { part: "object" })?;
    for block in footer.buckets.iter().flat_map(|part| &part.blocks) {
        let start = usize::try_from(block.position).unwrap();
        codec::check("block", &object[start..start + block.length as usize], block.crc)?;
    }
    Ok((header, footer))
}

/// The entries that an object holds, sorted as it holds them.
fn contents(object: &[u8], footer: &Footer) -> Vec<Entry> {
    let mut out = Vec::new();
    for part in &footer.buckets {
        for block in &part.blocks {
            let mut at = usize::try_from(block.position).unwrap();
            for index in &block.entries {
                let bytes = &object[at..at + index.length as usize];
                at += index.length as usize;
                out.push(Entry {
                    bucket: part.bucket,
                    epoch: block.epoch,
                    base_offset: index.base_offset,
                    count: index.count,
                    kind: index.kind,
                    commit_time: index.commit_time,
                    max_timestamp: index.max_timestamp,
                    producer: index.producer,
                    known: None,
                    bytes: bytes.to_vec().into(),
                });
            }
        }
    }
    out
}

fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by_key(|entry| entry.bucket);
    entries
}

#[test]
fn a_checksum_that_is_known_gives_the_same_object() {
    let large = |base: u64, from: usize, known: bool| {
        let bytes: Vec<u8> = (0..20_000 + base).map(|n| n.to_le_bytes()[0] ^ 7).collect();
        let crc = crc32c::crc32c(&bytes[from..]);
        let known = known.then_some(KnownChecksum { from, crc });
        Entry { known, ..entry(1, 3, base, 1, &bytes) }
    };
    let object = |known| {
        let short = entry(1, 3, 2, 1, b"short");
        let short = Entry { known: Some(KnownChecksum { from: 1, crc: crc32c::crc32c(b"hort") }), ..short };
        wal_object(&[large(0, 21, known), large(1, 0, known), short, large(3, 21, known)])
    };
    assert_eq!(object(true), object(false));
    decode(&object(true)).unwrap();
}

#[test]
fn an_object_holds_its_entries_by_bucket_and_offset() {
    let object = wal_object(&entries());
    let (found, footer) = decode(&object).unwrap();
    assert_eq!(found, header(ObjectKind::Data, 5));
    assert_eq!(contents(&object, &footer), sorted(entries()));
    let first = &footer.buckets[0];
    assert_eq!(first.blocks.len(), 2, "an epoch begins a block");
    assert_eq!(first.range().end, Offset(6));
    assert_eq!(
        first.epochs,
        epochs_of(&entries().iter().filter(|e| e.bucket == first.bucket).collect::<Vec<_>>())
    );
}

#[test]
fn a_block_is_closed_at_a_mebibyte() {
    let body = vec![3; 400 << 10];
    let entries: Vec<Entry> = (0..5).map(|n| entry(1, 0, n, 1, &body)).collect();
    let (_, footer) = decode(&wal_object(&entries)).unwrap();
    let sizes: Vec<usize> = footer.buckets[0].blocks.iter().map(|block| block.entries.len()).collect();
    assert_eq!(sizes, vec![2, 2, 1]);
}

#[test]
fn the_bound_of_an_objects_length_holds() {
    let entries: Vec<Entry> = (0..100).map(|n| entry(n, 0, 0, 1, b"x")).collect();
    let object = wal_object(&entries);
    assert!(object.len() as u64 <= encoded_bytes(100, 100), "{}", object.len());
}

/// A person who changes the format on purpose runs the tests with `MINK_GOLDEN=write` and raises the version.
fn golden(name: &str, object: &[u8]) {
    let path = format!("{}/testdata/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("MINK_GOLDEN").as_deref() == Ok("write") {
        std::fs::write(&path, object).unwrap();
    }
    let kept = std::fs::read(&path).unwrap();
    assert!(kept == object, "{name}: the bytes differ from those of format version {FORMAT_VERSION}");
    decode(&kept).unwrap();
}

#[test]
fn version_1_is_byte_for_byte_what_it_was() {
    golden("wal-data-v1.bin", &wal_object(&entries()));
    golden("wal-seal-v1.bin", &seal_object());
    golden("stream-v1.bin", &stream_object(&entries()));
}

#[test]
fn a_seal_names_its_maker_and_holds_nothing() {
    let (header, footer) = decode(&seal_object()).unwrap();
    assert_eq!(header.kind, ObjectKind::Seal { by: Sealer { chain: chain(8) } });
    assert!(footer.buckets.is_empty());
}

#[test]
fn a_later_version_is_refused_with_the_remedy() {
    let mut object = wal_object(&entries());
    object[8] = 2;
    let error = decode(&object).unwrap_err();
    assert_eq!(error, FormatError::Version { version: 2 });
    assert!(error.to_string().contains("upgrade"));
}

#[test]
fn p_1_every_cut_and_every_flipped_bit_is_noticed() {
    for object in [wal_object(&entries()), seal_object(), stream_object(&entries())] {
        for len in 0..object.len() {
            assert!(decode(&object[..len]).is_err(), "cut to {len}");
        }
        for at in 0..object.len() {
            for bit in 0..8 {
                let mut bad = object.clone();
                bad[at] ^= 1 << bit;
                assert!(decode(&bad).is_err(), "bit {bit} of byte {at}");
            }
        }
        let mut longer = object.clone();
        longer.push(0);
        assert!(decode(&longer).is_err());
    }
}

/// A footer with bytes changed and its checksums made right again, as an attacker would.
fn forge(object: &[u8], changes: &[(usize, u8)]) -> Result<(Header, Footer), FormatError> {
    let (tail, _) = split_end(object, object.len() as u64)?;
    let start = usize::try_from(tail.footer_position).unwrap();
    let mut footer = object[start..start + tail.footer_length as usize].to_vec();
    for (at, byte) in changes {
        let at = at % footer.len();
        footer[at] = *byte;
    }
    let mut forged = object[..start].to_vec();
    let footer_crc = crc32c::crc32c(&footer);
    forged.extend_from_slice(&footer);
    Tail { footer_crc, ..tail }.encode(&mut forged);
    decode(&forged)
}

proptest! {
    #[test]
    fn i19_no_bytes_make_a_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = decode(&bytes);
        let _ = Header::decode(&bytes);
        let _ = Tail::decode(&bytes, bytes.len() as u64);
        let _ = Footer::decode(&bytes, 1 << 30);
    }

    #[test]
    fn i19_a_forged_footer_is_refused_or_consistent(changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..4)) {
        if let Ok((_, footer)) = forge(&stream_object(&entries()), &changes) {
            prop_assert!(footer.buckets.windows(2).all(|pair| pair[0].bucket < pair[1].bucket));
            for part in &footer.buckets {
                let all: Vec<_> = part.entries().map(|(_, entry)| *entry).collect();
                prop_assert!(all.windows(2).all(|pair| pair[0].end() <= pair[1].base_offset));
            }
        }
    }

    #[test]
    fn k_28_a_count_never_sizes_an_allocation(count in 1_000u32..) {
        let mut bytes = count.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0; 64]);
        prop_assert!(Footer::decode(&bytes, 1 << 30).is_err());
    }

    #[test]
    fn whatever_goes_in_comes_out(
        shape in proptest::collection::vec((0u64..6, 1u32..5, 0usize..2_000, any::<bool>(), any::<i64>()), 0..60)
    ) {
        let mut next: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
        let mut all = Vec::new();
        for (n, count, length, new_epoch, time) in shape {
            let (epoch, base) = next.entry(n).or_default();
            *epoch += u32::from(new_epoch);
            let mut made = entry(n, *epoch, *base, count, &vec![u8::try_from(length % 251).unwrap(); length]);
            (made.max_timestamp.0, made.commit_time.0) = (time, time);
            *base += u64::from(count);
            all.push(made);
        }
        let object = build(&header(ObjectKind::Stream, 1), by_bucket(all.iter())).payload.to_bytes().to_vec();
        let (_, footer) = decode(&object).unwrap();
        prop_assert_eq!(contents(&object, &footer), sorted(all));
    }
}
