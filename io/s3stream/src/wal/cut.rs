//! When the next WAL object is cut.
//!
//! Lives on: the WAL writer (pure).
//! Invariants: an idle node cuts nothing; a PUT that returns is by itself no reason to cut (parallel chains of PUTs would
//! never die down); untrimmed WAL stays within its bounds, so that a takeover's replay does (I20).
use mink_rt::Instant;

use super::config::WalConfig;

/// What the decision looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CutView {
    pub(crate) now: Instant,
    /// When the oldest waiting chunk came; none when none waits.
    pub(crate) oldest: Option<Instant>,
    pub(crate) waiting_bytes: u64,
    /// Bytes that the next object would have.
    pub(crate) next_bytes: u64,
    /// Numbers that are frozen and not yet durable in chain order.
    pub(crate) in_flight: usize,
    pub(crate) untrimmed_bytes: u64,
    pub(crate) untrimmed_objects: usize,
    /// When the budget of PUTs allows the next: while others are in flight no sooner than a turn after the last.
    pub(crate) budget_at: Instant,
    /// The chain is being closed: nothing is gained by waiting for more.
    pub(crate) draining: bool,
}

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    Now,
    /// At this time, unless something happens before.
    At(Instant),
    /// Only something else can change it: a chunk, a PUT's end.
    Wait,
    /// Only a trim can change it: the flusher must commit first.
    Full,
}

pub(crate) fn decide(config: &WalConfig, view: &CutView) -> Cut {
    let Some(oldest) = view.oldest else {
        return Cut::Wait;
    };
    let full = view.untrimmed_objects >= config.untrimmed_objects_max
        || (view.untrimmed_objects > 0
            && view.untrimmed_bytes.saturating_add(view.next_bytes) > config.untrimmed_bytes_max);
    if full {
        return Cut::Full;
    }
    if view.in_flight >= config.puts_in_flight_max {
        return Cut::Wait;
    }
    let at_once = view.in_flight == 0 || view.waiting_bytes >= config.batch_bytes || view.draining;
    let due = if at_once { view.now } else { oldest + config.linger };
    let at = due.max(view.budget_at);
    if at <= view.now { Cut::Now } else { Cut::At(at) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn view() -> CutView {
        CutView {
            now: ms(1000),
            oldest: Some(ms(1000)),
            waiting_bytes: 100,
            next_bytes: 300,
            in_flight: 0,
            untrimmed_bytes: 0,
            untrimmed_objects: 0,
            budget_at: Instant::ZERO,
            draining: false,
        }
    }

    fn cut(view: CutView) -> Cut {
        decide(&WalConfig::default(), &view)
    }

    #[test]
    fn an_idle_node_cuts_nothing() {
        assert_eq!(cut(CutView { oldest: None, waiting_bytes: 0, ..view() }), Cut::Wait);
    }

    #[test]
    fn at_once_when_nothing_is_in_flight_else_after_the_linger_or_at_the_batch_size() {
        assert_eq!(cut(view()), Cut::Now);
        assert_eq!(cut(CutView { in_flight: 1, ..view() }), Cut::At(ms(1050)));
        assert_eq!(cut(CutView { in_flight: 1, now: ms(1050), ..view() }), Cut::Now);
        assert_eq!(cut(CutView { in_flight: 15, waiting_bytes: 8 << 20, ..view() }), Cut::Now);
        assert_eq!(cut(CutView { in_flight: 15, draining: true, ..view() }), Cut::Now);
        assert_eq!(cut(CutView { in_flight: 16, waiting_bytes: 8 << 20, ..view() }), Cut::Wait);
    }

    #[test]
    fn the_budget_holds_a_due_cut_back() {
        assert_eq!(cut(CutView { budget_at: ms(1020), ..view() }), Cut::At(ms(1020)));
        assert_eq!(cut(CutView { budget_at: ms(1020), in_flight: 1, ..view() }), Cut::At(ms(1050)));
    }

    #[test]
    fn i20_full_untrimmed_wal_waits_for_the_trim() {
        assert_eq!(cut(CutView { untrimmed_objects: 512, ..view() }), Cut::Full);
        let bytes = (256 << 20) - 100;
        assert_eq!(cut(CutView { untrimmed_objects: 3, untrimmed_bytes: bytes, ..view() }), Cut::Full);
        // The bounds of a chain without untrimmed objects never stop it for good.
        let config = WalConfig { untrimmed_bytes_max: 10, ..WalConfig::default() };
        assert_eq!(decide(&config, &view()), Cut::Now);
    }

    /// Steady load against a store that takes `latency`: PUTs in the second second of a simulated run.
    fn steady(latency: Duration) -> usize {
        let (config, mut starts) = (WalConfig { puts_per_second: None, ..WalConfig::default() }, Vec::new());
        let (mut flying, mut oldest): (Vec<Instant>, Option<Instant>) = (Vec::new(), None);
        for step in 0..20_000u64 {
            let now = Instant::from_nanos(step * 100_000);
            flying.retain(|end| *end > now);
            if step % 10 == 0 {
                oldest.get_or_insert(now);
            }
            let look = CutView { now, oldest, in_flight: flying.len(), ..view() };
            if decide(&config, &look) == Cut::Now {
                oldest = None;
                starts.push(now);
                flying.push(now + latency);
            }
        }
        starts.iter().filter(|at| **at >= ms(1000)).count()
    }

    #[test]
    fn steady_load_on_a_50_ms_store_makes_about_20_puts_a_second() {
        let puts = steady(Duration::from_millis(50));
        assert!((19..=22).contains(&puts), "{puts}");
        // A slower store has several in flight, one per linger; a faster one is used as often as it answers.
        let puts = steady(Duration::from_millis(200));
        assert!((19..=22).contains(&puts), "{puts}");
        let puts = steady(Duration::from_millis(10));
        assert!((85..=101).contains(&puts), "{puts}");
    }
}
