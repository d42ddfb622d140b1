//! Which objects to rewrite next: few objects in all, and each bucket's data in long runs.
//!
//! Lives on: anywhere (pure).
//! Invariants: T-18 (a job names exact runs of ranges that its view shows, so the log accepts it or shows that the view was
//! old); only buckets that `me` owns live are moved; lost ranges are neither moved nor bridged. Every job either makes the
//! objects it reads half as many or its ranges half as many, or frees a dead chain, so planning comes to an end and each byte
//! is rewritten about once per step of its object's class.
//!
//! Size-tiered: what flushes made is small, and as soon as eight objects of one class have collected, the oldest of them
//! become one. Classes are powers of eight of an object's live bytes, up to 16 MiB; a bucket with 8 MiB or more in a job
//! gets objects of its own. Shared objects above 16 MiB are cut by buckets, and classed by how long their buckets' runs are.
//! Adopted WAL objects are rewritten at once: a dead chain can be cleaned up when nothing refers to it.
use std::collections::{BTreeMap, BTreeSet};

use mink_metadata::{Bucket, FEATURE_LEVEL_REWRITE, ObjectRange, State};
use mink_types::{BucketEpoch, BucketId, CommitTime, Incarnation, ObjectId, Offset, OffsetRange};

/// Classes are this many bits of the byte count apart.
const CLASS_BITS: u32 = 3;
/// Below 64 bytes all is one class: no batch is shorter.
const CLASS_FIRST_BITS: u32 = 6;
/// Candidates that are looked at in full per class before planning goes on to the next.
const SEEDS_MAX: usize = 4;
/// A merged object spans at most this part of the longest retention time in it, so that retention lags by no more.
const RETENTION_PARTS: i64 = 4;
/// The retention time of a table that keeps all, in milliseconds.
const FOR_EVER: i64 = i64::MAX;
/// Most buckets that share an object.
const BUCKETS_PER_OBJECT: usize = 4_096;

/// Sizes by which compaction goes, in bytes and objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompactionPolicy {
    /// So many objects of a class must have collected.
    pub fan_in: usize,
    /// Most objects that one job reads.
    pub objects_max: usize,
    /// Most bytes that one job moves, but for a single object's.
    pub job_bytes_max: u64,
    /// Most bytes of footers of the objects that one job reads.
    pub footer_bytes_max: u64,
    /// A bucket with so many bytes in a job gets objects of its own.
    pub own_bytes: u64,
    /// A bucket's own object of so many bytes is never rewritten.
    pub settled_bytes: u64,
    /// Most bytes of one new range, but for a single old one.
    pub range_bytes_max: u64,
}

impl Default for CompactionPolicy {
    fn default() -> CompactionPolicy {
        CompactionPolicy {
            fan_in: 8,
            objects_max: 64,
            job_bytes_max: 1 << 30,
            footer_bytes_max: 24 << 20,
            own_bytes: 8 << 20,
            settled_bytes: 32 << 20,
            range_bytes_max: 56 << 20,
        }
    }
}

impl CompactionPolicy {
    /// A shared object of so many bytes is cut by buckets, not merged by size; a run of so many is long enough.
    fn full_bytes(&self) -> u64 {
        self.own_bytes.saturating_mul(2)
    }
}

/// Why a job is worth its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CompactionCause {
    /// WAL objects of dead chains, taken by reference.
    Adopted,
    /// Small objects become one.
    Small,
    /// Runs of buckets that share large objects become longer.
    Shared,
    /// A bucket's own objects become fewer.
    Own,
}

/// Objects to rewrite.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompactionJob {
    pub cause: CompactionCause,
    /// What is read. All that `me` has in them moves.
    pub replaced: BTreeSet<ObjectId>,
    /// In the order of (bucket, offset).
    pub moves: Vec<Move>,
}

/// Neighbouring ranges of a bucket that become one range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Move {
    pub bucket: BucketId,
    /// The epoch at which `me` owns the bucket.
    pub epoch: BucketEpoch,
    /// At least one, in offset order.
    pub ranges: Vec<(OffsetRange, ObjectRange)>,
}

