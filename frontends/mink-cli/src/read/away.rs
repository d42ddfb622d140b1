//! Tells whoever follows a table that its node is away, once, and once that it is back.
//!
//! Lives on: the command's task.
//! Invariants: nothing is said of a node that answers; between two words of its being away it has answered.
use std::io::Write;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Without rows for so long, the node is asked whether it is there.
const QUIET_MAX: Duration = Duration::from_secs(5);
/// How long it may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Between two questions to a node that is away.
const AWAY_PAUSE: Duration = Duration::from_secs(1);

/// What is known of a node that is followed.
#[derive(Debug)]
pub(super) struct Watch<W> {
    address: String,
    is_away: bool,
    out: W,
}

impl<W: Write> Watch<W> {
    /// Of a node that has answered; what there is to say of it goes to `out`.
    pub(super) fn new(address: &str, out: W) -> Watch<W> {
        Watch { address: address.to_owned(), is_away: false, out }
    }

    /// Takes note of whether the node answers.
    pub(super) fn found(&mut self, answers: bool) {
        if answers != self.is_away {
            return;
        }
        self.is_away = !answers;
        let address = &self.address;
        // Nothing is left to tell when stderr itself is gone.
        drop(if answers {
            writeln!(self.out, "the node at {address} answers again")
        } else {
            writeln!(self.out, "the node at {address} is away: is it running? Trying again until it answers")
        });
    }

    /// Waits for as long as a node may be quiet, and then for its answer. To be given up when rows come.
    pub(super) async fn ask(&mut self, answers: impl Future<Output = bool>) {
        sleep(if self.is_away { AWAY_PAUSE } else { QUIET_MAX }).await;
        let answers = timeout(ANSWER_MAX, answers).await.unwrap_or(false);
        self.found(answers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_away_is_told_of_once_and_once_that_it_is_back() {
        let mut said = Vec::new();
        let mut watch = Watch::new("box:1", &mut said);
        watch.ask(ready(true)).await;
        watch.found(true);
        watch.ask(ready(false)).await;
        watch.ask(pending()).await;
        watch.found(false);
        watch.ask(ready(true)).await;
        watch.found(true);
        // One that does not answer in time is away too.
        watch.ask(pending()).await;
        let said = String::from_utf8(said).expect("words");
        let away = "the node at box:1 is away: is it running? Trying again until it answers\n";
        assert_eq!(said, format!("{away}the node at box:1 answers again\n{away}"));
    }
}
