//! Taking a fenced incarnation's chain over: walk from its frozen trim, end it with a seal, know what it holds.
//!
//! Lives on: service runtime.
//! Owns: nothing that lasts.     Talks to: the store. The caller has fenced the incarnation and applied that first.
//! Invariants: I1: what the dead process acked is in what the walk returns; I5: after the seal its PUTs change nothing.
//! P-6: reads ahead are bounded and repeated with growing pauses.
mod adopt;
mod fetch;
mod lengths;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use adopt::in_commits;
pub use adopt::{Adoption, BucketView, Gap, LostRange, RANGES_PER_COMMIT};
pub use walk::{Found, Step, Walk};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _};
use mink_object::ObjectStore;
use mink_rt::{Service, mutant};
use mink_types::{ClusterName, ClusterUuid, ObjectId, ObjectKey, WalChain, WalNumber, Witness};

use crate::create::{Created, Creator, Frozen};
use crate::error::Error;
use crate::format::{Footer, Header, Nonce, ObjectKind, Sealer, seal};
use crate::wal::WalConfig;
use fetch::Read;
use lengths::Lengths;

/// Objects read at a time where no listing has told how long they are: each may bring 1 MiB.
const UNLISTED_IN_FLIGHT_MAX: usize = 16;
/// How far such reads go before the walk looks where it is.
const UNLISTED_READS: u64 = 64;

/// A takeover to do.
pub struct Takeover {
    pub service: Service,
    /// Where the chain's WAL objects lie, by its node's registration.
    pub store: Arc<dyn ObjectStore>,
    pub cluster: ClusterName,
    pub uuid: ClusterUuid,
    /// Whose chain.
    pub chain: WalChain,
    /// Its trim, frozen by the fence.
    pub trim: WalNumber,
    /// Who takes it over.
    pub me: WalChain,
    /// How far `me` has applied the command log.
    pub witness: Witness,
    pub config: Arc<WalConfig>,
}

impl fmt::Debug for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Takeover")
            .field("chain", &self.chain)
            .field("trim", &self.trim)
            .finish_non_exhaustive()
    }
}

/// What a chain holds from its trim on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    pub chain: WalChain,
    /// In order of their numbers.
    pub objects: Vec<RecoveredObject>,
    /// Where the seal lies: what `Open` records.
    pub seal: WalNumber,
    /// Who wrote it: this taker, an earlier one, or the node itself when it left.
    pub sealed_by: Sealer,
    /// Numbers that were durable and are gone from the store. A person must look.
    pub lost: Vec<WalNumber>,
    /// Numbers whose objects are not what was written. A person must look.
    pub damaged: Vec<Damaged>,
    /// The furthest row of the command log that an object names: a database behind it has lost commands (I13).
    pub highest_witness: Witness,
}

/// A WAL object, without its data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveredObject {
    pub number: WalNumber,
    /// Whole length in bytes.
    pub length: u64,
    /// Of the footer, without the tail.
    pub footer_length: u32,
    /// CRC32C of the footer.
    pub checksum: u32,
    pub header: Header,
    pub footer: Arc<Footer>,
}

/// What the headers behind a number say, see [`Step::Probe`].
struct Probed {
    after: WalNumber,
    highest: Option<WalNumber>,
}

/// An object that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damaged {
    pub number: WalNumber,
    pub what: String,
}

impl Takeover {
    /// Walks the chain to its seal, writing the seal if there is none. May be repeated, also by several takers at once.
    pub async fn run(&self) -> Result<Recovered, Error> {
        let (anchor, mut lengths) = futures::join!(self.check_anchor(), self.lengths(self.trim));
        anchor?;
        let mut walk = Walk::new(self.trim, self.config.puts_in_flight_max as u64);
        let mut found = Recovered {
            chain: self.chain,
            objects: Vec::new(),
            seal: self.trim,
            sealed_by: Sealer { chain: self.me },
            lost: Vec::new(),
            damaged: Vec::new(),
            highest_witness: Witness::default(),
        };
        let mut probed = None;
        loop {
            match walk.step() {
                Step::Done { seal } => {
                    found.seal = seal;
                    found.lost = walk.lost().to_vec();
                    self.report(&found);
                    return Ok(found);
                }
                Step::Read { number, fresh: false } => {
                    if lengths.ends_before(number) {
                        lengths = self.lengths(number).await;
                    }
                    probed = self.read_ahead(&mut walk, &mut found, number, &lengths).await?;
                }
                Step::Read { number, fresh: true } => {
                    let read = self.read(number, None).await?;
                    found.feed(&mut walk, number, read);
                }
                Step::Probe { after, last } => match probed.take() {
                    Some(Probed { after: at, highest }) if at == after => walk.probed(highest),
                    _ => walk.probed(self.probe(after, last).await?),
                },
                Step::WriteSeal { number } => walk.sealed(self.write_seal(number, &mut found).await?),
            }
        }
    }