impl Move {
    /// Stored bytes.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().fold(0, |sum, (_, range)| sum.saturating_add(range.bytes))
    }

    /// The new range.
    pub fn range(&self) -> OffsetRange {
        OffsetRange {
            start: self.ranges.first().map_or(Offset(0), |(range, _)| range.start),
            end: self.ranges.last().map_or(Offset(0), |(range, _)| range.end),
        }
    }
}

impl CompactionJob {
    /// Stored bytes that are moved.
    pub fn bytes(&self) -> u64 {
        self.moves.iter().fold(0, |sum, moved| sum.saturating_add(moved.bytes()))
    }
}

/// What `me` should rewrite next, if anything. Objects in `spared` cannot be read: they are taken for lost.
pub fn compaction(
    view: &State,
    me: Incarnation,
    policy: &CompactionPolicy,
    spared: &BTreeSet<ObjectId>,
) -> Option<CompactionJob> {
    let able = view.feature_level() >= FEATURE_LEVEL_REWRITE;
    if !able || view.incarnation(me).is_none_or(|own| own.fenced) {
        return None;
    }
    let planner = Planner { view, me, policy, spared };
    let classes = planner.classes();
    classes.into_iter().find_map(|(class, members)| match class {
        Class::Adopted => Some(planner.adopted(&members)),
        Class::Small(_) => planner.merged(CompactionCause::Small, &members),
        Class::Shared(_) => planner.merged(CompactionCause::Shared, &members),
        Class::Own => planner.own(&members),
    })
}

/// Which objects may be rewritten together, the most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Class {
    Adopted,
    Small(u32),
    Shared(u32),
    Own,
}

/// What `me` has in one object.
#[derive(Clone, Debug)]
struct Member {
    id: ObjectId,
    bytes: u64,
    ranges: u64,
    buckets: usize,
    first: BucketId,
    last: BucketId,
    newest: CommitTime,
    footer_bytes: u64,
    /// The longest retention time of its tables in milliseconds.
    keeps: i64,
}

impl Member {
    fn overlaps(&self, other: &Member) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    fn average(&self) -> u64 {
        self.bytes / self.ranges.max(1)
    }
}

struct Planner<'a> {
    view: &'a State,
    me: Incarnation,
    policy: &'a CompactionPolicy,
    spared: &'a BTreeSet<ObjectId>,
}

