//! What must hold in every state.
//!
//! Lives on: anywhere (pure).
//! Invariants: I1, I2, I6, I14, and that nobody gets stuck. Those of the metadata alone are in `audit.rs`.
use crate::act::Act;
use crate::config::CLAIM_ONE_SEAL;
use crate::state::*;
use crate::step::*;
use crate::view::Meta;
use crate::world::World;

/// The first property that a state breaks.
pub(crate) fn broken(w: &World, s: &State) -> Option<&'static str> {
    let cfg = &w.cfg;
    match s.wrong {
        ACK_CONFLICT => return Some("I2: two batches were acked at one offset"),
        ACKED_TWICE => return Some("I6: one batch was acked at two offsets"),
        GAP_READ => return Some("I2: a takeover reads a chain with a gap behind the committed end"),
        PUT_PROVES_NOTHING => return Some("2.4: a PUT succeeded (200) although another owner was open"),
        FENCED_ACKS => {
            return Some("I5 word for word: a fenced process acked after its bucket was opened elsewhere");
        }
        LATE_DURABLE => {
            return Some("2.4: a number first tried after another owner had opened became durable in order");
        }
        CALLED_LOST => {
            return Some(
                "I1: a takeover calls a number lost that its writer may still create, or that is there",
            );
        }
        GARBAGE_CAME_BACK => return Some("I14: metadata needs again what it had given up as garbage"),
        _ => {}
    }
    let m = s.head(w);
    for x in 0..NI {
        for c in 0..NC {
            if m.refs[x] >> c & 1 == 1 && s.so[x][c].st != SO_THERE {
                return Some("I14: a committed stream object is gone");
            }
        }
        for n in 0..MAXN {
            if m.adopted[x] >> n & 1 == 1 && !s.is_data(x, n) {
                return Some("I14: an adopted WAL object is gone");
            }
        }
        if cfg.claims & CLAIM_ONE_SEAL != 0 && seals(&s.wal[x]) > 1 {
            return Some("2.4: an incarnation has two seals, and seals are kept for ever");
        }
    }
    (0..cfg.buckets).find_map(|b| rescue(s, &m, b))
}

/// How often a run met what it is there for, so that "nothing broken" is not "nothing happened".
pub const MET: [&str; 6] = [
    "a bucket is taken over twice or moved",
    "a fenced writer lives on beside the next owner",
    "a takeover lost the race and deleted its object",
    "a takeover walks a chain that is dead already",
    "a chain has a second, stray seal",
    "one bucket of a node has moved, the other has not",
];
pub(crate) fn met(w: &World, s: &State) -> [bool; 6] {
    let m = s.head(w);
    let walks =
        |j: usize| s.live(j) && s.task[j].iter().any(|k| k.kind == TAKE_WALK && m.dead(k.x as usize - 1));
    [
        m.epoch.iter().any(|&e| e >= 3),
        (0..NI).any(|i| s.live(i) && m.dead(i)),
        s.so.iter().flatten().any(|o| o.st == SO_GONE),
        (0..NI).any(walks),
        s.wal.iter().any(|chain| seals(chain) > 1),
        w.cfg.buckets == 2
            && m.owner[0] != m.owner[1]
            && (m.owner[0] == 1 || m.owner[1] == 1)
            && m.fenced & 1 == 0,
    ]
}

fn seals(chain: &[u8; SLOTS]) -> usize {
    chain.iter().map(|&slot| usize::from(slot == SEAL)).sum()
}

/// From this very state, with no fault any more, a fresh incarnation takes bucket `b` over: it must find every
/// acked entry at its offset, no batch twice, and must not get stuck. Late requests that do arrive are other states.
fn rescue(s: &State, m: &Meta, b: usize) -> Option<&'static str> {
    let mut content = m.content[b];
    let mut end = m.end[b] as usize;
    if m.owner[b] != NONE {
        let x = m.owner[b] as usize - 1;
        let t = m.trim[x] as usize;
        if t > 0 && !s.is_data(x, t - 1) {
            return Some("dead end: no anchor before the trim of a chain that a bucket hangs on");
        }
        for n in t..SLOTS {
            if !s.is_data(x, n) {
                break; // absent: the seal is created here; or it is there already
            }
            match s.stored(x, n, b) {
                Some((ep, off, value)) if ep == m.epoch[b] => match (off as usize).cmp(&end) {
                    std::cmp::Ordering::Equal if end < MAXO => {
                        content[end] = value;
                        end += 1;
                    }
                    std::cmp::Ordering::Greater => {
                        return Some("I2: the chain has a gap behind the committed end");
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }
    for (off, &acked) in s.acked[b].iter().enumerate() {
        if acked != NONE && (off >= end || content[off] != acked) {
            return Some("I1: an acked entry is not what the next owner finds at its offset");
        }
    }
    if content[..end].iter().map(|&value| usize::from(value == P)).sum::<usize>() > 1 {
        return Some("I6: the retried batch is stored twice");
    }
    None
}

/// With no fault any more, an incarnation that lives and is not fenced finishes what it does and then takes over
/// every bucket: it must succeed, unless the scope gives it no more stream objects or epochs.
pub(crate) fn stuck(w: &World, start: &State, j: usize) -> bool {
    let cfg = &w.cfg;
    if !start.live(j) || start.head(w).is_fenced(j) || start.task[j].iter().any(Task::leaving) {
        return false;
    }
    let mut steps = Steps::new(w);
    let mut s = *start;
    for _ in 0..200 {
        let m = s.head(w);
        if (0..cfg.buckets).all(|b| m.owns(j, b)) && s.view[j] == s.loglen {
            return false;
        }
        steps.all(&s);
        let rank = |a: &Act| match a {
            Act::Apply(i, ..) if *i == j => 0,
            Act::Append(i, _, _, _) if *i == j => 1,
            Act::Sent(i, _) | Act::Decide(i, _) if *i == j => 2,
            Act::Walk(i, ..) if *i == j => 4,
            Act::SealPut(..) => 5,
            Act::Take(i, ..) | Act::OpenFree(i, _) if *i == j => 6,
            _ => 9,
        };
        let Some((act, next)) = steps.out.iter().min_by_key(|(a, _)| rank(a)) else { break };
        if rank(act) == 9 {
            break;
        }
        s = *next;
    }
    let m = s.head(w);
    let spent = (0..cfg.objects[j] as usize).all(|c| s.so[j][c].st != SO_FREE)
        || m.epoch.iter().any(|&e| e >= cfg.epochs);
    !spent && !s.has(j, STOPPED)
}
