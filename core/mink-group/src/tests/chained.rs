//! Members that come and go without a pause, each of which does what a good client does.
//!
//! Lives on: tests.
use super::harness::{Bench, committing, joining, syncing, topic};
use crate::{GroupError, GroupState, InstanceId, JoinRequest, MemberId, Reply};

const STEP_MS: u64 = 250;
const STEPS: u64 = 240;

/// What a client is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Nothing,
    Joining(u32),
    Syncing(u32),
    Consuming,
}

struct Client {
    instance: Option<InstanceId>,
    member: MemberId,
    generation: i32,
    doing: Doing,
    others: Vec<MemberId>,
    assignments: u32,
}

impl Client {
    fn new(number: u64) -> Client {
        let instance = number.is_multiple_of(2).then(|| InstanceId::new(&format!("i{number}")));
        let (member, others) = (MemberId::new(""), Vec::new());
        Client { instance, member, generation: -1, doing: Doing::Nothing, others, assignments: 0 }
    }

    fn join(&mut self, bench: &mut Bench) {
        let request = JoinRequest {
            instance: self.instance.clone(),
            member_id_required: true,
            ..joining(self.member.as_str())
        };
        self.doing = Doing::Joining(bench.join(request));
    }

    fn go_on(&mut self, bench: &mut Bench) {
        match self.doing {
            Doing::Nothing => self.join(bench),
            Doing::Joining(token) => self.look_at_join(token, bench),
            Doing::Syncing(token) => {
                if bench.waits(token) {
                    return;
                }
                match bench.synced(token) {
                    Ok(synced) => {
                        assert_eq!(synced.assignment, self.member.as_str().as_bytes().to_vec());
                        self.assignments += 1;
                        self.doing = Doing::Consuming;
                    }
                    Err(GroupError::RebalanceInProgress) => self.join(bench),
                    Err(error) => panic!("a live member is told {error:?}"),
                }
            }
            Doing::Consuming => {
                let commit = committing(self.member.as_str(), self.generation, &[(topic(1, 0), 1)]);
                let commit = bench.commit(commit);
                assert_eq!(bench.committed(commit), Ok(()));
                match bench.heartbeat(&self.member, self.generation) {
                    Ok(()) => {}
                    Err(GroupError::RebalanceInProgress) => self.join(bench),
                    Err(error) => panic!("a live member is told {error:?}"),
                }
            }
        }
    }

    fn look_at_join(&mut self, token: u32, bench: &mut Bench) {
        match bench.answers.get(&token).cloned() {
            None => {}
            Some(Reply::Join(Ok(joined))) => {
                (self.member, self.generation) = (joined.member, joined.generation);
                self.others = joined.members.into_iter().map(|other| other.member).collect();
                let all: Vec<_> = self.others.iter().map(|other| (other, other.as_str())).collect();
                self.doing = Doing::Syncing(bench.sync(syncing(&self.member, self.generation, &all)));
            }
            Some(Reply::Join(Err(refused))) if refused.error == GroupError::MemberIdRequired => {
                self.member = refused.member;
                self.join(bench);
            }
            other => panic!("a live member is told {other:?}"),
        }
    }
}

/// Three members for a minute, of which one leaves and another comes every two seconds; every other one is static.
#[test]
fn p_21_no_live_member_is_unknown_while_others_come_and_go() {
    let mut bench = Bench::new();
    let mut clients: Vec<_> = (0..3).map(Client::new).collect();
    let mut rounds = 0;
    for step in 1..=STEPS {
        if step.is_multiple_of(2_000 / STEP_MS) {
            let gone = clients.remove(0);
            let instance = gone.instance.as_ref().map(InstanceId::as_str);
            let left = bench.leave(&[(gone.member.as_str(), instance)]).expect("answered");
            assert!(left.iter().all(|left| left.result.is_ok()));
            assert!(gone.assignments > 0, "it settles before the next comes");
            clients.push(Client::new(2 + step / (2_000 / STEP_MS)));
            rounds += 1;
        }
        for client in &mut clients {
            client.go_on(&mut bench);
        }
        bench.advance(STEP_MS);
    }
    assert_eq!(rounds, 30);
    for _ in 0..8 {
        for client in &mut clients {
            client.go_on(&mut bench);
        }
        bench.advance(STEP_MS);
    }
    assert_eq!((bench.state(), bench.groups.members()), (GroupState::Stable, 3));
    assert!(clients.iter().all(|client| client.doing == Doing::Consuming));
}
