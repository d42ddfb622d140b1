//! Runs of stored batches.

use super::*;

#[test]
fn a_run_gives_each_batch_its_slice() {
    let all: Vec<_> = Codec::ALL.into_iter().map(|codec| simple(2, codec)).collect();
    let found: Vec<_> = batches(all.concat().into()).map(|batch| batch.unwrap().1).collect();
    assert_eq!(found, all);
    assert_eq!(batches(Bytes::new()).count(), 0);
}

#[test]
fn a_run_cut_in_its_last_batch_ends_with_incomplete_there() {
    let batch = simple(2, Codec::None);
    for cut in 1..batch.len() {
        let run = Bytes::from([&batch, &batch[..cut]].concat());
        let mut batches = batches(run);
        assert_eq!(batches.next().unwrap().unwrap().1, batch);
        assert_eq!(batches.next().unwrap().unwrap_err().kind(), Kind::Incomplete, "cut at {cut}");
        assert_eq!(batches.rest().len(), cut);
        assert!(batches.next().is_none());
    }
}

#[test]
fn i19_garbage_in_a_run_is_an_error_not_a_loop() {
    let run = Bytes::from([&simple(1, Codec::None)[..], &[0; 100]].concat());
    let kinds: Vec<_> = batches(run).map(|batch| batch.map(|_| ()).map_err(|error| error.kind())).collect();
    assert_eq!(kinds, [Ok(()), Err(Kind::OldFormat)]);
    let zero_length = Bytes::from(forged(&simple(1, Codec::None), put(8, [0; 4])).to_vec());
    assert_eq!(batches(zero_length).next().unwrap().unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn a_short_buffer_gets_no_offset() {
    let mut short = [9_u8; HEADER_BYTES - 1];
    assert_eq!(set_offset_and_epoch(&mut short, 1, 1).unwrap_err().kind(), Kind::Incomplete);
    assert_eq!(short, [9; HEADER_BYTES - 1]);
}
