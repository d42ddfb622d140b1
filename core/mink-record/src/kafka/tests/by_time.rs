//! Records by their timestamp (K-15).

use super::*;

fn at_times(times: &[i64], codec: Codec) -> (BatchHeader, Bytes) {
    let list: Vec<_> = times
        .iter()
        .map(|&timestamp| Owned { timestamp, key: None, value: Some(vec![0]), headers: vec![] })
        .collect();
    let batch = build(&list, codec, None);
    (BatchHeader::parse(&batch).unwrap(), batch)
}

#[test]
fn k_15_the_first_record_at_or_after_the_time() {
    for codec in Codec::ALL {
        let (header, batch) = at_times(&[2, 4, 6, 8], codec);
        let found: Vec<_> = (1..=9)
            .map(|target| first_at_or_after(&header, batch.clone(), target, CAP).unwrap())
            .map(|found| found.map(|record| (record.offset, record.timestamp)))
            .collect();
        let right = [
            Some((0, 2)),
            Some((0, 2)),
            Some((1, 4)),
            Some((1, 4)),
            Some((2, 6)),
            Some((2, 6)),
            Some((3, 8)),
            Some((3, 8)),
            None,
        ];
        assert_eq!(found, right, "{codec}");
    }
}

#[test]
fn k_15_shuffled_times_are_searched_in_offset_order() {
    let (header, batch) = at_times(&[6, 2, 8, 4, 8], Codec::Zstd);
    let offset =
        |target| first_at_or_after(&header, batch.clone(), target, CAP).unwrap().map(|record| record.offset);
    assert_eq!((1..=9).map(offset).collect::<Vec<_>>(), {
        let first = Some(0);
        let third = Some(2);
        [first, first, first, first, first, first, third, third, None]
    });
    let greatest = max_timestamp_record(&header, batch.clone(), CAP).unwrap();
    assert_eq!(greatest, Some(RecordTime { offset: 2, timestamp: 8 }), "the first of the greatest");
}

#[test]
fn log_append_time_is_the_same_for_all_records() {
    let (_, batch) = at_times(&[5, 9, 7], Codec::None);
    let batch = forged(&batch, put(21, [0, 0x08]));
    let header = BatchHeader::parse(&batch).unwrap();
    let first = Some(RecordTime { offset: 0, timestamp: 9 });
    assert_eq!(max_timestamp_record(&header, batch.clone(), CAP).unwrap(), first);
    assert_eq!(first_at_or_after(&header, batch.clone(), 6, CAP).unwrap(), first);
    assert!(decode(&batch).unwrap().iter().all(|record| record.timestamp == 9));
}

#[test]
fn timestamps_that_leave_the_range_are_refused() {
    let batch = forged(&at_times(&[5, 9], Codec::None).1, put(27, i64::MAX.to_be_bytes()));
    assert_eq!(decoded_kind(&batch), Kind::InvalidTimestamp);
}
