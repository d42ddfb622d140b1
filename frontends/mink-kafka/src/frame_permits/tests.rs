//! No interleaving of arriving frames deadlocks or holds more than the budget.
//!
//! Lives on: tests only.
use super::*;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::task::{Context, Waker};

const MIB: u64 = 1 << 20;

/// The same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)) >> 11) % bound
    }
}

/// Gives others a turn.
async fn turn() {
    let mut first = true;
    std::future::poll_fn(|_| {
        if std::mem::take(&mut first) { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
}

/// A frame: it comes piece by piece, up to `comes` of its bytes, and is held for some turns when it is whole.
async fn frame(permits: FramePermits, whole: u64, comes: u64, piece: u64) {
    let mut permit = BytePermit::default();
    let (mut covered, mut come) = (0, 0);
    while come < whole {
        if come == covered {
            covered = permits.grow(&mut permit, covered, whole).await;
            assert!(permit.bytes() >= covered, "what is held is paid");
        }
        turn().await;
        if come >= comes {
            std::future::pending::<()>().await;
        }
        come = (come + piece).min(covered).min(comes);
    }
    for _ in 0..piece % 5 {
        turn().await;
    }
}

struct Running {
    future: BoxFuture<'static, ()>,
    stalls: bool,
}

/// Polls frames in random order until all that come are done; those that stall go when others wait, as the reader lets them.
fn run(seed: u64) {
    let mut dice = Dice(seed);
    let budget = MIB + dice.below(3 * MIB);
    let longest = 200_000 + dice.below(budget);
    let permits = FramePermits::of(budget, longest, budget / SMALL_PART, budget / AHEAD_PART);
    assert!(permits.total_bytes() <= budget + UNIT);
    let total = permits.total_bytes();
    let mut frames: Vec<Running> = (0..40)
        .map(|_| {
            let whole = 1 + dice.below(longest.min(permits.0.reserve.total_bytes()));
            let stalls = dice.below(3) == 0;
            let comes = if stalls { dice.below(whole) } else { whole };
            let piece = 5_000 + dice.below(100_000);
            let future = frame(permits.clone(), whole, comes, piece).boxed();
            Running { future, stalls }
        })
        .collect();
    let mut context = Context::from_waker(Waker::noop());
    let mut polls = 0;
    while frames.iter().any(|frame| !frame.stalls) {
        polls += 1;
        assert!(polls < 400_000, "seed {seed}: {} frames wait for each other", frames.len());
        let at = usize::try_from(dice.below(frames.len() as u64)).unwrap();
        let ended = frames[at].future.as_mut().poll(&mut context).is_ready();
        if ended || (frames[at].stalls && permits.is_short() && dice.below(200) == 0) {
            drop(frames.swap_remove(at));
        }
        assert!(permits.free_bytes() <= total);
    }
    drop(frames);
    assert_eq!(permits.free_bytes(), total, "seed {seed}: all is given back");
}

#[test]
fn i20_t_8_no_order_of_arriving_frames_deadlocks_or_passes_the_budget() {
    (0..300).for_each(run);
}

#[test]
fn t_8_frames_that_all_have_begun_end_one_after_the_other_although_the_pool_is_empty() {
    // Room for twenty beginnings, and for one whole frame.
    let permits = FramePermits::of(MIB + 20 * STEP_BYTES, MIB, 0, 0);
    let pool = permits.0.pool.clone().expect("a pool");
    let _half = pool.try_take(10 * STEP_BYTES).expect("room");
    let mut begun: Vec<BytePermit> = (0..10).map(|_| BytePermit::default()).collect();
    for permit in &mut begun {
        assert_eq!(permits.grow(permit, 0, MIB).now_or_never(), Some(STEP_BYTES));
    }
    let mut first = begun.remove(0);
    assert_eq!(permits.grow(&mut first, STEP_BYTES, MIB).now_or_never(), Some(MIB), "from the reserve");
    let mut second = begun.remove(0);
    let mut waits = permits.grow(&mut second, STEP_BYTES, MIB).boxed_local();
    let mut context = Context::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(&mut context).is_pending() && permits.is_short());
    // A small frame that is there does not stand behind them.
    let permits = FramePermits::of(MIB + 20 * STEP_BYTES, MIB, 64 << 10, 0);
    let _all = permits.0.pool.as_ref().and_then(|pool| pool.try_take(u64::MAX));
    let _reserve = permits.0.reserve.try_take(u64::MAX).expect("room");
    assert!(permits.take_small(1_000).now_or_never().is_some());
    drop(first);
}

#[test]
fn i20_a_frame_takes_at_most_as_much_again_as_it_has_when_half_of_the_pool_is_taken() {
    let permits = FramePermits::of(16 * MIB, 4 * MIB, 0, 0);
    let mut whole = BytePermit::default();
    assert_eq!(permits.grow(&mut whole, 0, 3 * MIB).now_or_never(), Some(2 * MIB), "there is plenty");
    assert_eq!(permits.grow(&mut whole, 2 * MIB, 3 * MIB).now_or_never(), Some(3 * MIB));
    let _more = permits.0.pool.as_ref().and_then(|pool| pool.try_take(4 * MIB)).expect("room");
    let mut slow = BytePermit::default();
    let mut covered = 0;
    for step in [STEP_BYTES, 2 * STEP_BYTES, 4 * STEP_BYTES, 100_000] {
        covered = permits.grow(&mut slow, covered, 100_000).now_or_never().expect("room");
        assert_eq!(covered, step);
    }
}

#[test]
fn i20_what_is_read_ahead_is_bounded_over_all_connections() {
    let permits = FramePermits::ordinary(MIB);
    let held: Vec<BytePermit> = std::iter::from_fn(|| permits.ahead(8 << 10)).collect();
    assert_eq!(held.len() as u64, MIB / AHEAD_PART / (8 << 10));
}

#[test]
fn i20_what_is_spare_is_given_only_while_there_is_plenty() {
    let permits = FramePermits::ordinary(64 * MIB);
    let held: Vec<BytePermit> = std::iter::from_fn(|| permits.spare(4 * MIB)).collect();
    let pool = permits.0.pool.as_ref().expect("larger than its reserve");
    assert!(!held.is_empty() && pool.free_bytes() >= 4 * MIB && pool.free_bytes() <= 8 * MIB);
    assert!(permits.spare(pool.free_bytes() / 4).is_some(), "less is plenty still");
    drop(held);
    assert_eq!(permits.held_bytes(), 0);
    let reserve_only = FramePermits::ordinary(MIB);
    assert!(reserve_only.spare(1).is_none(), "a frame may need all of it");
}
