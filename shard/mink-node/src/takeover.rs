//! Taking a chain over: fence, walk and seal, adopt; what is then open to be opened (decision 0003).
//!
//! Lives on: the service runtime, at start and when a node has died.
//! Invariants: I1, I5, I13: the order is fence, apply, walk from the frozen trim, commit, and only then open; bucket epochs are noted
//! before the walk and relied on after it. A restart is the takeover of one's own predecessor.
use crate::commits;
use crate::config::NodeConfig;
use crate::error::StartError;
use crate::waiting::{Closed, close_beats};
use mink_metadata::{BucketOpening, Command, CommandResult, RefusalKind, State, TakenOver};
use mink_object::ObjectStore;
use mink_rt::{Service, mutant};
use mink_sql::{LogError, Metadata};
use mink_types::{BucketId, ClusterUuid, Incarnation, LogIndex, WalChain, WalNumber, Witness};
use s3stream::{Adoption, BucketView, ErrorKind, Reader, Recovered, Takeover};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Tries of the whole takeover while the store does not answer, or another taker is at work too.
const TRIES_MAX: u32 = 60;
/// Pause between them.
const PAUSE: Duration = Duration::from_secs(1);

/// What a takeover needs.
#[derive(Debug)]
pub(crate) struct Taker<'a> {
    pub(crate) config: &'a NodeConfig,
    pub(crate) service: &'a Service,
    pub(crate) metadata: &'a Metadata,
    pub(crate) uuid: ClusterUuid,
    pub(crate) me: WalChain,
    pub(crate) reader: &'a Reader,
}

/// A chain that was taken over: sealed, and all it held committed.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) from: TakenOver,
    pub(crate) buckets: Vec<BucketOpening>,
    /// Its last read lease.
    pub(crate) closed: Closed,
    /// What of it is lost, in words.
    pub(crate) lost: Vec<String>,
}

