//! Sees to it that every core answers: posts a sequence to each, and wakes, counts and names one that does not answer.
//! Lives on: one thread per set of cores.
//! Owns: what it has seen of each core.     Talks to: the cores' beats.
//! Invariants: an executor that has parked a core with runnable tasks is woken within `STALL_AFTER` + `LOOK_EVERY`.
//!
//! A look reads a core's counters and costs the core nothing. A post wakes it. A core that has polled no task since
//! its last answers is *quiet*: under an executor whose parks are sound it gets a post per second only, so an idle
//! node stays idle. (glommio 0.9 can park a core that has runnable tasks: its backend must not be trusted so.)

use crate::beat::{Beat, BeatReading, Culprit};
use std::sync::Arc;
use std::time::{Duration, Instant as Monotonic};

/// How often the watchdog looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(25);
/// A core that has not answered for this long has stalled.
pub(crate) const STALL_AFTER: Duration = Duration::from_millis(50);
/// Answers in a row without a poll of any task between them that make a core quiet.
const QUIET_ANSWERS: u32 = 4;
/// How often a quiet core is posted to all the same.
const QUIET_POST_EVERY: Duration = Duration::from_secs(1);
/// A watchdog that comes this late was not running itself (a suspended or overloaded machine): it blames nobody.
const LATE_AFTER: Duration = Duration::from_millis(75);

/// What to do about a core after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Nothing,
    Post,
    /// It answers again after this long.
    Recovered(Duration),
    /// No answer for this long; `first` at the first look that finds it so.
    Stalled {
        first: bool,
        silent: Duration,
    },
}

/// What the watchdog knows of one core. Times are since the watchdog's start.
#[derive(Debug, Default)]
struct Watched {
    polls: u64,
    posted_at: Duration,
    quiet_answers: u32,
    is_stalled: bool,
}

impl Watched {
    fn look(&mut self, now: Duration, late: bool, parks_are_sound: bool, seen: BeatReading) -> Verdict {
        let silent = now.saturating_sub(self.posted_at);
        if !seen.answered {
            if late {
                // Another full wait, from now.
                self.posted_at = now;
                return Verdict::Nothing;
            }
            if silent < STALL_AFTER {
                return Verdict::Nothing;
            }
            let first = !std::mem::replace(&mut self.is_stalled, true);
            return Verdict::Stalled { first, silent };
        }
        if std::mem::take(&mut self.is_stalled) {
            return Verdict::Recovered(silent);
        }
        let has_polled = std::mem::replace(&mut self.polls, seen.polls) != seen.polls;
        self.quiet_answers = if has_polled { 0 } else { self.quiet_answers.saturating_add(1) };
        if parks_are_sound && self.quiet_answers > QUIET_ANSWERS && silent < QUIET_POST_EVERY {
            return Verdict::Nothing;
        }
        self.posted_at = now;
        Verdict::Post
    }
}

/// Watches until every core has ended.
///
/// `parks_are_sound` says that the executor never parks a core that has something to run.
pub(crate) fn watch(beats: &[Arc<Beat>], parks_are_sound: bool) {
    // Not the boot-time clock: a suspended machine is nobody's stall.
    let start = Monotonic::now();
    let mut watched: Vec<Watched> = beats.iter().map(|_| Watched::default()).collect();
    let mut last = Duration::ZERO;
    while !beats.iter().all(|beat| beat.has_ended()) {
        std::thread::sleep(LOOK_EVERY);
        let now = start.elapsed();
        let late = now.saturating_sub(last) > LATE_AFTER;
        last = now;
        for (core, (beat, watched)) in beats.iter().zip(&mut watched).enumerate() {
            if !beat.has_ended() {
                act(core, beat, watched.look(now, late, parks_are_sound, beat.read()));
            }
        }
    }
}

