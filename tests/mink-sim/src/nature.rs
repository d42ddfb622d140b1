//! What goes wrong in a history: crashes, stalls, replacements, drains, outages, storms, clocks that jump.
//!
//! Lives on: the simulation's thread.
//! Owns: the processes, and when each trouble ends.
//! Invariants: there is always a process that can serve, or one is begun soon; no process ends as "failed", whatever is done to it.
use crate::damage;
use crate::levels;
use crate::machine::{Ended, Running, Site};
use crate::weather::{Place, Weather};
use mink_node::NodeEnd;
use mink_object::MemoryStore;
use mink_rt::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Machines that processes can run on.
const MACHINES: usize = 3;

/// How often nature looks around.
const TICK: Duration = Duration::from_millis(100);

/// How long a drain may take.
const DRAIN: Duration = Duration::from_secs(15);

/// What nature does to a history.
pub(crate) struct Nature {
    site: Site,
    weather: Arc<Weather>,
    memory: Arc<MemoryStore>,
    running: BTreeMap<usize, Running>,
    begun: u64,
    /// Paused processes go on at these times.
    resumes: BTreeMap<usize, Instant>,
    /// Processes are cut off until these times.
    cuts: BTreeMap<usize, Instant>,
    /// Troubles end at these times.
    troubles: Vec<(Instant, Trouble)>,
    /// No process is begun before.
    not_before: Instant,
    /// A process did not start: its supervisor begins another one, whoever else lives.
    again: bool,
}

/// A trouble that ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trouble {
    Down(Place),
    Storm(Place),
    Bad(Place),
}

impl Nature {
    pub(crate) fn new(site: &Site, weather: &Arc<Weather>, memory: &Arc<MemoryStore>) -> Nature {
        Nature {
            site: site.clone(),
            weather: Arc::clone(weather),
            memory: Arc::clone(memory),
            running: BTreeMap::new(),
            begun: 0,
            resumes: BTreeMap::new(),
            cuts: BTreeMap::new(),
            troubles: Vec::new(),
            not_before: site.service.now(),
            again: false,
        }
    }

    /// Rages for `duration`.
    pub(crate) async fn rage(&mut self, duration: Duration) {
        let end = self.site.service.now() + duration;
        let mut next_blow =
            self.site.service.now() + self.site.dice.between(Duration::ZERO, self.site.plan.blows);
        while self.site.service.now() < end {
            self.look_after();
            if self.site.dice.one_in(20)
                && let Some(serving) = self.site.pick()
            {
                drop(self.site.service.spawn("levels", levels::check(self.site.clone(), serving)));
            }
            if self.site.service.now() >= next_blow {
                self.blow();
                next_blow = self.site.service.now() + self.site.dice.between(TICK, self.site.plan.blows);
            }
            self.site.service.sleep(TICK).await;
        }
    }

    /// Keeps a process going for `duration`, without a blow.
    pub(crate) async fn rest(&mut self, duration: Duration) {
        let end = self.site.service.now() + duration;
        while self.site.service.now() < end {
            self.look_after();
            self.site.service.sleep(TICK.max(duration / 1_000)).await;
        }
    }

    /// All troubles end, and all that was paused goes on.
    pub(crate) fn calm(&mut self) {
        self.troubles.clear();
        self.weather.clear_up();
        for machine in std::mem::take(&mut self.resumes).into_keys() {
            self.resume(machine);
        }
        for machine in std::mem::take(&mut self.cuts).into_keys() {
            self.join(machine);
        }
    }

    /// Ends every process: in order, or by crashes.
    pub(crate) async fn end_all(&mut self, in_order: bool) {
        if in_order {
            for running in self.running.values_mut() {
                running.drain(DRAIN);
            }
            let end = self.site.service.now() + DRAIN * 2;
            while !self.running.is_empty() && self.site.service.now() < end {
                self.bury();
                self.site.service.sleep(TICK).await;
            }
        }
        for machine in self.running.keys().copied().collect::<Vec<_>>() {
            self.kill(machine);
        }
        self.not_before = self.site.service.now();
        self.again = false;
    }