impl Planner<'_> {
    fn buckets(&self) -> impl Iterator<Item = (BucketId, &Bucket)> {
        self.view.hanging(self.me).filter_map(|id| Some((id, self.view.bucket(&id)?)))
    }

    /// All objects that may be worth it, by class, the oldest first.
    fn classes(&self) -> BTreeMap<Class, Vec<Member>> {
        let mut members: BTreeMap<ObjectId, Member> = BTreeMap::new();
        for (id, bucket) in self.buckets() {
            let table = self.view.table(id.table).filter(|table| table.options.cleanup.deletes());
            let ttl = table.and_then(|table| table.options.log_ttl_ms);
            let keeps = ttl.map_or(FOR_EVER, |ttl| i64::try_from(ttl).unwrap_or(FOR_EVER));
            for range in bucket.ranges.values() {
                self.count(&mut members, id, keeps, range);
            }
        }
        let mut classes: BTreeMap<Class, Vec<Member>> = BTreeMap::new();
        for member in members.into_values() {
            if let Some(class) = self.class(&member) {
                classes.entry(class).or_default().push(member);
            }
        }
        for members in classes.values_mut() {
            members.sort_by_key(|member| (member.newest, member.id));
        }
        classes
    }

    fn count(
        &self,
        members: &mut BTreeMap<ObjectId, Member>,
        bucket: BucketId,
        keeps: i64,
        range: &ObjectRange,
    ) {
        let id = range.object;
        let Some(object) = self.view.object(&id).filter(|object| object.length > 0) else {
            return;
        };
        if self.spared.contains(&id) {
            return;
        }
        let member = members.entry(id).or_insert(Member {
            id,
            bytes: 0,
            ranges: 0,
            buckets: 0,
            first: bucket,
            last: bucket,
            newest: range.last_commit_time,
            footer_bytes: object.footer_length.into(),
            keeps,
        });
        member.buckets += usize::from(member.ranges == 0 || member.last != bucket);
        member.bytes = member.bytes.saturating_add(range.bytes);
        member.ranges += 1;
        member.last = bucket;
        member.newest = member.newest.max(range.last_commit_time);
        member.keeps = member.keeps.max(keeps);
    }

    /// None for what is settled.
    fn class(&self, member: &Member) -> Option<Class> {
        let policy = self.policy;
        if matches!(member.id, ObjectId::Wal { .. }) {
            Some(Class::Adopted)
        } else if member.buckets == 1 && member.bytes >= policy.own_bytes {
            (member.bytes < policy.settled_bytes && member.ranges == 1).then_some(Class::Own)
        } else if member.bytes < policy.full_bytes() {
            Some(Class::Small(power(member.bytes)))
        } else {
            Some(Class::Shared(power(member.average())))
        }
    }

    fn adopted(&self, members: &[Member]) -> CompactionJob {
        let mut group = Group::default();
        for member in members {
            if !group.has_room(self.policy, member) {
                break;
            }
            group.add(member);
        }
        self.job(CompactionCause::Adopted, &group)
    }

    /// The oldest objects of a class that are worth merging.
    fn merged(&self, cause: CompactionCause, members: &[Member]) -> Option<CompactionJob> {
        let mut looked_at = 0;
        for (at, seed) in members.iter().enumerate() {
            if members.len() - at < 2 || looked_at >= SEEDS_MAX {
                return None;
            }
            let Some(group) = self.group(cause, seed, members.get(at..).unwrap_or_default()) else {
                continue;
            };
            looked_at += 1;
            let job = self.job(cause, &group);
            if self.pays(&group, &job) {
                return Some(job);
            }
        }
        None
    }

    /// The seed and what may go with it, if that is enough.
    fn group(&self, cause: CompactionCause, seed: &Member, members: &[Member]) -> Option<Group> {
        let mut group = Group::default();
        let mut full = false;
        for member in members {
            if cause == CompactionCause::Shared && !member.overlaps(seed) {
                continue;
            }
            if !group.in_time(seed, member) {
                break;
            }
            full = !group.has_room(self.policy, member);
            if full {
                break;
            }
            group.add(member);
        }
        let enough = group.objects.len() >= self.enough(cause, seed) || (full && group.objects.len() > 1);
        enough.then_some(group)
    }

    /// How many objects a merge waits for: the usual number, or as many as make the runs long enough for good.
    fn enough(&self, cause: CompactionCause, seed: &Member) -> usize {
        let fan_in = self.policy.fan_in.max(2);
        if cause != CompactionCause::Shared {
            return fan_in;
        }
        let long = (self.policy.full_bytes() / 4 * 3).div_ceil(seed.average().max(1));
        let long = usize::try_from(long).unwrap_or(usize::MAX).max(2);
        if long <= 2 * fan_in { long } else { fan_in }
    }

    /// Whether a merge makes objects or ranges half as many.
    fn pays(&self, group: &Group, job: &CompactionJob) -> bool {
        let (mut own, mut shared, mut bytes) = (0, 0usize, 0u64);
        for moved in &job.moves {
            if moved.bytes() >= self.policy.own_bytes {
                own += 1;
            } else {
                shared += 1;
                bytes = bytes.saturating_add(moved.bytes());
            }
        }
        let by_bytes = usize::try_from(bytes.div_ceil(self.policy.range_bytes_max.max(1)));
        let objects = own + shared.div_ceil(BUCKETS_PER_OBJECT).max(by_bytes.unwrap_or(usize::MAX));
        objects.saturating_mul(2) <= group.objects.len() || job.moves.len() as u64 * 2 <= group.ranges
    }

    /// Runs of a bucket's own objects that together make a settled one, of all buckets that a job has room for.
    fn own(&self, members: &[Member]) -> Option<CompactionJob> {
        let mut by_bucket: BTreeMap<BucketId, BTreeMap<ObjectId, &Member>> = BTreeMap::new();
        for member in members {
            by_bucket.entry(member.first).or_default().insert(member.id, member);
        }
        let mut group = Group::default();
        for (id, members) in by_bucket {
            let Some(bucket) = self.view.bucket(&id).filter(|_| members.len() > 1) else {
                continue;
            };
            let Some(run) = self.own_run(bucket, &members) else {
                continue;
            };
            // A run goes as a whole or waits for the next job.
            let mut with = group.clone();
            let fits = run.into_iter().all(|member| {
                let room = with.has_room(self.policy, member);
                with.add(member);
                room
            });
            if fits {
                group = with;
            }
        }
        (!group.objects.is_empty()).then(|| self.job(CompactionCause::Own, &group))
    }

    /// The oldest neighbouring objects of a bucket that make one of settled size.
    fn own_run<'m>(
        &self,
        bucket: &Bucket,
        members: &BTreeMap<ObjectId, &'m Member>,
    ) -> Option<Vec<&'m Member>> {
        let (mut run, mut bytes): (Vec<&Member>, u64) = (Vec::new(), 0);
        for range in bucket.ranges.values() {
            let Some(member) = members.get(&range.object) else {
                (run, bytes) = (Vec::new(), 0);
                continue;
            };
            let early = run.first().is_some_and(|first| !Group::default().in_time(first, member));
            if early || bytes.saturating_add(member.bytes) > self.policy.range_bytes_max {
                (run, bytes) = (Vec::new(), 0);
            }
            run.push(member);
            bytes = bytes.saturating_add(member.bytes);
            if bytes >= self.policy.settled_bytes && run.len() > 1 {
                return Some(run);
            }
        }
        None
    }

    /// Everything that `me` has in the group's objects, as runs.
    fn job(&self, cause: CompactionCause, group: &Group) -> CompactionJob {
        let mut moves: Vec<Move> = Vec::new();
        for (id, bucket) in self.buckets().filter(|(id, _)| group.touches(id)) {
            let (mut joins, mut bytes) = (false, 0u64);
            for (start, range) in &bucket.ranges {
                if !group.objects.contains(&range.object) {
                    joins = false;
                    continue;
                }
                let part = (OffsetRange { start: *start, end: range.end }, *range);
                bytes = bytes.saturating_add(range.bytes);
                let joined = moves.last_mut().filter(|_| joins && bytes <= self.policy.range_bytes_max);
                if let Some(last) = joined {
                    last.ranges.push(part);
                } else {
                    bytes = range.bytes;
                    moves.push(Move { bucket: id, epoch: bucket.epoch, ranges: vec![part] });
                }
                joins = true;
            }
        }
        CompactionJob { cause, replaced: group.objects.clone(), moves }
    }
}

