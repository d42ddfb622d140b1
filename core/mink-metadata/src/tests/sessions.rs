//! A request id is applied once, and answered alike ever after (I12).
use super::*;
use crate::SESSIONS_MAX;

fn create(name: &str) -> Command {
    Command::CreateDatabase { name: database(name) }
}

#[test]
fn i12_a_repeat_in_the_same_row_a_later_row_and_after_a_restore_gives_the_first_result() {
    let mut log = Log::new();
    let (id, other) = (request(5, 1), request(5, 2));
    let results = log.append(&[(id, create("a")), (id, create("a")), (other, create("a"))]);
    let first = results[0].1.clone();
    assert!(matches!(first, CommandResult::Done(Answer::DatabaseCreated(_))));
    assert_eq!(results[1].1, first);
    assert!(matches!(results[2].1, CommandResult::Refused(Refusal::DatabaseExists { .. })));

    assert_eq!(log.append(&[(id, create("a"))])[0].1, first);
    log.state = State::restore(&log.state.snapshot()).expect("restores");
    let repeats = log.append(&[(id, create("a")), (other, create("a"))]);
    assert_eq!(repeats[0].1, first);
    assert_eq!(repeats[1].1, results[2].1);
    assert_eq!(log.state.result_of(&id), Some(&first));
    assert_eq!(log.state.databases().count(), 1);
}

#[test]
fn i12_a_repeat_whose_result_is_gone_is_still_not_applied() {
    let mut log = Log::new();
    let _ = log.append(&[(request(5, 1), create("a"))]);
    let _ = log.append(&[(request(5, 2), Command::DropDatabase { name: database("a") })]);
    let results = log.append(&[(request(5, 1), create("a"))]);
    assert_eq!(results[0].1, CommandResult::Refused(Refusal::Forgotten));
    assert_eq!(log.state.databases().count(), 0);
}

#[test]
fn i12_a_registration_repeated_in_a_later_row_keeps_its_incarnation() {
    let mut log = Log::new();
    let register = (request(5, 1), Command::Register(registration(1)));
    let first = log.append(std::slice::from_ref(&register));
    let again = log.append(std::slice::from_ref(&register));
    assert_eq!(first, again);
    assert_eq!(log.state.incarnations().count(), 1);
}

#[test]
fn i20_the_oldest_session_is_forgotten_first_and_by_every_node_alike() {
    let session = |n: u64| {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&n.to_be_bytes());
        RequestId { session: SessionId(id), counter: 1 }
    };
    let mut log = Log::new();
    let mut next = 0;
    while next < SESSIONS_MAX as u64 {
        let row: Vec<_> = (next..next + 500).map(|n| (session(n), create("a"))).collect();
        let _ = log.append(&row);
        next += 500;
    }
    assert!(log.state.result_of(&session(0)).is_some());
    // Session 0 speaks again, so 1 is now the oldest.
    let again = RequestId { counter: 2, ..session(0) };
    let _ = log.append(&[(again, create("a"))]);
    let _ = log.append(&[(session(next), create("a"))]);
    assert_eq!(log.state.sessions.len(), SESSIONS_MAX);
    assert!(log.state.result_of(&session(1)).is_none());
    assert!(log.state.result_of(&again).is_some() && log.state.result_of(&session(2)).is_some());
    let mut other = State::new(CLUSTER);
    for row in &log.rows {
        other.apply(row).expect("follows");
    }
    assert_eq!(other.digest(), log.state.digest());
}
