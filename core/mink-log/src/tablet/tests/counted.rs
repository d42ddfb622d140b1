//! Writers whose sequences are counted from 0 in a log.
use super::*;

/// I1: below what the log knows of such a writer, all is stored: a repeat of it may be acked.
#[test]
fn i1_a_writer_whose_sequences_are_counted_begins_with_0_whatever_the_log_holds() {
    let mut log = tablet();
    put(&mut log, 3, (7, 0, 0), 10).expect("another's");
    let of = |first| header(2, Some((8, 0, first)));
    assert!(is_gap(log.append_counted(&of(5), CommitTime(10)), 0));
    assert_eq!(base(log.append_counted(&of(0), CommitTime(10))), 3);
    assert!(is_gap(log.append_counted(&of(5), CommitTime(10)), 2));
    assert_eq!(base(log.append_counted(&of(2), CommitTime(10))), 5);
    assert_eq!(base(log.append_counted(&of(0), CommitTime(10))), 3, "a repeat");
    assert_eq!(base(log.append_counted(&header(1, None), CommitTime(10))), 7, "nobody's");
}
