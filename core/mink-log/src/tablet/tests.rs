//! The rules by example, and the tablet against a model over random histories.
use super::*;
use crate::{EVICTABLE_IDLE_MS, WINDOW_BATCHES, fold_producers};
use mink_record::kafka::{BatchBuilder, Codec, ProducerStamp, RecordRef};
use proptest::prelude::*;

mod active;
mod counted;
mod lost;

const LIMITS: TabletLimits = TabletLimits {
    batch_bytes_max: 1 << 20,
    producers: ProducerLimits { producers_max: 100, expiry_ms: 2_000 },
};

fn header(count: u32, stamp: Option<(i64, i16, i32)>) -> BatchHeader {
    let mut builder = BatchBuilder::new();
    for _ in 0..count {
        builder
            .push(RecordRef { timestamp: 5, value: Some(b"v"), ..RecordRef::default() })
            .expect("a record");
    }
    let stamp = stamp.map(|(id, epoch, base_sequence)| ProducerStamp { id, epoch, base_sequence });
    let bytes = builder.build(Codec::None, stamp).expect("a batch");
    BatchHeader::parse(&bytes).expect("sound")
}

fn tablet() -> Tablet {
    Tablet::recover(Recovered::default(), LIMITS).expect("an empty log")
}

/// Appends and, when ordered, makes durable at once.
fn put(
    tablet: &mut Tablet,
    count: u32,
    stamp: (i64, i16, i32),
    now: i64,
) -> Result<AppendStep, AppendRefused> {
    let step = tablet.append(&header(count, Some(stamp)), CommitTime(now))?;
    tablet.durable_to(tablet.next_offset());
    Ok(step)
}

fn base(step: Result<AppendStep, AppendRefused>) -> u64 {
    match step.expect("taken") {
        AppendStep::Ordered { base_offset, .. }
        | AppendStep::DuplicateDurable { base_offset, .. }
        | AppendStep::DuplicateInFlight { base_offset, .. } => base_offset.0,
    }
}

fn is_gap(step: Result<AppendStep, AppendRefused>, expected: i32) -> bool {
    matches!(step, Err(AppendRefused::OutOfOrder { expected: Some(Sequence(e)), .. }) if e == expected)
}

#[test]
fn k_9_any_of_the_last_five_repeated_in_any_order_gives_its_first_offset() {
    let mut log = tablet();
    for sequence in 0..5 {
        assert_eq!(
            base(put(&mut log, 2, (7, 0, sequence * 2), 10)),
            u64::try_from(sequence).expect("small") * 2
        );
    }
    for sequence in [3, 0, 4, 1, 2] {
        let step = put(&mut log, 2, (7, 0, sequence * 2), 99).expect("a repeat");
        let expected = AppendStep::DuplicateDurable {
            base_offset: Offset(u64::try_from(sequence).expect("small") * 2),
            commit_time: CommitTime(10),
        };
        assert_eq!(step, expected);
    }
    assert_eq!(log.next_offset(), Offset(10));
}

#[test]
fn t_10_a_repeat_older_than_the_window_is_out_of_order_and_changes_nothing() {
    let mut log = tablet();
    for sequence in 0..6 {
        put(&mut log, 1, (7, 0, sequence), 10).expect("in order");
    }
    let before = log.clone();
    assert!(is_gap(put(&mut log, 1, (7, 0, 0), 10), 6));
    assert_eq!(log, before);
    assert_eq!(base(put(&mut log, 1, (7, 0, 1), 10)), 1);
}

#[test]
fn k_7_sequences_wrap_and_repeats_around_the_wrap_are_found() {
    let mut log = tablet();
    put(&mut log, 1, (7, 0, 0), 10).expect("first");
    // A producer that was forgotten comes back with any sequence, here one just below the wrap.
    let start = i32::MAX - 3;
    put(&mut log, 3, (8, 0, start), 10).expect("unknown producer in a log with data");
    assert_eq!(base(put(&mut log, 4, (8, 0, i32::MAX), 10)), 4);
    for (n, sequence) in [3, 4, 5].into_iter().enumerate() {
        assert_eq!(base(put(&mut log, 1, (8, 0, sequence), 10)), 8 + u64::try_from(n).expect("small"));
    }
    assert_eq!(base(put(&mut log, 4, (8, 0, i32::MAX), 10)), 4);
    assert_eq!(base(put(&mut log, 3, (8, 0, start), 10)), 1);
    // Batches from before the wrap are not found once they left the window.
    put(&mut log, 1, (8, 0, 6), 10).expect("next");
    assert!(is_gap(put(&mut log, 3, (8, 0, start), 10), 7));
}

