//! The state of the modelled world: object store, command log, incarnations, and what clients were told.
//!
//! Lives on: anywhere (pure).
//! Invariants: a state is its bytes: hashed, compared and packed as such. Metadata is in it as numbers of `world.rs`.
use crate::engine::Outcome;
use crate::view::Meta;
use crate::world::World;

pub(crate) const NI: usize = 3; // incarnations: 0 opens with every bucket, 1 and 2 may take over
pub(crate) const NB: usize = 2; // buckets
pub(crate) const MAXN: usize = 4; // WAL numbers an incarnation may form (0..3)
pub(crate) const SLOTS: usize = MAXN + 1; // one more place for the seal
pub(crate) const MAXO: usize = 6; // offsets of a bucket
pub(crate) const NC: usize = 3; // stream objects an incarnation may make
pub(crate) const MAXLOG: usize = 20; // log records that some incarnation has not applied yet
pub(crate) const NONE: u8 = 0; // incarnations are kept plus one, so that 0 means none

// WAL slot
pub(crate) const ABSENT: u8 = 0;
pub(crate) const DATA: u8 = 1;
pub(crate) const SEAL: u8 = 2;
pub(crate) const DATA2: u8 = 3; // mutant "new bytes on retry": the second body

// status of a formed WAL number, as its writer sees it
pub(crate) const TRYING: u8 = 1; // attempts may be in flight, no outcome known
pub(crate) const CREATED: u8 = 2; // the same, but one attempt has created the object: its "200" may still arrive
pub(crate) const DURABLE: u8 = 3;
pub(crate) const REFORMED: u8 = 0x80; // mutant flag
pub(crate) const LATE: u8 = 0x40; // frozen after another owner had opened (only noted for CLAIM_FIRST_PUT)

// stream object
pub(crate) const SO_FREE: u8 = 0;
pub(crate) const SO_THERE: u8 = 1;
pub(crate) const SO_ADOPT: u8 = 2; // no object: adoption of sealed WAL objects by reference
pub(crate) const SO_GONE: u8 = 3;

pub(crate) const P: u8 = 1; // the value of the one batch that an idempotent producer retries
pub(crate) fn plain(i: usize, n: usize) -> u8 {
    2 + (i * MAXN + n) as u8 // any other batch: unique to the object it is sent in
}