fn act(core: usize, beat: &Beat, verdict: Verdict) {
    match verdict {
        Verdict::Nothing => {}
        Verdict::Post => beat.post(),
        Verdict::Recovered(silent) => {
            tracing::info!(core, silent_ms = millis(silent), "core answers again");
        }
        Verdict::Stalled { first, silent } => {
            if first {
                let culprit = beat.culprit(silent);
                beat.count_stall(culprit);
                let silent_ms = millis(silent);
                match culprit {
                    Culprit::Task(task) => tracing::warn!(core, task, silent_ms, "task blocks its core"),
                    Culprit::Executor => tracing::warn!(core, silent_ms, "parked core does not wake"),
                    // Nothing is wrong with the process; the machine is busy.
                    Culprit::System => tracing::info!(core, silent_ms, "core gets no time from the system"),
                }
            }
            beat.wake_again();
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A waker that only counts.
    struct Woken(std::sync::atomic::AtomicU32);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    fn counted_waker() -> (Arc<Woken>, std::task::Waker) {
        let woken = Arc::new(Woken(std::sync::atomic::AtomicU32::new(0)));
        (Arc::clone(&woken), std::task::Waker::from(woken))
    }

    fn answered(polls: u64) -> BeatReading {
        BeatReading { polls, answered: true }
    }

    fn silent(polls: u64) -> BeatReading {
        BeatReading { polls, answered: false }
    }

    #[test]
    fn a_core_that_does_not_answer_is_counted_once_and_woken_at_every_look() {
        let mut core = Watched::default();
        assert_eq!(core.look(25 * MS, false, true, answered(1)), Verdict::Post);
        assert_eq!(core.look(50 * MS, false, true, silent(1)), Verdict::Nothing);
        let first = Verdict::Stalled { first: true, silent: 50 * MS };
        assert_eq!(core.look(75 * MS, false, true, silent(1)), first);
        let again = Verdict::Stalled { first: false, silent: 75 * MS };
        assert_eq!(core.look(100 * MS, false, true, silent(1)), again);
        assert_eq!(core.look(125 * MS, false, true, answered(2)), Verdict::Recovered(100 * MS));
        assert_eq!(core.look(150 * MS, false, true, answered(2)), Verdict::Post);
    }

    #[test]
    fn a_quiet_core_is_left_alone_until_it_polls_again_or_a_second_has_passed() {
        let mut core = Watched::default();
        let mut posts = 0;
        for look in 1..=40 {
            posts += u32::from(core.look(look * 25 * MS, false, true, answered(7)) == Verdict::Post);
        }
        assert_eq!(posts, 1 + QUIET_ANSWERS, "one for the polls, then until it is quiet");
        assert_eq!(core.look(1_010 * MS, false, true, answered(8)), Verdict::Post);
        let mut quiet_posts = 0;
        for look in 1..=(4 * 40) {
            quiet_posts +=
                u32::from(core.look(1_010 * MS + look * 25 * MS, false, true, answered(8)) == Verdict::Post);
        }
        assert!((QUIET_ANSWERS + 3..=QUIET_ANSWERS + 4).contains(&quiet_posts), "{quiet_posts}");
    }

    #[test]
    fn an_executor_that_parks_runnable_tasks_gets_a_post_at_every_look() {
        let mut core = Watched::default();
        for look in 1..=40 {
            assert_eq!(core.look(look * 25 * MS, false, false, answered(7)), Verdict::Post);
        }
    }

    #[test]
    fn a_watchdog_that_was_late_itself_blames_nobody() {
        let mut core = Watched::default();
        assert_eq!(core.look(25 * MS, false, true, answered(1)), Verdict::Post);
        assert_eq!(core.look(10_000 * MS, true, true, silent(1)), Verdict::Nothing);
        assert_eq!(core.look(10_025 * MS, false, true, silent(1)), Verdict::Nothing);
        let stalled = Verdict::Stalled { first: true, silent: 50 * MS };
        assert_eq!(core.look(10_050 * MS, false, true, silent(1)), stalled);
    }

    /// Linux tells who sleeps; elsewhere nothing is blamed on the executor.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_culprit_is_the_task_else_a_sleeping_thread_else_the_system() {
        let beat = Arc::new(Beat::default());
        assert_eq!(beat.culprit(50 * MS), Culprit::System, "no thread is known yet");
        let (release, released) = std::sync::mpsc::channel::<()>();
        let parked = Arc::clone(&beat);
        let thread = std::thread::spawn(move || {
            parked.on_this_thread();
            released.recv().unwrap();
        });
        beat.post();
        let start = Monotonic::now();
        while beat.culprit(50 * MS) != Culprit::Executor {
            assert!(start.elapsed() < Duration::from_secs(20), "the thread does not go to sleep");
            std::thread::yield_now();
        }
        beat.enter(beat.name_id("other"));
        assert_eq!(beat.culprit(50 * MS), Culprit::Task("other"));
        beat.leave();
        beat.count_stall(Culprit::Task("other"));
        beat.count_stall(Culprit::Executor);
        let stats = beat.stats(crate::Instant::ZERO);
        assert_eq!((stats.stalls, stats.parked_stalls), (2, 1));
        release.send(()).unwrap();
        thread.join().unwrap();
        beat.on_this_thread();
        assert_eq!(beat.culprit(50 * MS), Culprit::System, "this thread runs");
    }

    /// The machine is busy, and for that a task is not blamed.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_task_whose_thread_waited_for_its_turn_on_the_cpu_is_not_to_blame() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let (beat, stop) = (Arc::new(Beat::default()), Arc::new(AtomicBool::new(false)));
        let known = Arc::new(AtomicBool::new(false));
        let cpu = rustix::thread::sched_getcpu();
        let crowd: Vec<_> = (0..4)
            .map(|n| {
                let (beat, stop, known) = (Arc::clone(&beat), Arc::clone(&stop), Arc::clone(&known));
                std::thread::spawn(move || {
                    let mut one = rustix::thread::CpuSet::new();
                    one.set(cpu);
                    rustix::thread::sched_setaffinity(None, &one).unwrap();
                    if n == 0 {
                        beat.on_this_thread();
                        known.store(true, Ordering::Release);
                    }
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                })
            })
            .collect();
        let start = Monotonic::now();
        while !known.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        beat.enter(beat.name_id("crowded"));
        let mut culprit = Culprit::Task("none");
        while culprit != Culprit::System && start.elapsed() < Duration::from_secs(20) {
            beat.post();
            std::thread::sleep(100 * MS);
            culprit = beat.culprit(100 * MS);
        }
        stop.store(true, Ordering::Relaxed);
        for thread in crowd {
            thread.join().unwrap();
        }
        assert_eq!(culprit, Culprit::System);
    }

    #[test]
    fn a_wake_that_was_lost_is_followed_by_others() {
        let beat = Arc::new(Beat::default());
        let (woken, waker) = counted_waker();
        let mut answer = crate::beat::Answer(Arc::clone(&beat));
        let mut cx = std::task::Context::from_waker(&waker);
        assert!(std::pin::Pin::new(&mut answer).poll(&mut cx).is_pending());
        beat.post();
        beat.wake_again();
        beat.wake_again();
        assert_eq!(woken.0.load(std::sync::atomic::Ordering::Relaxed), 3);
        drop(answer);
        beat.wake_again();
        assert_eq!(woken.0.load(std::sync::atomic::Ordering::Relaxed), 3, "the core has ended");
    }

    #[test]
    fn a_real_beat_is_read_as_answered_only_after_its_core_polled_the_answer() {
        let beat = Arc::new(Beat::default());
        assert!(beat.read().answered);
        beat.post();
        assert!(!beat.read().answered);
        let mut answer = crate::beat::Answer(Arc::clone(&beat));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(std::pin::Pin::new(&mut answer).poll(&mut cx).is_pending());
        assert!(beat.read().answered);
    }
}
