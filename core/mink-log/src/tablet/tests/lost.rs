//! P-14, I6: producers of a log of which a part is lost, with what it told of them (decision 0016).
use super::*;
use crate::lost_below;

/// Producer 7 wrote offsets 0..4 in batches of 2, producer 8 offset 4; then 5..9 are lost. Producer 9 wrote offset 9.
fn log() -> Tablet {
    let logged = |producer, base_sequence, base_offset, count| LoggedBatch {
        base_offset: Offset(base_offset),
        count,
        commit_time: CommitTime(10),
        stamp: Some(Stamp {
            producer: ProducerId(producer),
            epoch: ProducerEpoch(3),
            base_sequence: Sequence(base_sequence),
        }),
    };
    let old = [logged(7, 0, 0, 2), logged(7, 2, 2, 2), logged(8, 40, 4, 1)];
    let snapshot = fold_producers(&[], old, LIMITS.producers).expect("sound");
    let recovered = Recovered {
        end: Offset(10),
        producers: lost_below(&snapshot, Offset(9)).expect("sound"),
        batches: vec![logged(9, 5, 9, 1)],
        ..Recovered::default()
    };
    Tablet::recover(recovered, LIMITS).expect("opens")
}

/// The same log after it was opened anew from its own snapshot.
fn again(log: &Tablet) -> Tablet {
    let (end, producers) = (log.next_offset(), log.producers_snapshot());
    Tablet::recover(Recovered { end, producers, ..Recovered::default() }, LIMITS).expect("opens")
}

#[test]
fn i6_what_is_known_stays_a_repeat() {
    for mut log in [log(), again(&log())] {
        assert_eq!([0, 2].map(|sequence| base(put(&mut log, 2, (7, 3, sequence), 10))), [0, 2]);
        assert_eq!(base(put(&mut log, 1, (8, 3, 40), 10)), 4);
        assert_eq!(base(put(&mut log, 1, (9, 3, 5), 10)), 9);
        assert_eq!(log.next_offset(), Offset(10), "nothing is stored twice");
        // Older than what is remembered: it was stored, and is no repeat that can be named.
        assert!(is_gap(put(&mut log, 1, (8, 3, 39), 10), 41));
        // Cut otherwise: a part of it is stored.
        assert!(is_gap(put(&mut log, 3, (7, 3, 2), 10), 4));
        assert_eq!(log.next_offset(), Offset(10));
    }
}

#[test]
fn p_14_who_may_have_written_there_goes_on_with_any_later_batch() {
    for mut log in [log(), again(&log()), again(&again(&log()))] {
        // Its batches 4..8 were acked and are lost.
        assert_eq!(base(put(&mut log, 2, (7, 3, 8), 10)), 10);
        assert_eq!(base(put(&mut log, 2, (7, 3, 8), 10)), 10, "a repeat");
        assert!(is_gap(put(&mut log, 2, (7, 3, 12), 10), 10), "from here on it is known again");
        assert!(is_gap(put(&mut log, 2, (7, 3, 2), 10), 10));
        // What it sends again was lost: it is stored again.
        assert_eq!(base(put(&mut log, 1, (8, 3, 41), 10)), 12);
        assert_eq!(base(put(&mut log, 1, (8, 3, 42), 10)), 13);
        assert_eq!(base(put(&mut log, 1, (5, 0, 1_000), 10)), 14, "nothing is known of it");
        assert_eq!(log.producers_snapshot()[4], 1, "all are known again");
    }
}

#[test]
fn p_14_who_has_written_behind_the_loss_is_known() {
    for mut log in [log(), again(&log())] {
        assert!(is_gap(put(&mut log, 1, (9, 3, 7), 10), 6));
        assert_eq!(base(put(&mut log, 1, (9, 3, 6), 10)), 10);
    }
}

#[test]
fn p_14_an_epoch_that_began_in_the_loss_goes_on() {
    let mut log = log();
    assert!(matches!(put(&mut log, 1, (7, 2, 4), 10), Err(AppendRefused::ProducerFenced { .. })));
    assert!(is_gap(put(&mut log, 1, (9, 4, 7), 10), 0));
    assert_eq!(base(put(&mut log, 1, (7, 4, 33), 10)), 10);
}

#[test]
fn k_7_sequences_go_on_in_a_circle() {
    let mut log = log();
    assert_eq!(base(put(&mut log, 1, (8, 3, i32::MAX / 2), 10)), 10);
    let mut log = again(&self::log());
    assert!(is_gap(put(&mut log, 1, (8, 3, i32::MAX), 10), 41), "before rather than after");
    assert_eq!(base(put(&mut log, 1, (7, 3, 9), 10)), 10);
}

#[test]
fn p_14_a_log_of_which_nothing_can_be_read_takes_whoever_writes_on() {
    let producers = lost_below(&[], Offset(9)).expect("sound");
    let recovered = Recovered { end: Offset(9), producers, ..Recovered::default() };
    let mut log = Tablet::recover(recovered, LIMITS).expect("opens");
    assert_eq!(base(put(&mut log, 1, (7, 3, 77), 10)), 9);
    assert!(is_gap(put(&mut log, 1, (7, 3, 79), 10), 78));
}
