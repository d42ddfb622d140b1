//! Who of those that wait for memory is next: the one that came last and the one that waits for the longest, by turns.
//!
//! Lives on: the service runtime, shared by all connections of a listener.
//! Owns: the line of those that wait for one part of the memory for answers.
//! Invariants: one holds the turn at a time. Whoever gives up leaves the line, and passes the turn on if it was given meanwhile. In the order of their
//! coming alone, a client that takes its answer would wait behind every one that came before it and will take nothing.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

#[derive(Debug, Default)]
struct Waiting {
    is_taken: bool,
    last_was_newest: bool,
    next: u64,
    /// In the order in which they came.
    line: BTreeMap<u64, oneshot::Sender<Turn>>,
}

/// A line; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Turns(Arc<Mutex<Waiting>>);

/// The turn of one; passed on when dropped.
#[derive(Debug)]
pub struct Turn(Option<Turns>);

/// One's place in the line; left when dropped.
struct Place<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn.
    pub async fn take(&self) -> Turn {
        let (place, given) = {
            let mut waiting = self.lock();
            if !waiting.is_taken {
                waiting.is_taken = true;
                return Turn(Some(self.clone()));
            }
            let (give, given) = oneshot::channel();
            let number = waiting.next;
            waiting.next += 1;
            waiting.line.insert(number, give);
            (Place { turns: self, number }, given)
        };
        let turn = given.await;
        drop(place);
        // Nobody leaves the line without a turn while its place is held; were it so, waiting on would be for ever.
        turn.unwrap_or(Turn(None))
    }

    /// How many there are: who has the turn, and all that wait for it.
    pub fn len(&self) -> usize {
        let waiting = self.lock();
        waiting.line.len() + usize::from(waiting.is_taken)
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives the turn to the next one, if there is any.
    fn pass(&self) {
        let mut waiting = self.lock();
        loop {
            let newest = !waiting.last_was_newest;
            let next = if newest { waiting.line.pop_last() } else { waiting.line.pop_first() };
            let Some((_, give)) = next else {
                waiting.is_taken = false;
                return;
            };
            let Err(mut refused) = give.send(Turn(Some(self.clone()))) else {
                waiting.last_was_newest = newest;
                return;
            };
            // It has given up just now. Dropped as it is, the turn would be passed on while the lock is held.
            refused.0 = None;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass();
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.turns.lock().line.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::future::BoxFuture;

    fn wait(turns: &Turns) -> BoxFuture<'static, Turn> {
        let turns = turns.clone();
        let mut waits = async move { turns.take().await }.boxed();
        assert!((&mut waits).now_or_never().is_none(), "somebody has it");
        waits
    }

    #[test]
    fn the_newest_and_the_oldest_have_it_by_turns() {
        let turns = Turns::default();
        let mut turn = turns.take().now_or_never().expect("nobody has it");
        let mut waiting: Vec<(usize, BoxFuture<'_, Turn>)> = (0..5).map(|n| (n, wait(&turns))).collect();
        let mut order = Vec::new();
        while !waiting.is_empty() {
            drop(turn);
            let mut given = waiting
                .iter_mut()
                .enumerate()
                .filter_map(|(at, (_, waits))| Some((at, waits.now_or_never()?)));
            let (at, next) = given.next().expect("one of them has it");
            assert!(given.next().is_none(), "and no other");
            turn = next;
            order.push(waiting.remove(at).0);
        }
        assert_eq!(order, [4, 0, 3, 1, 2]);
        drop(turn);
        assert!(turns.take().now_or_never().is_some());
    }

    #[test]
    fn whoever_gives_up_leaves_the_line_and_passes_on_what_it_was_given() {
        let turns = Turns::default();
        let turn = turns.take().now_or_never().expect("nobody has it");
        let (mut oldest, middle, newest) = (wait(&turns), wait(&turns), wait(&turns));
        drop(middle);
        assert_eq!(turns.lock().line.len(), 2);
        drop(turn);
        assert!((&mut oldest).now_or_never().is_none());
        drop(newest);
        let turn = oldest.now_or_never().expect("what the newest was given and did not see");
        assert!(turns.lock().line.is_empty());
        drop(turn);
        assert!(!turns.lock().is_taken);
    }
}