/// A log record. What the engine made of it is kept with it.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rec {
    pub(crate) head: u8, // kind 3 bits | node 2 | accepted 1 | taken for a repeat 1 | who was to be fenced is fenced 1
    pub(crate) arg: u8,  // bucket or counter 2 bits | target 2 | seal number 3 (| slot 1)
    pub(crate) after: [u8; 4], // the metadata after it
}
pub(crate) const FENCE: u8 = 1;
pub(crate) const COMMIT: u8 = 2;
pub(crate) const OPEN: u8 = 3;
pub(crate) const RELEASE: u8 = 4;
pub(crate) const LEAVE: u8 = 5;
pub(crate) const REWRITE: u8 = 6;
pub(crate) const TIDIED: u8 = 7; // Deleted or Swept
impl Rec {
    pub(crate) fn new(kind: u8, i: usize, low: u8, x: u8, k: u8) -> Rec {
        Rec { head: kind | (i as u8) << 3, arg: low | x << 2 | k << 4, after: [0; 4] }
    }
    /// The record as the log keeps it.
    pub(crate) fn judged(mut self, after: u32, outcome: Outcome) -> Rec {
        self.head |=
            u8::from(outcome.accepted) << 5 | u8::from(outcome.repeat) << 6 | u8::from(outcome.fenced) << 7;
        self.after = after.to_le_bytes();
        self
    }
    /// Of a fence: whether the incarnation is fenced now, by whomever.
    pub(crate) fn fenced(self) -> bool {
        self.head >> 7 == 1
    }
    pub(crate) fn after(self) -> u32 {
        u32::from_le_bytes(self.after)
    }
    pub(crate) fn kind(self) -> u8 {
        self.head & 7
    }
    pub(crate) fn node(self) -> usize {
        (self.head >> 3 & 3) as usize
    }
    pub(crate) fn ok(self) -> bool {
        self.head >> 5 & 1 == 1
    }
    pub(crate) fn repeat(self) -> bool {
        self.head >> 6 & 1 == 1
    }
    pub(crate) fn low(self) -> usize {
        (self.arg & 3) as usize
    }
    pub(crate) fn x(self) -> usize {
        (self.arg >> 2 & 3) as usize
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StreamObject {
    pub(crate) st: u8,
    pub(crate) src: u8,         // chain whose entries it holds, plus one
    pub(crate) range: [u8; NB], // start | length << 4
    pub(crate) ep: [u8; NB],    // bucket epoch relied on
    pub(crate) trim: u8,        // flush only: the trim its commit carries
    pub(crate) believed: u8,    // its node was told "committed"
}
impl StreamObject {
    pub(crate) fn start(&self, b: usize) -> u8 {
        self.range[b] & 15
    }
    pub(crate) fn len(&self, b: usize) -> u8 {
        self.range[b] >> 4
    }
}

/// What an incarnation is doing beside writing its WAL.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Task {
    pub(crate) kind: u8,
    pub(crate) b: u8,
    pub(crate) x: u8,   // chain that is taken over, plus one
    pub(crate) ep: u8,  // bucket epoch seen when the task began
    pub(crate) t: u8,   // where the walk began; of a release the end it states
    pub(crate) n: u8,   // where the walk is; then the seal's number
    pub(crate) c: u8,   // stream object; of a walk what it does next
    pub(crate) cmd: u8, // its command: 0 none, 1 sent and not in the log, 2 in the log, 3 sent again by mistake
}
pub(crate) const IDLE: u8 = 0;
pub(crate) const FLUSH_PUT: u8 = 1;
pub(crate) const FLUSH_COMMIT: u8 = 2;
pub(crate) const TAKE_FENCE: u8 = 3;
pub(crate) const TAKE_WALK: u8 = 4;
pub(crate) const TAKE_SEALED: u8 = 5;
pub(crate) const TAKE_COMMIT: u8 = 7;
pub(crate) const TAKE_OPEN: u8 = 8;
pub(crate) const RELEASING: u8 = 9;
pub(crate) const LEAVE_SEAL: u8 = 10;
pub(crate) const LEAVING: u8 = 11;
pub(crate) const COMPACTING: u8 = 12;
impl Task {
    /// Before the point where a command carries the bucket epoch.
    pub(crate) fn taking(&self) -> bool {
        matches!(self.kind, TAKE_FENCE | TAKE_WALK | TAKE_SEALED)
    }
}

impl Task {
    /// On the way out: nothing more is accepted.
    pub(crate) fn leaving(&self) -> bool {
        matches!(self.kind, LEAVE_SEAL | LEAVING)
    }
}

pub(crate) const BEGUN: u8 = 1;
pub(crate) const STOPPED: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct State {
    // the command log: the metadata that every live incarnation has applied, and the rest
    pub(crate) base: [u8; 4],
    pub(crate) loglen: u8,
    pub(crate) log: [Rec; MAXLOG],
    // the object store, and seal PUTs that may still be applied (those of data: any formed number)
    pub(crate) wal: [[u8; SLOTS]; NI],
    pub(crate) sealput: [u8; NI],
    pub(crate) so: [[StreamObject; NC]; NI],
    // incarnations
    pub(crate) flags: [u8; NI],
    pub(crate) view: [u8; NI], // records of `log` applied
    pub(crate) next: [u8; NI],
    pub(crate) status: [[u8; MAXN]; NI],
    pub(crate) through: [[u8; MAXN]; NI], // how many numbers were durable then (scopes with probes)
    pub(crate) chunk: [[[u8; NB]; MAXN]; NI], // frozen bytes: kind 2 bits | bucket epoch 3 | offset 3
    pub(crate) task: [[Task; 2]; NI],
    // what clients know: the value acked at each offset
    pub(crate) acked: [[u8; MAXO]; NB],
    pub(crate) wrong: u8,
}

/// Bytes of a state.
pub(crate) const SIZE: usize =
    4 + 1 + 6 * MAXLOG + NI * (SLOTS + 1 + 8 * NC + 3 + 2 * MAXN + MAXN * NB + 2 * 8) + NB * MAXO + 1;

impl State {
    /// Shows every byte, field by field, always in this order.
    fn visit(&mut self, see: &mut impl FnMut(&mut [u8])) {
        see(&mut self.base);
        see(std::slice::from_mut(&mut self.loglen));
        for Rec { head, arg, after: [a, b, c, d] } in &mut self.log {
            bytes([head, arg, a, b, c, d], see);
        }
        see(self.wal.as_flattened_mut());
        see(&mut self.sealput);
        for StreamObject { st, src, range: [r0, r1], ep: [e0, e1], trim, believed } in
            self.so.as_flattened_mut()
        {
            bytes([st, src, r0, r1, e0, e1, trim, believed], see);
        }
        see(&mut self.flags);
        see(&mut self.view);
        see(&mut self.next);
        see(self.status.as_flattened_mut());
        see(self.through.as_flattened_mut());
        see(self.chunk.as_flattened_mut().as_flattened_mut());
        for Task { kind, b, x, ep, t, n, c, cmd } in self.task.as_flattened_mut() {
            bytes([kind, b, x, ep, t, n, c, cmd], see);
        }
        see(self.acked.as_flattened_mut());
        see(std::slice::from_mut(&mut self.wrong));
    }