#[test]
fn k_10_a_log_that_never_held_a_record_takes_only_a_first_batch() {
    let mut log = tablet();
    assert!(is_gap(put(&mut log, 1, (7, 0, 17), 10), 0));
    assert_eq!(log.next_offset(), Offset(0));
    put(&mut log, 17, (7, 0, 0), 10).expect("the first batch");
    put(&mut log, 1, (7, 0, 17), 10).expect("its successor");
    put(&mut log, 1, (8, 0, 1000), 10).expect("an unknown producer where there is data");
}

#[test]
fn k_10_a_log_whose_records_were_all_dropped_did_hold_one() {
    let recovered = Recovered { start: Offset(9), end: Offset(9), ..Recovered::default() };
    let mut log = Tablet::recover(recovered, LIMITS).expect("empty but not new");
    assert_eq!(base(put(&mut log, 1, (8, 0, 1000), 10)), 9);
}

#[test]
fn an_old_epoch_is_fenced_and_a_new_one_starts_at_zero() {
    let mut log = tablet();
    put(&mut log, 1, (7, 3, 0), 10).expect("first");
    assert!(is_gap(put(&mut log, 1, (7, 4, 1), 10), 0));
    put(&mut log, 1, (7, 4, 0), 10).expect("a new epoch");
    let refused = put(&mut log, 1, (7, 3, 1), 10);
    assert!(
        matches!(refused, Err(AppendRefused::ProducerFenced { current: ProducerEpoch(4), .. })),
        "{refused:?}"
    );
    // The window is that of the new epoch alone.
    assert_eq!(base(put(&mut log, 1, (7, 4, 0), 10)), 1);
}

#[test]
fn i6_a_repeat_in_flight_waits_for_the_original() {
    let mut log = tablet();
    let batch = header(3, Some((7, 0, 0)));
    log.append(&batch, CommitTime(10)).expect("ordered");
    let waits =
        AppendStep::DuplicateInFlight { base_offset: Offset(0), end: Offset(3), commit_time: CommitTime(10) };
    assert_eq!(log.append(&batch, CommitTime(11)), Ok(waits));
    assert!(log.durable_to(Offset(3)));
    let done = AppendStep::DuplicateDurable { base_offset: Offset(0), commit_time: CommitTime(10) };
    assert_eq!(log.append(&batch, CommitTime(12)), Ok(done));
}

#[test]
fn t_9_expiry_goes_by_logged_times_so_the_clock_of_the_next_owner_decides_nothing() {
    let mut log = tablet();
    put(&mut log, 1, (7, 0, 0), 0).expect("first");
    // Long after the expiry, and nothing was logged in between: the producer is still known.
    assert_eq!(base(put(&mut log.clone(), 1, (7, 0, 0), 9_000)), 0);
    assert!(is_gap(put(&mut log.clone(), 1, (7, 0, 2), 9_000), 1));
    // Another producer's batch moves the log's time beyond the expiry.
    let step = put(&mut log, 1, (8, 0, 0), 2_001).expect("another producer");
    assert!(
        matches!(step, AppendStep::Ordered { expired: 1, .. }),
        "told, so that it can be counted: {step:?}"
    );
    assert_eq!(log.producers(), 1);
    assert_eq!(base(put(&mut log, 1, (7, 0, 5), 0)), 2, "forgotten, so taken as it comes");
}

#[test]
fn t_9_a_batch_without_a_producer_moves_time_too_and_replay_needs_only_the_last_time() {
    let mut log = tablet();
    put(&mut log, 1, (7, 0, 0), 0).expect("first");
    log.append(&header(1, None), CommitTime(2_001)).expect("not idempotent");
    assert_eq!(log.producers(), 0);
    let stamp = Stamp { producer: ProducerId(7), epoch: ProducerEpoch(0), base_sequence: Sequence(0) };
    let recovered = Recovered {
        end: Offset(2),
        last_commit_time: CommitTime(2_001),
        batches: vec![LoggedBatch {
            base_offset: Offset(0),
            count: 1,
            commit_time: CommitTime(0),
            stamp: Some(stamp),
        }],
        ..Recovered::default()
    };
    assert_eq!(Tablet::recover(recovered, LIMITS).expect("sound").producers(), 0);
}

