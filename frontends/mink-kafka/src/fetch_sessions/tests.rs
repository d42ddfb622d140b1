//! The bounds of the cache: who goes for whom, and that nothing is counted that is not there.
//!
//! Lives on: tests only.
use super::*;

fn asking(session_id: i32, session_epoch: i32, topic: &str, partitions: i32) -> Asking {
    let partitions =
        (0..partitions).map(|partition| FetchPartition { partition, ..FetchPartition::default() }).collect();
    Asking {
        by_id: false,
        session_id,
        session_epoch,
        topics: vec![FetchTopic { topic: topic.into(), partitions, ..FetchTopic::default() }],
        forgotten: Vec::new(),
    }
}

fn draws() -> impl FnMut() -> u64 {
    let mut next = 0_u64;
    move || {
        next += 1;
        next << 33
    }
}

fn open(sessions: &FetchSessions, partitions: i32, draw: &mut impl FnMut() -> u64) -> i32 {
    let (context, _) = sessions.begin(asking(0, INITIAL, "t", partitions), draw).expect("begins");
    context.session_id()
}

#[tokio::test(start_paused = true)]
async fn i20_sessions_are_bounded_and_an_idle_one_goes_for_a_new_one() {
    let (sessions, mut draw) = (FetchSessions::default(), draws());
    let first = open(&sessions, 1, &mut draw);
    for _ in 1..SESSIONS_MAX {
        assert_ne!(open(&sessions, 1, &mut draw), NO_SESSION);
    }
    assert_eq!(open(&sessions, 1, &mut draw), NO_SESSION, "nobody is idle, and nobody is smaller");
    tokio::time::advance(EVICTABLE_AFTER + Duration::from_secs(1)).await;
    let mut used = asking(first, 1, "t", 0);
    used.topics.clear();
    sessions.begin(used, &mut draw).expect("goes on");
    assert_ne!(open(&sessions, 1, &mut draw), NO_SESSION);
    assert_eq!(sessions.counts().sessions, SESSIONS_MAX as u64);
    let mut again = asking(first, 2, "t", 0);
    again.topics.clear();
    sessions.begin(again, &mut draw).expect("the one that was used has stayed");
}

#[tokio::test(start_paused = true)]
async fn a_smaller_old_session_goes_for_a_larger_one_and_never_the_other_way() {
    let (sessions, mut draw) = (FetchSessions::default(), draws());
    let ids: Vec<i32> = (0..SESSIONS_MAX).map(|_| open(&sessions, 2, &mut draw)).collect();
    tokio::time::advance(EVICTABLE_AFTER.mul_f32(0.9)).await;
    let keep_alive = |epoch| {
        for id in &ids {
            let mut used = asking(*id, epoch, "t", 0);
            used.topics.clear();
            sessions.begin(used, || 0).expect("goes on");
        }
    };
    keep_alive(1);
    tokio::time::advance(EVICTABLE_AFTER.mul_f32(0.2)).await;
    assert_eq!(open(&sessions, 1, &mut draw), NO_SESSION);
    assert_eq!(open(&sessions, 2, &mut draw), NO_SESSION);
    assert_ne!(open(&sessions, 3, &mut draw), NO_SESSION);
}

#[test]
fn i20_bytes_are_bounded_and_a_session_that_outgrows_them_ends() {
    let (sessions, mut draw) = (FetchSessions::default(), draws());
    let most = i32::try_from(BYTES_MAX / PARTITION_BYTES).expect("small");
    assert_eq!(open(&sessions, most, &mut draw), NO_SESSION, "more than all the room");
    let id = open(&sessions, 1, &mut draw);
    let grown = sessions.begin(asking(id, 1, "t", most), &mut draw).expect_err("no room");
    assert_eq!(grown, ErrorCode::FetchSessionIdNotFound);
    assert_eq!(sessions.counts(), SessionCounts::default());
}

#[test]
fn what_is_forgotten_is_counted_no_more_and_an_empty_session_ends() {
    let (sessions, mut draw) = (FetchSessions::default(), draws());
    let id = open(&sessions, 2, &mut draw);
    let one = open(&sessions, 1, &mut draw);
    let forget = |epoch, partitions| Asking {
        topics: Vec::new(),
        forgotten: vec![ForgottenTopic { topic: "t".into(), partitions, ..ForgottenTopic::default() }],
        ..asking(id, epoch, "t", 0)
    };
    sessions.begin(forget(1, vec![1, 7]), &mut draw).expect("goes on");
    assert_eq!(sessions.counts().bytes, 2 * (2 * PARTITION_BYTES + 1) as u64);
    let (context, wanted) = sessions.begin(forget(2, vec![0]), &mut draw).expect("ends");
    assert!(matches!(context, FetchContext::Sessionless) && wanted.is_empty());
    sessions.begin(asking(one, FINAL, "t", 1), &mut draw).expect("ends");
    assert_eq!(sessions.counts(), SessionCounts::default());
}

#[test]
fn who_got_records_is_served_last() {
    let (sessions, mut draw) = (FetchSessions::default(), draws());
    let (context, _) = sessions.begin(asking(0, INITIAL, "t", 3), &mut draw).expect("begins");
    let told = Some(Told { high_watermark: 1, log_start: 0 });
    context.answers(&"t".into(), 0, told, true);
    context.answers(&"t".into(), 1, told, false);
    let mut next = asking(context.session_id(), 1, "t", 0);
    next.topics.clear();
    let (_, wanted) = sessions.begin(next, &mut draw).expect("goes on");
    let order: Vec<i32> = wanted.iter().map(|wanted| wanted.partition.partition).collect();
    assert_eq!(order, [1, 2, 0]);
}
