//! Reading the objects of a dead chain: header and footer of each, with retries.
//!
//! Lives on: service runtime.
//! Invariants: an answer that is not one ("503", a time-out) is never taken for "absent" (P-6); an object that is not the
//! expected one, undamaged, is never taken for data (P-1).
use std::sync::Arc;

use bytes::Bytes;
use mink_object::{GetError, Span};
use mink_types::{ObjectId, ObjectKey, WalNumber};

use super::{RecoveredObject, Takeover};
use crate::create::Pause;
use crate::error::{Error, ErrorKind};
use crate::format::{
    Footer, FormatError, HEADER_BYTES, Header, ObjectKind, Sealer, TAIL_BYTES, Tail, split_end,
};

/// Objects up to this length are read whole, in one request; of longer ones only the ends.
const WHOLE_BYTES_MAX: u64 = 1 << 20;
/// The same of an object whose length a listing told: then its ends can be had as fast as the whole.
const WHOLE_LISTED_MAX: u64 = 64 << 10;
/// What is read of the end of a longer one: a share of its length, since an index grows with what it is of, within these
/// bounds. A footer that is longer is read by a second request.
const END_SHARE: u64 = 16;
const END_BYTES_MIN: u64 = 16 << 10;
const END_BYTES_MAX: u64 = 256 << 10;

/// What lies under a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Read {
    Data(RecoveredObject),
    Seal { header: Header, by: Sealer },
    Damaged { what: String },
    Absent,
}

impl Takeover {
    fn object(&self, number: WalNumber) -> ObjectId {
        ObjectId::Wal { chain: self.chain, number }
    }

    /// Reads header and footer of a number; `listed` is the length that a listing told, if it did.
    pub(super) async fn read(&self, number: WalNumber, listed: Option<u64>) -> Result<Read, Error> {
        if let Some(len) = listed {
            // Data and seals that prove themselves are what they are; on anything else the full read has the last word.
            match self.read_listed(number, len).await? {
                Some(read @ (Read::Data(_) | Read::Seal { .. })) => return Ok(read),
                Some(Read::Damaged { .. } | Read::Absent) | None => {}
            }
        }
        let id = self.object(number);
        match self.get(id, Span::Whole { max: WHOLE_BYTES_MAX }).await? {
            Ok(bytes) => self.judge(number, bytes.clone(), bytes.len() as u64, bytes).await,
            Err(GetError::NotFound) => Ok(Read::Absent),
            Err(GetError::TooLarge { len, .. }) => match self.ends(id, len).await? {
                Ok((header, end)) => self.judge(number, header, len, end).await,
                Err(error) => Ok(Read::Damaged { what: error.to_string() }),
            },
            Err(error) => Ok(Read::Damaged { what: error.to_string() }),
        }
    }