#[test]
fn i20_a_full_table_makes_room_only_for_idle_producers() {
    let limits =
        TabletLimits { producers: ProducerLimits { producers_max: 2, expiry_ms: 100 * 3_600_000 }, ..LIMITS };
    let mut log = Tablet::recover(Recovered::default(), limits).expect("an empty log");
    put(&mut log, 1, (1, 0, 0), 0).expect("first");
    put(&mut log, 1, (2, 0, 0), 5).expect("second");
    let full = Err(AppendRefused::TooManyProducers { producers: 2 });
    assert_eq!(put(&mut log, 1, (3, 0, 0), EVICTABLE_IDLE_MS), full);
    put(&mut log, 1, (1, 0, 1), 10).expect("known ones go on");
    put(&mut log, 1, (3, 0, 0), EVICTABLE_IDLE_MS + 6).expect("2 is idle for more than an hour");
    assert_eq!(log.producers(), 2);
    assert_eq!(base(put(&mut log, 1, (1, 0, 1), 0)), 2, "1 is still remembered");
}

#[test]
fn commit_time_never_goes_back() {
    let mut log = tablet();
    log.append(&header(1, None), CommitTime(50)).expect("ordered");
    let step = log.append(&header(1, None), CommitTime(20)).expect("ordered");
    assert!(matches!(step, AppendStep::Ordered { commit_time: CommitTime(50), .. }), "{step:?}");
}

#[test]
fn i3_reads_see_what_is_durable_and_no_more() {
    let mut log = tablet();
    log.append(&header(4, None), CommitTime(0)).expect("ordered");
    assert_eq!(log.read(Offset(0)), Ok(ReadStep::AtEnd));
    assert!(log.read(Offset(1)).is_err());
    assert!(log.durable_to(Offset(4)) && !log.durable_to(Offset(2)));
    assert_eq!(log.read(Offset(3)), Ok(ReadStep::Records { until: Offset(4) }));
    assert_eq!(log.read(Offset(4)), Ok(ReadStep::AtEnd));
    log.start_at(Offset(9));
    assert_eq!(log.log_start(), Offset(4), "never past the high watermark");
    let outside = OutOfRange { offset: Offset(3), start: Offset(4), end: Offset(4) };
    assert_eq!(log.read(Offset(3)), Err(outside));
}

#[test]
fn i19_a_batch_above_the_tables_limit_is_refused_and_changes_nothing() {
    let mut log = tablet();
    let limits = TabletLimits { batch_bytes_max: 60, ..LIMITS };
    log.set_limits(limits);
    let before = log.clone();
    let refused = log.append(&header(1, None), CommitTime(0));
    assert!(matches!(refused, Err(AppendRefused::TooLarge { bytes_max: 60, .. })), "{refused:?}");
    assert_eq!(log, before);
}

#[test]
fn contradictions_in_recovered_state_keep_the_bucket_closed() {
    let batch = LoggedBatch { base_offset: Offset(3), count: 2, commit_time: CommitTime(0), stamp: None };
    let good = Recovered { end: Offset(5), batches: vec![batch], ..Recovered::default() };
    assert!(Tablet::recover(good.clone(), LIMITS).is_ok());
    let behind = Recovered { start: Offset(6), ..good.clone() };
    assert!(matches!(Tablet::recover(behind, LIMITS), Err(RecoverError::StartBehindEnd { .. })));
    let cut = Recovered { end: Offset(4), ..good.clone() };
    assert!(matches!(Tablet::recover(cut, LIMITS), Err(RecoverError::BatchOutOfPlace { .. })));
    let twice = Recovered { batches: vec![batch, batch], ..good.clone() };
    assert!(matches!(Tablet::recover(twice, LIMITS), Err(RecoverError::BatchOutOfPlace { .. })));
    let ahead =
        fold_producers(&[], [LoggedBatch { count: 9, base_offset: Offset(0), ..batch }], LIMITS.producers)
            .expect("sound");
    let ahead = Recovered { producers: ahead, batches: vec![], ..good.clone() };
    assert!(matches!(Tablet::recover(ahead, LIMITS), Err(RecoverError::ProducersAhead { .. })));
    let far = Recovered { end: Offset(u64::MAX), batches: vec![], ..good };
    assert!(matches!(Tablet::recover(far, LIMITS), Err(RecoverError::EndTooLarge { .. })));
}

