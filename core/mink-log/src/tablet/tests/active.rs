//! Which producers are told of.
//!
//! Lives on: tests.
use super::*;

#[test]
fn i3_producers_are_told_of_by_what_readers_see_in_the_order_of_their_ids() {
    let mut log = tablet();
    let told = |log: &Tablet, from: i64| -> Vec<(i64, i16, i32, i64)> {
        let active = log.active_producers(ProducerId(from));
        active.map(|p| (p.producer.0, p.epoch.0, p.last_sequence.0, p.last_commit_time.0)).collect()
    };
    put(&mut log, 2, (9, 0, 0), 10).expect("taken");
    put(&mut log, 1, (9, 0, 2), 11).expect("taken");
    put(&mut log, 3, (4, 5, 0), 12).expect("taken");
    assert_eq!(told(&log, 0), [(4, 5, 2, 12), (9, 0, 2, 11)]);
    assert_eq!(told(&log, 5), [(9, 0, 2, 11)]);
    // Not durable yet: a further batch is not told of, and a producer with nothing else not at all.
    for stamp in [(9, 0, 3), (1, 0, 0)] {
        log.append(&header(1, Some(stamp)), CommitTime(13)).expect("taken");
    }
    assert_eq!(told(&log, 0), [(4, 5, 2, 12), (9, 0, 2, 11)]);
    log.durable_to(log.next_offset());
    assert_eq!(told(&log, 0), [(1, 0, 0, 13), (4, 5, 2, 12), (9, 0, 3, 13)]);
    // Enough of them to lie in trees.
    for id in 20..40 {
        put(&mut log, 1, (id, 0, 0), 14).expect("taken");
    }
    assert_eq!(told(&log, 38), [(38, 0, 0, 14), (39, 0, 0, 14)]);
    assert_eq!(told(&log, 0).len(), 23);
}
