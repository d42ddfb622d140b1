//! Names of the steps, for traces.
//!
//! Lives on: anywhere (pure).
use crate::state::{NB, P};
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    Form(usize, usize, [u8; NB]),
    Put(usize, usize, &'static str),
    Answer(usize, usize),
    ReadBack(usize, usize, &'static str),
    Reform(usize, usize),
    Flush(usize, usize, u8),
    Sent(usize, usize),
    Append(usize, u8, u8, bool),
    Apply(usize, u8, usize, bool),
    Take(usize, usize, usize),
    Walk(usize, usize, &'static str),
    SealPut(usize, usize),
    Decide(usize, &'static str),
    OpenFree(usize, usize),
    Release(usize, usize),
    Collect(usize, usize, &'static str),
    GiveUp(usize),
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |i: &usize| ["W", "R1", "R2", "the lease holder"][*i];
        let bucket = |b: &usize| ["A", "B"][*b];
        let kind =
            |k: &u8| ["?", "Fence", "Commit", "Open", "Release", "Leave", "Rewrite", "Tidied"][*k as usize];
        match self {
            Act::Form(i, n, k) => {
                let batch =
                    |b: usize| format!("{}:{}", bucket(&b), if k[b] == P { "batch P" } else { "a batch" });
                let what: Vec<String> = (0..NB).filter(|&b| k[b] > 0).map(batch).collect();
                write!(f, "{} freezes WAL {n} = {{{}}} and sends its PUT", name(i), what.join(", "))
            }
            Act::Put(i, n, how) => write!(f, "store: a PUT of {} WAL {n}{how} creates the object", name(i)),
            Act::Answer(i, n) => write!(f, "{}: the late 200 for WAL {n} arrives: durable", name(i)),
            Act::ReadBack(i, n, what) => {
                write!(f, "{}: WAL {n} exists (412), reads it back: {what}", name(i))
            }
            Act::Reform(i, n) => write!(f, "{} retries WAL {n} with new bytes", name(i)),
            Act::Flush(i, c, m) => write!(
                f,
                "{} flushes {} into stream object {c}",
                name(i),
                ["?", "A", "B", "A and B"][*m as usize]
            ),
            Act::Sent(i, c) => write!(f, "{} sends the commit of its stream object {c}", name(i)),
            Act::Append(i, k, d, ok) => {
                write!(
                    f,
                    "log: {} by {}{} is {}",
                    kind(k),
                    name(i),
                    ["", " (again)"][*d as usize],
                    if *ok { "accepted" } else { "refused" }
                )
            }
            Act::Apply(i, k, j, ok) => write!(
                f,
                "{} applies {} by {}{}",
                name(i),
                kind(k),
                name(j),
                if *ok { "" } else { " (refused)" }
            ),
            Act::Take(i, b, x) => write!(f, "{} starts to take {} over from {}", name(i), bucket(b), name(x)),
            Act::Walk(i, n, what) => write!(f, "{} walks: number {n} {what}", name(i)),
            Act::SealPut(x, n) => write!(f, "store: a seal PUT creates the seal of {} at {n}", name(x)),
            Act::Decide(i, what) => write!(f, "{} {what}", name(i)),
            Act::OpenFree(i, b) => write!(f, "{} sends Open of the released {}", name(i), bucket(b)),
            Act::Release(i, b) => {
                write!(f, "{} stops accepting for {} and sends its release", name(i), bucket(b))
            }
            Act::Collect(x, n, what) => write!(f, "collector deletes {} {what} {n}", name(x)),
            Act::GiveUp(i) => write!(f, "{} gives its undecided commit up and deletes the object", name(i)),
        }
    }
}