    /// One round trip to an object of `len` bytes; none if there is no such object.
    async fn read_listed(&self, number: WalNumber, len: u64) -> Result<Option<Read>, Error> {
        let id = self.object(number);
        let parts = if len <= WHOLE_LISTED_MAX {
            self.get(id, Span::Range(0..len)).await?.map(|bytes| (bytes.clone(), bytes))
        } else {
            self.ends(id, len).await?
        };
        match parts {
            Ok((head, end)) => self.judge(number, head, len, end).await.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Header and end of an object, side by side.
    async fn ends(&self, id: ObjectId, len: u64) -> Result<Result<(Bytes, Bytes), GetError>, Error> {
        let end = (len / END_SHARE).clamp(END_BYTES_MIN, END_BYTES_MAX);
        let header = self.get(id, Span::Range(0..HEADER_BYTES as u64));
        let end = self.get(id, Span::Range(len.saturating_sub(end)..len));
        let (header, end) = futures::try_join!(header, end)?;
        Ok(header.and_then(|header| Ok((header, end?))))
    }

    /// The header alone, for the proof of a lost number; none if there is no sound one.
    pub(super) async fn read_header(&self, number: WalNumber) -> Result<Option<Header>, Error> {
        let header = self.get(self.object(number), Span::Range(0..HEADER_BYTES as u64)).await?;
        let header = header.ok().and_then(|bytes| Header::decode(&bytes).ok());
        Ok(header.filter(|header| self.expected(number, header)))
    }

    /// That the object before the trim is there: else the view is older than the chain.
    pub(super) async fn check_anchor(&self) -> Result<(), Error> {
        let Some(anchor) = self.trim.0.checked_sub(1).map(WalNumber) else {
            return Ok(());
        };
        let id = self.object(anchor);
        let stale = |what: String| Err(Error::new(ErrorKind::Stale, what));
        match self.get(id, Span::Range(0..HEADER_BYTES as u64)).await? {
            Err(GetError::NotFound) => {
                stale(format!("{id}, the anchor before trim {}, is not there", self.trim))
            }
            Err(error) => Err(Error::read(id, error)),
            Ok(bytes) => match Header::decode(&bytes) {
                Ok(header) if !self.expected(anchor, &header) => stale(format!("{id} is not of this chain")),
                Ok(Header { kind: ObjectKind::Data, .. }) => Ok(()),
                Ok(_) => stale(format!("{id}, before trim {}, is a seal", self.trim)),
                Err(error) => Err(Error::corrupt(id, error)),
            },
        }
    }

    fn expected(&self, number: WalNumber, header: &Header) -> bool {
        header.object() == self.object(number) && header.cluster == self.uuid
    }

    /// Judges an object by its first and last bytes.
    async fn judge(&self, number: WalNumber, head: Bytes, len: u64, end: Bytes) -> Result<Read, Error> {
        let damaged = |what: String| Ok(Read::Damaged { what });
        let header = match Header::decode(&head) {
            Ok(header) if self.expected(number, &header) => header,
            Ok(header) => {
                let what = format!(
                    "{} holds {} of cluster {}",
                    self.object(number),
                    header.object(),
                    header.cluster
                );
                return Err(Error::new(ErrorKind::Stale, what));
            }
            // What a newer version acked is not for this one to call lost (I1): stop, and let a person upgrade.
            Err(error @ FormatError::Version { .. }) => {
                return Err(Error::corrupt(self.object(number), error));
            }
            Err(error) => return damaged(error.to_string()),
        };
        let (tail, footer) = match split_end(&end, len) {
            Ok(end) => end,
            Err(error) => return damaged(error.to_string()),
        };
        if let ObjectKind::Seal { by } = header.kind {
            return Ok(Read::Seal { header, by });
        }
        let footer = match footer {
            Some(footer) => footer,
            None => match self.long_footer(number, &tail).await? {
                Ok(footer) => footer,
                Err(what) => return damaged(what),
            },
        };
        Ok(Read::Data(RecoveredObject {
            number,
            length: len,
            footer_length: tail.footer_length,
            checksum: tail.footer_crc,
            header,
            footer: Arc::new(footer),
        }))
    }

    async fn long_footer(&self, number: WalNumber, tail: &Tail) -> Result<Result<Footer, String>, Error> {
        let end = tail.total.saturating_sub(TAIL_BYTES as u64);
        Ok(match self.get(self.object(number), Span::Range(tail.footer_position..end)).await? {
            Ok(bytes) => tail.footer(&bytes).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        })
    }

    /// A read that is repeated until the store answers. The inner error is an answer.
    async fn get(&self, id: ObjectId, span: Span) -> Result<Result<Bytes, GetError>, Error> {
        let key = ObjectKey::object(&self.cluster, id);
        let mut pause = Pause::new(&self.config);
        let mut last = GetError::Unavailable { reason: "not tried".to_owned() };
        for attempt in 0..self.config.read_attempts_max {
            if attempt > 0 {
                self.service.sleep(pause.next(self.service.random_u64())).await;
            }
            let get = self.store.get(&key, span.clone());
            last = match self.service.timeout(self.config.get_timeout, get).await {
                Err(elapsed) => GetError::Unavailable { reason: elapsed.to_string() },
                Ok(Err(error)) if unanswered(&error) => error,
                Ok(answer) => return Ok(answer),
            };
        }
        Err(Error::read(id, last))
    }
}

fn unanswered(error: &GetError) -> bool {
    matches!(error, GetError::Unavailable { .. } | GetError::Denied { .. } | GetError::WrongLength { .. })
}