    /// The state as bytes.
    pub(crate) fn bytes(&self) -> [u8; SIZE] {
        let (mut out, mut at) = ([0; SIZE], 0);
        let mut copy = *self;
        copy.visit(&mut |field| {
            out[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        });
        debug_assert_eq!(at, SIZE, "every field is shown");
        out
    }

    /// The state of bytes.
    pub(crate) fn from_bytes(bytes: &[u8; SIZE]) -> State {
        let (mut state, mut at) = (State::default(), 0);
        state.visit(&mut |field| {
            field.copy_from_slice(&bytes[at..at + field.len()]);
            at += field.len();
        });
        state
    }

    /// The metadata after the whole log.
    pub(crate) fn head(&self, w: &World) -> Meta {
        w.meta(self.at(self.loglen))
    }

    /// The metadata as incarnation `i` has applied it.
    pub(crate) fn view_of(&self, w: &World, i: usize) -> Meta {
        w.meta(self.at(self.view[i]))
    }

    /// The number of the metadata after so many records.
    pub(crate) fn at(&self, records: u8) -> u32 {
        match records {
            0 => u32::from_le_bytes(self.base),
            n => self.log[n as usize - 1].after(),
        }
    }

    pub(crate) fn has(&self, i: usize, f: u8) -> bool {
        self.flags[i] & f != 0
    }
    pub(crate) fn live(&self, i: usize) -> bool {
        self.flags[i] == BEGUN
    }
    /// Numbers durable without a hole before them: what may be acked.
    pub(crate) fn durable(&self, i: usize) -> usize {
        (0..self.next[i] as usize).take_while(|&n| self.status[i][n] & 3 == DURABLE).count()
    }
    /// (bucket epoch, offset, value) that the writer froze for bucket `b` under number `n`.
    pub(crate) fn entry(&self, i: usize, n: usize, b: usize) -> Option<(u8, u8, u8)> {
        let c = self.chunk[i][n][b];
        let value = match c & 3 {
            0 => return None,
            1 => P,
            _ => plain(i, n),
        };
        Some((c >> 2 & 7, c >> 5, value))
    }
    /// The same as a reader of the stored object sees it.
    pub(crate) fn stored(&self, i: usize, n: usize, b: usize) -> Option<(u8, u8, u8)> {
        let e = self.entry(i, n, b)?;
        if b == 0 && self.status[i][n] & REFORMED != 0 && self.wal[i][n] == DATA {
            return Some((e.0, e.1, plain(i, n)));
        }
        Some(e)
    }
    pub(crate) fn is_data(&self, i: usize, n: usize) -> bool {
        self.wal[i][n] & 1 == 1
    }
}

fn bytes<const N: usize>(fields: [&mut u8; N], see: &mut impl FnMut(&mut [u8])) {
    for byte in fields {
        see(std::slice::from_mut(byte));
    }
}