/// One step of a random history.
#[derive(Clone, Debug)]
enum Act {
    /// The producer sends its next batch, or repeats the one `back` before it.
    Send {
        producer: i64,
        count: u32,
        back: usize,
        passed: i64,
    },
    /// A sequence out of the blue.
    Gap {
        producer: i64,
        sequence: i32,
    },
    NewEpoch {
        producer: i64,
    },
    Plain {
        count: u32,
        passed: i64,
    },
    Durable,
    /// Another owner takes over from a snapshot taken `after` batches back.
    Replay {
        after: usize,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let producer = 0_i64..5;
    let act = prop_oneof![
        6 => (producer.clone(), 1_u32..4, prop_oneof![3 => Just(0_usize), 2 => 1_usize..9], 0_i64..900)
            .prop_map(|(producer, count, back, passed)| Act::Send { producer, count, back, passed }),
        1 => (producer.clone(), 0_i32..40).prop_map(|(producer, sequence)| Act::Gap { producer, sequence }),
        1 => producer.prop_map(|producer| Act::NewEpoch { producer }),
        1 => (1_u32..4, 0_i64..2_500).prop_map(|(count, passed)| Act::Plain { count, passed }),
        2 => Just(Act::Durable),
        2 => (0_usize..30).prop_map(|after| Act::Replay { after }),
    ];
    proptest::collection::vec(act, 1..120)
}

/// The rules told in the plainest way: the whole log, searched.
#[derive(Default)]
struct Model {
    log: Vec<LoggedBatch>,
    time: i64,
}

impl Model {
    fn end(&self) -> Offset {
        self.log.last().map_or(Offset(0), LoggedBatch::end)
    }

    /// The batches of a producer since it was last forgotten, by scanning the log.
    fn known(&self, producer: i64) -> Vec<(Stamp, LoggedBatch)> {
        let mut known: Vec<(Stamp, LoggedBatch)> = Vec::new();
        for batch in &self.log {
            if known.last().is_some_and(|(_, last)| batch.commit_time.0 - last.commit_time.0 > 2_000) {
                known.clear();
            }
            if let Some(stamp) = batch.stamp.filter(|stamp| stamp.producer.0 == producer) {
                known.push((stamp, *batch));
            }
        }
        let epoch = known.last().map(|(stamp, _)| stamp.epoch);
        known.retain(|(stamp, _)| Some(stamp.epoch) == epoch);
        known
    }