impl Taker<'_> {
    /// Takes `incarnation` over. `store` holds its WAL.
    pub(crate) async fn take(
        &self,
        incarnation: Incarnation,
        store: Arc<dyn ObjectStore>,
    ) -> Result<Taken, StartError> {
        self.fence(incarnation).await?;
        let closed = close_beats(&*self.config.log, self.service, incarnation).await?;
        let mut tries = 0;
        loop {
            let error = match self.walk(incarnation, Arc::clone(&store)).await {
                Ok((from, buckets, lost)) => {
                    return Ok(Taken { from, buckets, closed, lost });
                }
                Err(Walk::Final(error)) => return Err(error),
                Err(Walk::Again(what)) => what,
            };
            tries += 1;
            if tries >= TRIES_MAX {
                return Err(StartError::Takeover { incarnation, what: error });
            }
            tracing::warn!(%incarnation, %error, tries, "takeover goes on in a moment");
            self.service.sleep(PAUSE).await;
        }
    }

    async fn fence(&self, incarnation: Incarnation) -> Result<(), StartError> {
        // A chain that was given up before is tried again and again if it cannot be taken: that must not fill the log.
        if self.metadata.view().incarnation(incarnation).is_some_and(|life| life.fenced) {
            return Ok(());
        }
        let result = self.submit(Command::Fence { incarnation, by: self.me.incarnation }).await?;
        match result {
            fenced if fenced.is_fenced() => Ok(()),
            CommandResult::Refused(refusal) if refusal.kind() == RefusalKind::Fenced => {
                Err(StartError::Fenced)
            }
            other => Err(StartError::Takeover { incarnation, what: format!("fence: {other:?}") }),
        }
    }

    async fn walk(
        &self,
        incarnation: Incarnation,
        store: Arc<dyn ObjectStore>,
    ) -> Result<(TakenOver, Vec<BucketOpening>, Vec<String>), Walk> {
        let fail = |what: String| Walk::Final(StartError::Takeover { incarnation, what });
        // The epochs as they are before the walk: every later command relies on them.
        let state = self.metadata.view();
        let old = state.incarnation(incarnation).ok_or_else(|| fail("it is not registered".into()))?;
        let hanging: BTreeMap<BucketId, BucketView> = state
            .hanging(incarnation)
            .filter_map(|id| state.bucket(&id).map(|b| (id, BucketView { epoch: b.epoch, end: b.end })))
            .collect();
        let recovered = Takeover {
            service: self.service.clone(),
            store,
            cluster: self.config.cluster.clone(),
            uuid: self.uuid,
            chain: old.chain,
            trim: if mutant("stale-trim") { WalNumber(0) } else { old.trim },
            me: self.me,
            witness: state.witness(),
            config: Arc::new(self.config.wal.clone()),
        }
        .run()
        .await
        .map_err(|error| match error.kind() {
            ErrorKind::Retry => Walk::Again(error.to_string()),
            _ => fail(error.to_string()),
        })?;
        self.check_witness(incarnation, &state, &recovered).await?;
        // The footers of what is adopted were just read: the recovery of each bucket need not read them again.
        self.reader.remember(&recovered);
        let adoption = recovered.adopt(|bucket| hanging.get(bucket).copied());
        self.adopt(&recovered, &adoption).await?;
        let stuck: Vec<BucketId> = adoption.gaps.iter().map(|gap| gap.bucket).collect();
        let buckets = hanging
            .iter()
            .filter(|(id, _)| !stuck.contains(id))
            .map(|(id, view)| BucketOpening { bucket: *id, epoch: view.epoch })
            .collect();
        let from = TakenOver { incarnation, seal: recovered.seal };
        Ok((from, buckets, losses(&recovered, &adoption)))
    }

    /// I13: a WAL object was written when the database had the row that its header names. Rows that this process has appended since
    /// must not pass for it, so it is the row's hash that counts. A row that was truncated lies below a snapshot, which was compared
    /// when the log was loaded.
    async fn check_witness(
        &self,
        incarnation: Incarnation,
        state: &State,
        recovered: &Recovered,
    ) -> Result<(), Walk> {
        let Witness { index, hash } = recovered.highest_witness;
        let Some(before) = index.0.checked_sub(1) else { return Ok(()) };
        let again = |error: LogError| Walk::Again(error.to_string());
        let rows = self.config.log.read_after(LogIndex(before), 1).await.map_err(again)?;
        match rows.first().filter(|row| row.index == index) {
            Some(row) if row.hash == hash => return Ok(()),
            Some(_) => return Err(Walk::Final(StartError::DatabaseDiffers { index, incarnation })),
            None => {}
        }
        // The database is asked, not this process's view: until its chain was sealed the old process went on, and its rows, though
        // they changed nothing any more, may be newer than what was applied here.
        let database = self.config.log.last().await.map_err(again)?.index.max(state.witness().index);
        if index > database {
            return Err(Walk::Final(StartError::DatabaseBehind { database, witness: index, incarnation }));
        }
        Ok(())
    }

    async fn adopt(&self, recovered: &Recovered, adoption: &Adoption) -> Result<(), Walk> {
        for commit in adoption.commits(recovered.chain) {
            let command = commits::command(self.me.incarnation, commit);
            match self.submit(command).await.map_err(Walk::Final)? {
                CommandResult::Done(_) => {}
                CommandResult::Refused(refusal) => match refusal.kind() {
                    RefusalKind::Fenced => return Err(Walk::Final(StartError::Fenced)),
                    // Another taker was faster with a bucket: look at what is left.
                    RefusalKind::Stale | RefusalKind::Already => {
                        return Err(Walk::Again(refusal.to_string()));
                    }
                    _ => {
                        let (incarnation, what) = (recovered.chain.incarnation, refusal.to_string());
                        return Err(Walk::Final(StartError::Takeover { incarnation, what }));
                    }
                },
            }
        }
        Ok(())
    }

    async fn submit(&self, command: Command) -> Result<CommandResult, StartError> {
        self.metadata.submit(command).await.map_err(|error| StartError::Metadata(error.to_string()))
    }
}

/// Why a walk did not come to its end.
enum Walk {
    Again(String),
    Final(StartError),
}

/// What a person must know of a chain that is not whole.
fn losses(recovered: &Recovered, adoption: &Adoption) -> Vec<String> {
    let chain = recovered.chain;
    let name =
        |number| format!("WAL object {number} of node {} incarnation {}", chain.node, chain.incarnation);
    let mut words: Vec<String> =
        recovered.lost.iter().map(|number| format!("{} is gone from the store", name(*number))).collect();
    words.extend(recovered.damaged.iter().map(|d| format!("{} is damaged: {}", name(d.number), d.what)));
    words.extend(adoption.lost.iter().map(|lost| {
        format!(
            "{}: offsets {}..{} are lost with {}",
            lost.bucket,
            lost.range.start,
            lost.range.end,
            name(lost.number)
        )
    }));
    words.extend(adoption.gaps.iter().map(|gap| {
        format!(
            "{}: not opened, its log goes from {} to {} in {}",
            gap.bucket,
            gap.expected,
            gap.found,
            name(gap.number)
        )
    }));
    for word in &words {
        tracing::error!(lost = %word, "acked data is missing; a person must look");
    }
    words
}