    /// Reads numbers from `from` on, many at a time, up to the first that is no data. Where the chain should end by the listing,
    /// the probe that would come next is sent along.
    async fn read_ahead(
        &self,
        walk: &mut Walk,
        found: &mut Recovered,
        from: WalNumber,
        lengths: &Lengths,
    ) -> Result<Option<Probed>, Error> {
        let most = self.config.reads_in_flight_max;
        // As far as was listed, and the number behind; else a few, whatever there is.
        let (last, ends, ahead) = match lengths.last() {
            Some(last) if last >= from => (last.next(), true, most),
            None if lengths.are_known() && from == self.trim => (from, true, 1),
            _ => (WalNumber(from.0.saturating_add(UNLISTED_READS)), false, most.min(UNLISTED_IN_FLIGHT_MAX)),
        };
        let reads = self.read_run(walk, found, (from, last), ahead, lengths);
        if !ends {
            return reads.await.map(|()| None);
        }
        let window = self.config.puts_in_flight_max as u64;
        let probe = self.probe(last, WalNumber(last.0.saturating_add(window)));
        let (read, highest) = futures::join!(reads, probe);
        // A probe that failed is repeated, if it is wanted at all.
        read.map(|()| highest.ok().map(|highest| Probed { after: last, highest }))
    }

    /// Reads a run of numbers and feeds them in order. One that must be asked for again and again does not hold up those behind
    /// it: what came early is kept (an index each, no data).
    async fn read_run(
        &self,
        walk: &mut Walk,
        found: &mut Recovered,
        (first, last): (WalNumber, WalNumber),
        ahead: usize,
        lengths: &Lengths,
    ) -> Result<(), Error> {
        // Boxed: the compiler cannot see that the future of a closure over borrowed things is `Send`.
        let read = |number| async move { (number, self.read(number, lengths.of(number)).await) }.boxed();
        let reads = (first.0..=last.0).map(WalNumber).map(read);
        let mut reads = std::pin::pin!(futures::stream::iter(reads).buffer_unordered(ahead));
        let (mut early, mut next) = (BTreeMap::new(), first);
        while let Some((number, read)) = reads.next().await {
            early.insert(number, read);
            while let Some(read) = early.remove(&next) {
                if !found.feed(walk, next, read?) {
                    return Ok(());
                }
                next = next.next();
            }
        }
        Ok(())
    }

    /// The highest `durable_through` in the headers of the numbers after `after` up to `last`.
    async fn probe(&self, after: WalNumber, last: WalNumber) -> Result<Option<WalNumber>, Error> {
        let reads = (after.0.saturating_add(1)..=last.0).map(|number| self.read_header(WalNumber(number)));
        let mut reads =
            std::pin::pin!(futures::stream::iter(reads).buffered(self.config.reads_in_flight_max));
        let mut highest = None;
        while let Some(header) = reads.next().await {
            highest = highest.max(header?.and_then(|header| header.durable_through));
        }
        Ok(highest)
    }

    /// Creates the seal; false if something else lies there. Its bytes are frozen like those of any number.
    async fn write_seal(&self, number: WalNumber, found: &mut Recovered) -> Result<bool, Error> {
        if mutant("no-seal") {
            return Ok(true);
        }
        let header = Header {
            kind: ObjectKind::Seal { by: Sealer { chain: self.me } },
            cluster: self.uuid,
            chain: self.chain,
            number: number.0,
            nonce: Nonce::of(self.service.random_u64(), self.service.random_u64()),
            witness: self.witness,
            durable_through: None,
        };
        let id = ObjectId::Wal { chain: self.chain, number };
        let creator = Creator::new(self.service.clone(), Arc::clone(&self.store), Arc::clone(&self.config));
        let key = ObjectKey::object(&self.cluster, id);
        let frozen = Frozen { id, key, payload: seal(&header).payload, nonce: header.nonce };
        // Until it is known whose object lies there nothing may be opened; the caller may give up by dropping this.
        match creator.create(&frozen).await {
            Created::Ours => {
                found.sealed_by = Sealer { chain: self.me };
                Ok(true)
            }
            Created::Sealed(_) | Created::Foreign { .. } => Ok(false),
        }
    }

    fn report(&self, found: &Recovered) {
        let chain = self.chain;
        for number in &found.lost {
            let object = ObjectId::Wal { chain, number: *number };
            tracing::error!(%object, "acknowledged data is lost: the store no longer has an object that was durable");
        }
        for damaged in &found.damaged {
            let object = ObjectId::Wal { chain, number: damaged.number };
            tracing::error!(%object, what = damaged.what, "acknowledged data is lost: an object is damaged");
        }
        tracing::info!(
            node = chain.node.0,
            incarnation = chain.incarnation.0,
            trim = self.trim.0,
            seal = found.seal.0,
            objects = found.objects.len(),
            "chain taken over"
        );
    }
}

impl Recovered {
    /// Takes what was read under a number; whether the walk goes on to the next.
    fn feed(&mut self, walk: &mut Walk, number: WalNumber, read: Read) -> bool {
        match read {
            Read::Data(object) => {
                self.note(&object.header);
                self.objects.push(object);
                walk.read(Found::Data);
            }
            Read::Damaged { what } => {
                self.damaged.push(Damaged { number, what });
                walk.read(Found::Damaged);
            }
            Read::Seal { header, by } => {
                self.note(&header);
                self.sealed_by = by;
                walk.read(Found::Seal);
                return false;
            }
            Read::Absent => {
                walk.read(Found::Absent);
                return false;
            }
        }
        true
    }

    fn note(&mut self, header: &Header) {
        if header.witness.index > self.highest_witness.index {
            self.highest_witness = header.witness;
        }
    }
}