    /// Takes note of what has ended, and sees to it that somebody serves.
    fn look_after(&mut self) {
        let now = self.site.service.now();
        self.bury();
        let due: Vec<usize> = self.resumes.iter().filter(|(_, at)| **at <= now).map(|(m, _)| *m).collect();
        for machine in due {
            self.resumes.remove(&machine);
            self.resume(machine);
        }
        let due: Vec<usize> = self.cuts.iter().filter(|(_, at)| **at <= now).map(|(m, _)| *m).collect();
        for machine in due {
            self.cuts.remove(&machine);
            self.join(machine);
        }
        let (over, go_on): (Vec<_>, Vec<_>) = self.troubles.drain(..).partition(|(at, _)| *at <= now);
        self.troubles = go_on;
        for (_, trouble) in over {
            self.set(trouble, false);
        }
        let nobody = self.running.values().all(|running| running.paused);
        if (nobody || self.again) && now >= self.not_before {
            self.again = false;
            self.begin();
        }
    }

    fn bury(&mut self) {
        let mut gone = Vec::new();
        for (machine, running) in &mut self.running {
            let Some(ended) = running.ended() else { continue };
            tracing::info!(number = running.number, ?ended, "process ended");
            match &ended {
                Ended::Node(NodeEnd::Failed { what }) => {
                    self.site.history.violated(format!("process {} failed: {what}", running.number));
                }
                Ended::Node(_) => {}
                Ended::NotStarted { why, again } => {
                    tracing::info!(number = running.number, why, "not started");
                    self.again |= again;
                }
            }
            gone.push(*machine);
        }
        for machine in gone {
            self.kill(machine);
            self.not_before =
                self.site.service.now() + self.site.dice.between(Duration::ZERO, Duration::from_secs(2));
        }
    }

    fn begin(&mut self) {
        let free: Vec<usize> = (0..MACHINES).filter(|machine| !self.running.contains_key(machine)).collect();
        if let Some(machine) = self.site.dice.pick(&free) {
            self.begin_on(machine);
        }
    }

    fn begin_on(&mut self, machine: usize) {
        self.begun += 1;
        let running = self.site.begin(machine, self.begun);
        self.running.insert(machine, running);
    }

    fn kill(&mut self, machine: usize) {
        self.resumes.remove(&machine);
        self.cuts.remove(&machine);
        if let Some(running) = self.running.remove(&machine) {
            self.site.kill(&running);
        }
    }

    fn resume(&mut self, machine: usize) {
        if let Some(running) = self.running.get_mut(&machine) {
            tracing::info!(number = running.number, "process goes on");
            running.paused = false;
            running.process.resume();
        }
    }

    /// A machine whose process runs.
    fn active(&self) -> Option<usize> {
        let active: Vec<usize> =
            self.running.iter().filter(|(_, running)| !running.paused).map(|(machine, _)| *machine).collect();
        self.site.dice.pick(&active)
    }

    fn set(&self, trouble: Trouble, on: bool) {
        tracing::info!(?trouble, on, "weather");
        let faults = if on { self.site.plan.faults } else { 0 };
        match trouble {
            Trouble::Down(place) => self.weather.change(place, |climate| climate.down = on),
            Trouble::Storm(place) => self.weather.change(place, |climate| climate.storm = on),
            Trouble::Bad(place) => {
                let (slow, dice) = (on && self.site.dice.one_in(2), &self.site.dice);
                let most = if slow {
                    Duration::from_millis(20 + dice.below(1_500))
                } else {
                    Duration::from_millis(10)
                };
                self.weather.change(place, |climate| {
                    climate.most = most;
                    climate.refused = faults;
                    climate.unreported = faults;
                    climate.late_permille = faults * 3;
                });
            }
        }
    }