/// Objects that are rewritten together.
#[derive(Clone, Debug, Default)]
struct Group {
    objects: BTreeSet<ObjectId>,
    bytes: u64,
    footer_bytes: u64,
    ranges: u64,
    keeps: i64,
    span: Option<(BucketId, BucketId)>,
}

impl Group {
    fn has_room(&self, policy: &CompactionPolicy, member: &Member) -> bool {
        self.objects.is_empty()
            || (self.objects.len() < policy.objects_max
                && self.bytes.saturating_add(member.bytes) <= policy.job_bytes_max
                && self.footer_bytes.saturating_add(member.footer_bytes) <= policy.footer_bytes_max)
    }

    /// Whether retention would still let go of the merged object soon enough.
    fn in_time(&self, seed: &Member, member: &Member) -> bool {
        let longest = self.keeps.max(seed.keeps).max(member.keeps);
        let span = member.newest.0.saturating_sub(seed.newest.0);
        longest == FOR_EVER || span <= longest / RETENTION_PARTS
    }

    fn add(&mut self, member: &Member) {
        if !self.objects.insert(member.id) {
            return;
        }
        self.bytes = self.bytes.saturating_add(member.bytes);
        self.footer_bytes = self.footer_bytes.saturating_add(member.footer_bytes);
        self.ranges += member.ranges;
        self.keeps = self.keeps.max(member.keeps);
        let (first, last) = self.span.unwrap_or((member.first, member.last));
        self.span = Some((first.min(member.first), last.max(member.last)));
    }

    fn touches(&self, bucket: &BucketId) -> bool {
        self.span.is_some_and(|(first, last)| (first..=last).contains(bucket))
    }
}

/// The power of eight that the bytes have reached, from 64 on.
fn power(bytes: u64) -> u32 {
    bytes.max(1).ilog2().saturating_sub(CLASS_FIRST_BITS) / CLASS_BITS
}

#[cfg(test)]
mod tests;