    /// The offset that the rules give a batch, and whether it is new; none for a refusal.
    fn judge(&self, stamp: (i64, i16, i32), count: u32) -> Option<(Offset, bool)> {
        let known = self.known(stamp.0);
        let Some((last_stamp, last)) = known.last() else {
            return (stamp.2 == 0 || !self.log.is_empty()).then(|| (self.end(), true));
        };
        if stamp.1 != last_stamp.epoch.0 {
            return (stamp.1 > last_stamp.epoch.0 && stamp.2 == 0).then(|| (self.end(), true));
        }
        let repeated = known
            .iter()
            .rev()
            .take(WINDOW_BATCHES)
            .find(|(s, batch)| s.base_sequence.0 == stamp.2 && batch.count == count);
        if let Some((_, batch)) = repeated {
            return Some((batch.base_offset, false));
        }
        (last_stamp.base_sequence.plus(last.count).0 == stamp.2).then(|| (self.end(), true))
    }
}

/// What a client remembers: its epoch and the batches it sent.
#[derive(Clone, Default)]
struct Client {
    epoch: i16,
    sent: Vec<(i32, u32)>,
}

fn step(
    log: &mut Tablet,
    model: &mut Model,
    stamp: Option<(i64, i16, i32)>,
    count: u32,
) -> Result<(), TestCaseError> {
    let expected = match stamp {
        Some(stamp) => model.judge(stamp, count),
        None => Some((model.end(), true)),
    };
    let before = log.clone();
    let found = log.append(&header(count, stamp), CommitTime(model.time));
    match (expected, found) {
        (Some((at, true)), Ok(AppendStep::Ordered { base_offset, end, commit_time, stamp, expired: _ })) => {
            prop_assert_eq!(at, base_offset);
            prop_assert_eq!(end, at.plus(u64::from(count)));
            model.log.push(LoggedBatch { base_offset, count, commit_time, stamp });
        }
        (Some((at, false)), Ok(AppendStep::DuplicateDurable { base_offset, .. })) => {
            prop_assert_eq!(at, base_offset);
            prop_assert!(at < log.high_watermark());
            prop_assert_eq!(&*log, &before);
        }
        (Some((at, false)), Ok(AppendStep::DuplicateInFlight { base_offset, end, .. })) => {
            prop_assert_eq!(at, base_offset);
            prop_assert!(end > log.high_watermark());
            prop_assert_eq!(&*log, &before);
        }
        (None, Err(_)) => prop_assert_eq!(&*log, &before),
        (expected, found) => prop_assert!(false, "expected {:?}, found {:?}", expected, found),
    }
    Ok(())
}

/// Opens the log anew from a snapshot as of some batch and the stamped batches after it.
fn replay(model: &Model, live: &Tablet, after: usize) -> Result<Tablet, TestCaseError> {
    let cut = model.log.len().saturating_sub(after);
    let (old, new) = model.log.split_at(cut);
    let snapshot = fold_producers(&[], old.iter().copied(), LIMITS.producers)
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    // Folding in two steps is folding in one.
    let folded = fold_producers(&snapshot, new.iter().copied(), LIMITS.producers)
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&folded, &live.producers_snapshot());
    let recovered = Recovered {
        epoch: live.epoch(),
        start: live.log_start(),
        end: model.end(),
        last_commit_time: live.last_commit_time(),
        producers: if cut == 0 { vec![] } else { snapshot },
        batches: new.iter().copied().filter(|batch| batch.stamp.is_some()).collect(),
        epochs: live.epochs().collect(),
    };
    Tablet::recover(recovered, LIMITS).map_err(|error| TestCaseError::fail(error.to_string()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// I2, I6, T-9: whatever producers do and whoever takes over, the tablet answers as a search of the whole log would, its
    /// offsets are dense, and after a replay its state is what it was live.
    #[test]
    fn the_tablet_answers_as_the_model_does_before_and_after_any_replay(acts in acts()) {
        let (mut log, mut model) = (tablet(), Model::default());
        let mut clients = vec![Client::default(); 5];
        for act in acts {
            match act {
                Act::Send { producer, count, back, passed } => {
                    model.time += passed;
                    let client = &mut clients[usize::try_from(producer).expect("small")];
                    let again = back.checked_sub(1).and_then(|back| client.sent.iter().rev().nth(back).copied());
                    let (sequence, count) = again.unwrap_or_else(|| {
                        let next = client.sent.last().map_or(0, |&(last, count)| Sequence(last).plus(count).0);
                        client.sent.push((next, count));
                        (next, count)
                    });
                    step(&mut log, &mut model, Some((producer, client.epoch, sequence)), count)?;
                }
                Act::Gap { producer, sequence } => {
                    let epoch = clients[usize::try_from(producer).expect("small")].epoch;
                    step(&mut log, &mut model, Some((producer, epoch, sequence)), 1)?;
                }
                Act::NewEpoch { producer } => {
                    let client = &mut clients[usize::try_from(producer).expect("small")];
                    *client = Client { epoch: client.epoch + 1, sent: vec![] };
                }
                Act::Plain { count, passed } => {
                    model.time += passed;
                    step(&mut log, &mut model, None, count)?;
                }
                Act::Durable => {
                    log.durable_to(log.next_offset());
                }
                Act::Replay { after } => {
                    let replayed = replay(&model, &log, after)?;
                    log.durable_to(log.next_offset());
                    prop_assert_eq!(&replayed, &log);
                    log = replayed;
                }
            }
        }
        let mut next = Offset(0);
        for batch in &model.log {
            prop_assert_eq!(batch.base_offset, next);
            next = batch.end();
        }
        prop_assert_eq!(log.next_offset(), next);
    }

    /// I6: every interleaving of five batches in flight and their repeats stores each once.
    #[test]
    fn k_9_five_in_flight_and_any_repeats_are_stored_once(repeats in proptest::collection::vec(0_i32..5, 0..40)) {
        let mut log = tablet();
        let mut sent = 0;
        for repeat in repeats {
            if repeat >= sent {
                // Only the next one is new; anything beyond it must be refused.
                let refused = put(&mut log, 1, (7, 0, sent + 1), 0).is_err();
                prop_assert!(refused);
                prop_assert_eq!(base(put(&mut log, 1, (7, 0, sent), 0)), u64::try_from(sent).expect("small"));
                sent += 1;
            } else {
                prop_assert_eq!(base(put(&mut log, 1, (7, 0, repeat), 0)), u64::try_from(repeat).expect("small"));
            }
        }
        prop_assert_eq!(log.next_offset(), Offset(u64::try_from(sent).expect("small")));
    }

    /// I19: whatever bytes claim to be a snapshot, nothing panics.
    #[test]
    fn i19_any_bytes_as_a_snapshot_are_refused_or_taken(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let recovered = Recovered { end: Offset(5), producers: bytes, ..Recovered::default() };
        drop(Tablet::recover(recovered, LIMITS));
    }
}
