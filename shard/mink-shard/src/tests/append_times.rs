//! Batches whose records get the time of appending: decided once, where the offset is, and stored.
use super::rig::*;
use mink_record::kafka::BatchHeader;
use mink_router::{Located, Position};
use mink_types::{Offset, Timestamp, TimestampType};
use s3stream::ChunkEnd;

#[test]
fn the_commit_time_stands_in_the_batch_in_the_answer_and_in_the_entry() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let sent = batch_at(3, 10);
        let ticket = rig.append_with(bucket, sent.clone(), TimestampType::LogAppendTime).await;
        let (entries, told) = rig.chunk().await;
        told(ChunkEnd::Durable);
        let acked = ticket.durable().await.expect("durable");
        let entry = &entries[0];
        assert_eq!(
            (entry.commit_time, entry.max_timestamp),
            (acked.commit_time, Timestamp(acked.commit_time.0))
        );
        let header = BatchHeader::parse(&entry.bytes).expect("a batch");
        header.verify_checksum(&entry.bytes).expect("the checksum is right");
        assert_eq!(header.attributes.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!((header.max_timestamp, header.base_timestamp), (acked.commit_time.0, 10));
        assert_eq!(&entry.bytes[61..], &sent[61..]);
        // Neither the kind of time nor anything else is copied twice.
        assert_eq!(rig.stats().await.copied_bytes, sent.len() as u64);
        let plain = rig.append_with(bucket, sent.clone(), TimestampType::CreateTime).await;
        let (entries, told) = rig.chunk().await;
        told(ChunkEnd::Durable);
        assert_eq!(plain.durable().await.expect("durable").base_offset, Offset(3));
        assert_eq!(entries[0].max_timestamp, Timestamp(10));
        assert_eq!(&entries[0].bytes[16..], &sent[16..], "as sent");
        for (time, found) in [(13, Some(0)), (acked.commit_time.0, Some(0)), (acked.commit_time.0 + 1, None)]
        {
            let located = rig.locate(bucket, Position::at_or_after(Timestamp(time))).await.expect("readable");
            let base = match located {
                Located::Batch { batch, .. } => Some(bases(&[batch])[0]),
                _ => None,
            };
            assert_eq!(base, found, "at {time}");
        }
    });
}

#[test]
fn i6_a_repeat_is_told_the_time_of_the_batch_that_is_there() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let send = || rig.append_with(bucket, stamped(2, 7, 0), TimestampType::LogAppendTime);
        let original = send().await;
        let (entries, told) = rig.chunk().await;
        let in_flight = send().await;
        told(ChunkEnd::Durable);
        let first = original.durable().await.expect("durable");
        assert_eq!(entries[0].max_timestamp.0, first.commit_time.0);
        rig.runtime.service().sleep(std::time::Duration::from_secs(5)).await;
        rig.lease().await;
        let later = send().await;
        for repeat in [in_flight, later] {
            let acked = repeat.durable().await.expect("durable");
            assert_eq!((acked.duplicate, acked.commit_time), (true, first.commit_time));
        }
    });
}
