//! How much memory frames may take while they come: a frame's part grows with its bytes, and one can always be finished.
//!
//! Lives on: the service runtime, shared by all connections.
//! Owns: the budget of the requests' bytes, in four parts.
//! Invariants: I20: what all frames hold never exceeds the budget. T-8: frames that have come in part never wait for each other only. A
//! frame takes from the pool in steps, each as large as what it holds; when the pool is empty it waits at the pool for its step and at
//! the reserve for all that it will ever need. Whoever has that needs nothing more, so it ends and gives it back, and the next one in the
//! reserve's line has its turn. Small frames that are there already stand in a line of their own: they keep nobody waiting.
use crate::frame_reader::ORDINARY_BYTES_MAX;
use mink_router::{BytePermit, BytePermits};
use std::sync::Arc;

/// First step while more than half of the pool is free ...
const STEP_BYTES_MAX: u64 = 2 << 20;
/// ... and when it is not.
const STEP_BYTES: u64 = 16 << 10;

/// Permits are counted in units of this many bytes.
const UNIT: u64 = 1024;

/// Part of the budget for small frames that are there, and for what is read ahead.
const SMALL_PART: u64 = 16;
const AHEAD_PART: u64 = 8;
const AHEAD_BYTES_MAX: u64 = 16 << 20;

#[derive(Debug)]
struct Parts {
    /// None when the reserve takes all.
    pool: Option<BytePermits>,
    reserve: BytePermits,
    small: Option<BytePermits>,
    ahead: Option<BytePermits>,
}

/// The budget of the bytes of requests; cheap to clone.
#[derive(Clone, Debug)]
pub struct FramePermits(Arc<Parts>);

impl FramePermits {
    /// A budget of `bytes` for frames of at most [`ORDINARY_BYTES_MAX`].
    pub fn ordinary(bytes: u64) -> FramePermits {
        let (small, ahead) = (bytes / SMALL_PART, (bytes / AHEAD_PART).min(AHEAD_BYTES_MAX));
        FramePermits::of(bytes, ORDINARY_BYTES_MAX as u64 + UNIT, small, ahead)
    }

    /// A budget for larger frames, of at most `frame_bytes_max`: nothing of it is set aside for small ones.
    pub fn large(bytes: u64, frame_bytes_max: u64) -> FramePermits {
        FramePermits::of(bytes, frame_bytes_max + UNIT, 0, 0)
    }

    fn of(bytes: u64, frame_bytes_max: u64, small: u64, ahead: u64) -> FramePermits {
        let part = |bytes: u64, least: u64| (bytes >= least).then(|| BytePermits::new(bytes / UNIT * UNIT));
        let left = bytes - small - ahead;
        let reserve = frame_bytes_max.next_multiple_of(UNIT).min(left);
        FramePermits(Arc::new(Parts {
            pool: part(left - reserve, STEP_BYTES),
            reserve: BytePermits::new(reserve),
            small: part(small, UNIT),
            ahead: part(ahead, UNIT),
        }))
    }

    fn parts(&self) -> impl Iterator<Item = &BytePermits> {
        let Parts { pool, reserve, small, ahead } = &*self.0;
        [Some(reserve), pool.as_ref(), small.as_ref(), ahead.as_ref()].into_iter().flatten()
    }

    /// The whole budget in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.parts().map(BytePermits::total_bytes).sum()
    }

    /// Bytes that are taken now.
    pub fn held_bytes(&self) -> u64 {
        self.total_bytes() - self.free_bytes()
    }

    /// Bytes that are free now.
    pub fn free_bytes(&self) -> u64 {
        self.parts().map(BytePermits::free_bytes).sum()
    }

    /// Whether a frame waits for bytes.
    pub(crate) fn is_short(&self) -> bool {
        self.parts().any(BytePermits::is_short)
    }

    /// Room for bytes that are read before it is known what comes; none when it is taken.
    pub(crate) fn ahead(&self, bytes: u64) -> Option<BytePermit> {
        self.0.ahead.as_ref()?.try_take(bytes)
    }

    /// Room for what takes more memory than the frame that it came in, while there is plenty: no frame waits because of it.
    pub(crate) fn spare(&self, bytes: u64) -> Option<BytePermit> {
        let pool = self.0.pool.as_ref().filter(|pool| !pool.is_short() && pool.free_bytes() / 2 > bytes)?;
        pool.try_take(bytes)
    }

    /// Waits for `bytes` for a small frame that is whole.
    pub(crate) async fn take_small(&self, bytes: u64) -> BytePermit {
        let Parts { pool, small, .. } = &*self.0;
        if let Some(permit) = pool.as_ref().and_then(|pool| pool.try_take(bytes)) {
            return permit;
        }
        let mut permit = BytePermit::default();
        let whole = async {
            let mut covered = 0;
            while covered < bytes {
                covered = self.grow(&mut permit, covered, bytes).await;
            }
        };
        match small.as_ref().filter(|small| small.total_bytes() >= bytes) {
            Some(small) => tokio::select! {
                biased;
                permit = small.take(bytes) => return permit,
                () = whole => {}
            },
            None => whole.await,
        }
        permit
    }

    /// Waits until a frame of `whole` bytes that holds `held` of them, by `permit`, may hold more; gives how many it then holds.
    pub(crate) async fn grow(&self, permit: &mut BytePermit, held: u64, whole: u64) -> u64 {
        let missing = whole.saturating_sub(held);
        let Parts { pool, reserve, .. } = &*self.0;
        let Some(pool) = pool else {
            permit.join(reserve.take(missing).await);
            return whole;
        };
        let first = if pool.free_bytes() > pool.total_bytes() / 2 { STEP_BYTES_MAX } else { STEP_BYTES };
        let step = held.max(first).min(missing).min(pool.total_bytes());
        if let Some(more) = pool.try_take(step) {
            permit.join(more);
            return held + step;
        }
        tokio::select! {
            biased;
            more = pool.take(step) => {
                permit.join(more);
                held + step
            }
            rest = reserve.take(missing) => {
                permit.join(rest);
                whole
            }
        }
    }
}

#[cfg(test)]
mod tests;
