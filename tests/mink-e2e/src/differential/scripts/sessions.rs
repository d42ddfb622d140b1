//! Fetch sessions: made, used, bent and ended.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use mink_kafka_wire::messages::fetch::{FetchRequest, FetchTopic, ForgottenTopic};

use super::fetch::{Target, part, request, target};
use super::{Asker, NOBODY, fill};

const SESSIONS_FROM: i16 = 7;
const IDS_FROM: i16 = 13;

/// One session, as the client sees it.
struct Session {
    id: i32,
    epoch: i32,
}

impl Session {
    async fn begin(run: &mut Asker, case: &str, topics: Vec<FetchTopic>) -> Self {
        let request = FetchRequest { session_epoch: 0, ..request(run.version, topics) };
        let answer = run.try_ask(run.version, &request).await;
        let id = answer.as_ref().map_or(0, |answer| answer.session_id);
        run.note_fetch(case, answer);
        Self { id, epoch: 1 }
    }

    async fn next(&mut self, run: &mut Asker, case: &str, topics: Vec<FetchTopic>) {
        self.next_but(run, case, topics, vec![]).await;
    }

    async fn next_but(
        &mut self,
        run: &mut Asker,
        case: &str,
        topics: Vec<FetchTopic>,
        forgotten: Vec<ForgottenTopic>,
    ) {
        let epoch = self.epoch;
        self.epoch += 1;
        self.at(run, case, epoch, topics, forgotten).await;
    }

    async fn at(
        &self,
        run: &mut Asker,
        case: &str,
        session_epoch: i32,
        topics: Vec<FetchTopic>,
        forgotten_topics_data: Vec<ForgottenTopic>,
    ) {
        let request = FetchRequest {
            session_id: self.id,
            session_epoch,
            forgotten_topics_data,
            ..request(run.version, topics)
        };
        let answer = run.try_ask(run.version, &request).await;
        run.note_fetch(case, answer);
    }
}

fn forget(a: &Target, partitions: Vec<i32>) -> Vec<ForgottenTopic> {
    vec![ForgottenTopic { topic: a.name.clone(), topic_id: a.id, partitions }]
}

pub(super) async fn sessions(run: &mut Asker) {
    if run.version < SESSIONS_FROM {
        return;
    }
    let s = target(run, "s", 3).await;
    fill(run, &s.name, 0, 2).await;
    let all = || vec![s.topic(vec![part(0, 0), part(1, 0), part(2, 0)])];
    let mut session = Session::begin(run, "session begins", all()).await;
    session.next(run, "session: nothing new", vec![]).await;
    session.next(run, "session: offset moves", vec![s.topic(vec![part(0, 2)])]).await;
    session.next(run, "session: at the end", vec![]).await;
    session.at(run, "session: an epoch again", session.epoch - 1, vec![], vec![]).await;
    session.at(run, "session: an epoch too far", session.epoch + 3, vec![], vec![]).await;
    fill(run, &s.name, 1, 1).await;
    session.next(run, "session: a record on 1", vec![]).await;
    session.next_but(run, "session: 1 forgotten", vec![], forget(&s, vec![1])).await;
    session.next_but(run, "session: unknown ones forgotten", vec![], forget(&s, vec![1, 77])).await;
    session.next(run, "session: no such partition", vec![s.topic(vec![part(77, 0)])]).await;
    session.next(run, "session: still no such partition", vec![]).await;
    let nobody = Target { name: run.name("unknown"), id: NOBODY };
    session.next(run, "session: unknown topic", vec![nobody.topic(vec![part(0, 0)])]).await;
    session.next(run, "session: still unknown", vec![]).await;
    session.next(run, "session: out of range", vec![s.topic(vec![part(0, 99)])]).await;
    session.next(run, "session: still out of range", vec![]).await;
    session.next(run, "session: in range again", vec![s.topic(vec![part(0, 2)])]).await;
    kinds(run, &mut session).await;
    session.at(run, "session ends", -1, vec![s.topic(vec![part(0, 0)])], vec![]).await;
    session.next(run, "session: after its end", vec![]).await;
    let unknown = Session { id: 123_456_789, epoch: 1 };
    unknown.at(run, "no such session", 1, vec![], vec![]).await;
    unknown.at(run, "no such session ends", -1, vec![], vec![]).await;
    unknown.at(run, "no such session, in full", 0, vec![s.topic(vec![part(0, 2)])], vec![]).await;
    let none = Session { id: 0, epoch: 0 };
    none.at(run, "no session, epoch 1", 1, vec![], vec![]).await;
    none.at(run, "no session, epoch -5", -5, vec![], vec![]).await;
    let mut empty = Session::begin(run, "empty session", vec![]).await;
    empty.next(run, "empty session goes on", vec![]).await;
    let mut one = Session::begin(run, "session of one", vec![s.topic(vec![part(2, 0)])]).await;
    one.next_but(run, "session of one forgets it", vec![], forget(&s, vec![2])).await;
    one.next(run, "session of none", vec![]).await;
    let mut old = Session::begin(run, "another session", vec![s.topic(vec![part(2, 0)])]).await;
    old.at(run, "another session in full", 0, vec![s.topic(vec![part(1, 1)])], vec![]).await;
    old.next(run, "another session's old id", vec![]).await;
}

/// A session that began with names goes on with ids, and the other way round.
async fn kinds(run: &mut Asker, session: &mut Session) {
    let version = run.version;
    run.version = if version < IDS_FROM { IDS_FROM } else { IDS_FROM - 1 };
    let other =
        FetchRequest { session_id: session.id, session_epoch: session.epoch, ..request(run.version, vec![]) };
    let answer = run.try_ask(run.version, &other).await;
    run.version = version;
    run.note_fetch("session: names and ids", answer);
    session.at(run, "session: after names and ids", session.epoch, vec![], vec![]).await;
    session.epoch += 1;
}