    fn blow(&mut self) {
        let (dice, now) = (self.site.dice.clone(), self.site.service.now());
        let seconds =
            |least: u64, most: u64| dice.between(Duration::from_secs(least), Duration::from_secs(most));
        let place = if dice.one_in(3) { Place::Database } else { Place::Store };
        let kinds = if self.site.plan.damage { 18 } else { 14 };
        let trouble = match dice.below(kinds) {
            0 | 1 => return self.crash(),
            2 => {
                // Another process is begun while one runs: the younger one takes over.
                if self.running.len() < MACHINES {
                    self.begin();
                }
                return;
            }
            3 | 4 => return self.stall(),
            5 => {
                let Some(running) = self.active().and_then(|machine| self.running.get_mut(&machine)) else {
                    return;
                };
                tracing::info!(number = running.number, "process is told to leave");
                return running.drain(DRAIN);
            }
            6 => return self.jump(),
            12 | 13 => return self.cut_off(),
            14.. => {
                let strike = damage::strike(self.site.clone(), Arc::clone(&self.memory));
                drop(self.site.service.spawn("damage", strike));
                // Else all may be flushed before anybody misses it.
                if dice.one_in(2) {
                    self.crash();
                }
                return;
            }
            7 => (now + seconds(1, 12), Trouble::Down(place)),
            8 => (now + seconds(1, 8), Trouble::Storm(place)),
            _ => (now + seconds(2, 20), Trouble::Bad(place)),
        };
        self.set(trouble.1, true);
        self.troubles.push(trouble);
    }

    /// A process crashes; it, or another one elsewhere, comes up soon.
    fn crash(&mut self) {
        let Some(machine) = self.active() else { return };
        self.kill(machine);
        let pause = self.site.dice.between(Duration::ZERO, Duration::from_secs(3));
        self.not_before = self.site.service.now() + pause;
        // As a rule it is the same machine.
        if self.site.dice.one_in(2) {
            self.begin_on(machine);
        }
    }

    /// A process stands still for a while; perhaps another one takes over meanwhile.
    fn stall(&mut self) {
        let Some(machine) = self.active() else { return };
        let Some(running) = self.running.get_mut(&machine) else { return };
        let pause = self.site.dice.between(Duration::from_millis(300), Duration::from_secs(15));
        tracing::info!(number = running.number, ?pause, "process stands still");
        running.paused = true;
        running.process.pause();
        let now = self.site.service.now();
        self.resumes.insert(machine, now + pause);
        let replaced = if self.site.dice.one_in(3) { pause } else { Duration::from_secs(1) };
        self.not_before = now + replaced;
    }

    /// A process is cut off from the database, or the store, or both; clients still reach it. As a rule another one takes over.
    fn cut_off(&mut self) {
        let dice = self.site.dice.clone();
        let Some(machine) = self.active() else { return };
        let now = self.site.service.now();
        let Some(running) = self.running.get_mut(&machine) else { return };
        let (database, store) =
            dice.pick(&[(true, false), (true, false), (false, true), (true, true)]).unwrap_or((true, false));
        tracing::info!(number = running.number, database, store, "process is cut off");
        running.from_database.set(database);
        running.from_store.set(store);
        self.cuts.insert(machine, now + dice.between(Duration::from_secs(1), Duration::from_secs(20)));
        if self.running.len() < MACHINES && !dice.one_in(4) {
            self.begin();
        }
    }

    fn join(&self, machine: usize) {
        if let Some(running) = self.running.get(&machine) {
            tracing::info!(number = running.number, "process is cut off no more");
            running.from_database.set(false);
            running.from_store.set(false);
        }
    }

    fn jump(&self) {
        let Some(running) = self.active().and_then(|machine| self.running.get(&machine)) else { return };
        let hour = 3_600_000;
        let mut aheads = vec![-48 * hour, -60_000, 500];
        // A leap of less than an hour is believed, and a process that begins believes its clock: it cannot tell a wrong one from a long
        // pause. Where ages are seconds that is too much; elsewhere it must not be longer than producers are remembered.
        match (self.site.plan.ttl.is_some(), self.site.serves(running.number)) {
            (true, false) => return,
            (true, true) => aheads.push(400 * hour),
            (false, false) => aheads.push(30 * 60_000),
            (false, true) => aheads.extend([30 * 60_000, 400 * hour]),
        }
        let ahead = self.site.dice.pick(&aheads).unwrap_or(0);
        tracing::info!(number = running.number, ahead, "wall clock jumps");
        running.process.set_wall_ahead(ahead);
    }
}
