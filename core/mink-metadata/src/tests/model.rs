//! Random commands against a naive model, with the invariants checked after each row (I2, I11 to I14, T-18, K-26).
mod drawn;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::columns::{add_column, orders, with_columns};
use super::*;
use crate::{FEATURE_LEVEL_MAX, NewPartition, TableChange};
use drawn::{Drawn, DrawnObject, drawn, owned};
use mink_types::PartitionId;
use mink_types::schema::{Literal, Schema, SchemaId};
use std::sync::Arc;

#[derive(Clone, Default)]
struct Life {
    node: u32,
    fenced: bool,
    trim: u64,
}

#[derive(Clone, Default, Debug)]
struct Plain {
    epoch: u32,
    owner: Option<u64>,
    start: u64,
    end: u64,
    ranges: Vec<(u64, u64, ObjectId)>,
}

impl Plain {
    /// I6: of what lies before the start, what a recovery of the producers would look at stays.
    fn drop_unread(&mut self) {
        let mut needed = Vec::new();
        for range in self.ranges.iter().rev() {
            needed.push(*range);
            if matches!(range.2, ObjectId::Stream { .. }) {
                break;
            }
        }
        let start = self.start;
        self.ranges.retain(|range| range.1 > start || needed.contains(range));
    }
}

/// What a table is in the model.
#[derive(Clone, Default)]
struct PlainTable {
    options: TableOptions,
    /// All of them; none for a topic.
    schemas: Vec<Arc<Schema>>,
    partitioned: bool,
    /// Id by value.
    partitions: BTreeMap<Vec<Literal>, u64>,
}

impl PlainTable {
    fn new(new: &NewTable) -> PlainTable {
        let partitioned = new.schema.as_ref().is_some_and(|schema| !schema.partitioned_by().is_empty());
        let (options, schemas) = (new.options.clone(), new.schema.iter().cloned().collect());
        PlainTable { options, schemas, partitioned, partitions: BTreeMap::new() }
    }

    fn buckets(&self, table: TableId) -> Vec<BucketId> {
        let only = [0];
        let parts: Vec<u64> =
            if self.partitioned { self.partitions.values().copied().collect() } else { only.to_vec() };
        let of = |part| (0..self.options.buckets).map(move |index| (part, index));
        let id = |(part, index)| BucketId { table, partition: PartitionId(part), bucket: BucketIndex(index) };
        parts.into_iter().flat_map(of).map(id).collect()
    }
}

/// The whole of the rules once more, with plain maps and no index.
#[derive(Clone, Default)]
struct Model {
    lives: BTreeMap<u64, Life>,
    tables: BTreeMap<u64, PlainTable>,
    buckets: BTreeMap<BucketId, Plain>,
    doomed: BTreeSet<ObjectId>,
}

impl Model {
    fn live(&self, id: Incarnation) -> bool {
        self.lives.get(&id.0).is_some_and(|life| !life.fenced)
    }

    fn fenced(&self, id: Incarnation) -> bool {
        self.lives.get(&id.0).is_some_and(|life| life.fenced)
    }

    fn dead(&self, id: u64) -> bool {
        self.fenced(Incarnation(id)) && self.buckets.values().all(|bucket| bucket.owner != Some(id))
    }

    fn referenced(&self) -> BTreeSet<ObjectId> {
        self.buckets.values().flat_map(|bucket| bucket.ranges.iter().map(|range| range.2)).collect()
    }

    fn chain(&self, id: Incarnation) -> WalChain {
        let node = self.lives.get(&id.0).map_or(0, |life| life.node);
        WalChain { node: NodeId(node), incarnation: id, tag: registration(node).tag }
    }

    /// Applies a command; whether it is accepted, and which buckets an open opened.
    fn run(&mut self, row: u64, command: &Command) -> (bool, Vec<BucketId>) {
        let before = self.referenced();
        let mut opened = Vec::new();
        let mut next = self.clone();
        let accepted = next.step(row, command, &mut opened);
        if !accepted {
            return (false, opened);
        }
        next.buckets.values_mut().for_each(Plain::drop_unread);
        if let Command::Rewrite { objects, .. } = command {
            let used = next.referenced();
            next.doomed.extend(objects.iter().map(|object| object.id).filter(|id| !used.contains(id)));
        }
        *self = next;
        for lost in before.difference(&self.referenced()) {
            match lost {
                ObjectId::Wal { chain, .. } if !self.dead(chain.incarnation.0) => {}
                _ => assert!(self.doomed.insert(*lost), "doomed twice"),
            }
        }
        (true, opened)
    }

    fn step(&mut self, row: u64, command: &Command, opened: &mut Vec<BucketId>) -> bool {
        match command {
            Command::Register(registration) => {
                self.lives.insert(row, Life { node: registration.node.0, ..Life::default() });
            }
            Command::Fence { incarnation, by } => {
                if !self.live(*by) || !self.live(*incarnation) {
                    return false;
                }
                self.lives.get_mut(&incarnation.0).expect("live").fenced = true;
            }
            Command::Leave { incarnation, trim, seal } => {
                if !self.live(*incarnation) {
                    return false;
                }
                let life = self.lives.get_mut(&incarnation.0).expect("live");
                let trim = trim.0.max(life.trim);
                if seal.is_some_and(|seal| seal.0 < trim) {
                    return false;
                }
                (life.fenced, life.trim) = (true, trim);
                if seal.is_some_and(|seal| seal.0 == trim) {
                    for bucket in
                        self.buckets.values_mut().filter(|bucket| bucket.owner == Some(incarnation.0))
                    {
                        bucket.owner = None;
                    }
                }
            }
            Command::CreateTable(table) => {
                self.tables.insert(row << 16, PlainTable::new(table));
                self.add_buckets(TableId(row << 16));
            }
            Command::AlterTable(change) => return self.alter(change),
            Command::CreatePartition(new) => {
                let Some(table) = self.tables.get_mut(&new.table.0) else { return false };
                let is_value = matches!(new.values[..], [Literal::Integer(_)]);
                if !table.partitioned || !is_value || table.partitions.contains_key(&new.values) {
                    return false;
                }
                table.partitions.insert(new.values.clone(), row << 16);
                self.add_buckets(new.table);
            }
            Command::DropPartition { table: id, partition } => {
                let Some(table) = self.tables.get_mut(&id.0) else { return false };
                let count = table.partitions.len();
                table.partitions.retain(|_, id| *id != partition.0);
                self.buckets.retain(|bucket, _| bucket.table != *id || bucket.partition != *partition);
                return self.tables[&id.0].partitions.len() < count;
            }
            Command::DropTable { id } => {
                if self.tables.remove(&id.0).is_none() {
                    return false;
                }
                self.buckets.retain(|bucket, _| bucket.table != *id);
            }
            Command::Commit { by, source, objects, trim } => {
                return self.commit(*by, *source, objects, *trim);
            }
            Command::Rewrite { by, replaced, objects } => return self.rewrite(*by, replaced, objects),
            Command::Open { by, buckets, from } => {
                if !self.live(*by) || from.is_some_and(|from| !self.fenced(from.incarnation)) {
                    return false;
                }
                for opening in buckets {
                    let Some(state) = self.buckets.get_mut(&opening.bucket) else {
                        continue;
                    };
                    let free = state.owner.is_none() || state.owner == from.map(|from| from.incarnation.0);
                    if state.epoch == opening.epoch.0 && free {
                        (state.epoch, state.owner) = (state.epoch + 1, Some(by.0));
                        opened.push(opening.bucket);
                    }
                }
            }
            Command::Release { by, bucket, epoch, end } => {
                let live = self.live(*by);
                match self.buckets.get_mut(bucket) {
                    Some(b) if live && b.owner == Some(by.0) && b.epoch == epoch.0 && b.end == end.0 => {
                        b.owner = None;
                    }
                    _ => return false,
                }
            }
            Command::RaiseStart { by, bucket, epoch, start } => {
                let live = self.live(*by);
                match self.buckets.get_mut(bucket) {
                    Some(b) if live && b.owner == Some(by.0) && b.epoch == epoch.0 => {
                        if start.0 <= b.start || start.0 > b.end {
                            return false;
                        }
                        b.start = start.0;
                    }
                    _ => return false,
                }
            }
            Command::ForgetProducers { by, bucket, epoch, end } => {
                let live = self.live(*by);
                match self.buckets.get_mut(bucket) {
                    Some(b) if live && b.owner == Some(by.0) && b.epoch == epoch.0 => {
                        if b.end != end.0 || b.start != b.end {
                            return false;
                        }
                        b.ranges.clear();
                    }
                    _ => return false,
                }
            }
            Command::Deleted { objects } => objects.iter().for_each(|id| {
                self.doomed.remove(id);
            }),
            Command::Swept { incarnation } => return self.dead(incarnation.0),
            other => panic!("not drawn: {other:?}"),
        }
        true
    }

    /// Those that the table should have and has not.
    fn add_buckets(&mut self, table: TableId) {
        for id in self.tables[&table.0].buckets(table) {
            self.buckets.entry(id).or_default();
        }
    }

    fn alter(&mut self, change: &TableChange) -> bool {
        let Some(table) = self.tables.get_mut(&change.id.0) else { return false };
        if table.options != change.seen {
            return false;
        }
        if let Some((planned, schema)) = &change.schema {
            let is_newest = table.schemas.last().is_some_and(|newest| newest.id() == *planned);
            if !is_newest || schema.id().0 != planned.0 + 1 {
                return false;
            }
            table.schemas.push(Arc::clone(schema));
        }
        table.options = change.options.clone();
        self.add_buckets(change.id);
        true
    }

    fn commit(
        &mut self,
        by: Incarnation,
        source: Incarnation,
        objects: &[CommittedObject],
        trim: Option<WalNumber>,
    ) -> bool {
        let own = by == source;
        if !self.live(by) || (!own && (!self.fenced(source) || trim.is_some())) {
            return false;
        }
        let used = self.referenced();
        let mut seen = BTreeSet::new();
        for object in objects {
            let fits = match object.id {
                ObjectId::Stream { chain, .. } => chain == self.chain(by) && !used.contains(&object.id),
                ObjectId::Wal { chain, .. } => chain == self.chain(source) && !own,
            };
            if !fits || self.doomed.contains(&object.id) || !seen.insert(object.id) {
                return false;
            }
            let mut kept = false;
            for range in &object.ranges {
                if range.start >= range.end {
                    return false;
                }
                let Some(bucket) = self.buckets.get_mut(&range.bucket) else {
                    continue;
                };
                let live = bucket.epoch == range.epoch.0 && bucket.owner == Some(source.0);
                if !live || bucket.end != range.start.0 {
                    return false;
                }
                bucket.ranges.push((range.start.0, range.end.0, object.id));
                bucket.end = range.end.0;
                kept = true;
            }
            if !kept && matches!(object.id, ObjectId::Stream { .. }) {
                self.doomed.insert(object.id);
            }
        }
        if let Some(trim) = trim {
            let life = self.lives.get_mut(&by.0).expect("live");
            life.trim = life.trim.max(trim.0);
        }
        true
    }

    /// Offset by offset: each must lie in an object that was named, and no old range may be cut.
    fn rewrite(&mut self, by: Incarnation, replaced: &[ObjectId], objects: &[RewrittenObject]) -> bool {
        let used = self.referenced();
        let mut seen = BTreeSet::new();
        let mut moved: BTreeSet<(BucketId, u64)> = BTreeSet::new();
        for object in objects {
            let own = matches!(object.id, ObjectId::Stream { chain, .. } if chain == self.chain(by));
            if !self.live(by) || !own || self.doomed.contains(&object.id) || used.contains(&object.id) {
                return false;
            }
            if !seen.insert(object.id) {
                return false;
            }
            let mut kept = false;
            for range in &object.ranges {
                if range.start >= range.end {
                    return false;
                }
                let Some(bucket) = self.buckets.get_mut(&range.bucket) else {
                    continue;
                };
                if bucket.epoch != range.epoch.0 || bucket.owner != Some(by.0) {
                    return false;
                }
                if !(range.start.0..range.end.0).all(|offset| moved.insert((range.bucket, offset))) {
                    return false;
                }
                let first = bucket.ranges.first().map_or(bucket.end, |range| range.0);
                let (start, end) = (range.start.0.max(first), range.end.0);
                if start >= end {
                    continue;
                }
                let (old, rest): (Vec<_>, Vec<_>) =
                    bucket.ranges.iter().copied().partition(|range| range.0 < end && range.1 > start);
                let exact = old.first().is_some_and(|first| first.0 == start)
                    && old.last().is_some_and(|last| last.1 == end)
                    && old.iter().all(|range| replaced.contains(&range.2));
                if !exact {
                    return false;
                }
                bucket.ranges = rest;
                bucket.ranges.push((start, end, object.id));
                bucket.ranges.sort_unstable();
                kept = true;
            }
            if !kept {
                self.doomed.insert(object.id);
            }
        }
        self.live(by)
    }

    fn incarnation(&self, at: usize) -> Incarnation {
        let ids: Vec<u64> = self.lives.keys().copied().rev().collect();
        Incarnation(ids.get(at).copied().unwrap_or(1_000_000))
    }

    /// Mostly a bucket on this chain, so that commands fail for one reason at a time.
    fn bucket_on(&self, chain: Incarnation, at: usize) -> (BucketId, Plain) {
        let mut hanging: Vec<_> =
            self.buckets.iter().filter(|(_, plain)| plain.owner == Some(chain.0)).collect();
        if at == 5 || hanging.is_empty() {
            return self.bucket(at);
        }
        let (id, plain) = hanging.remove(at % hanging.len());
        (*id, plain.clone())
    }

    /// Mostly the bucket's owner.
    fn author(&self, plain: &Plain, at: usize) -> Incarnation {
        plain.owner.filter(|_| at < 3).map_or(self.incarnation(at), Incarnation)
    }

    /// The bucket drawn: one that exists, or one of a table that was dropped.
    fn bucket(&self, at: usize) -> (BucketId, Plain) {
        let found = self.buckets.iter().nth(at).map(|(id, plain)| (*id, plain.clone()));
        found.unwrap_or((bucket(TableId(1), 0), Plain::default()))
    }

    fn concrete(&self, drawn: Drawn, names: usize) -> Command {
        match drawn {
            Drawn::Register(node) => {
                Command::Register(Registration { feature_level_max: FEATURE_LEVEL_MAX, ..registration(node) })
            }
            Drawn::Fence { who, by } => {
                Command::Fence { incarnation: self.incarnation(who), by: self.incarnation(by) }
            }
            Drawn::Leave { who, trim, seal } => Command::Leave {
                incarnation: self.incarnation(who),
                trim: WalNumber(trim),
                seal: seal.map(WalNumber),
            },
            Drawn::Create(buckets) => {
                let mut table = new_table(&format!("kafka.t{names}"), buckets);
                table.uuid.0[..8].copy_from_slice(&(names as u64 + 1).to_le_bytes());
                Command::CreateTable(table)
            }
            Drawn::CreateWithColumns(buckets, partitioned) => {
                let draft = orders(if partitioned { &["day"] } else { &[] });
                let mut table = with_columns(&format!("kafka.t{names}"), draft, buckets);
                table.uuid.0[..8].copy_from_slice(&(names as u64 + 1).to_le_bytes());
                Command::CreateTable(table)
            }
            Drawn::Alter(at, back, more) => self.drawn_change(at, back, more, names),
            Drawn::CreatePartition(at, value) => {
                let values = vec![Literal::Integer(value)];
                let table = self.with_columns(at, true).0;
                Command::CreatePartition(NewPartition { table, values, buckets_max: 1_000 })
            }
            Drawn::DropPartition(at, partition) => {
                let (table, plain) = self.with_columns(at, true);
                let partition = plain.partitions.values().nth(partition).copied().unwrap_or(1);
                Command::DropPartition { table, partition: PartitionId(partition) }
            }
            Drawn::Drop(at) => {
                Command::DropTable { id: TableId(self.tables.keys().nth(at).copied().unwrap_or(1)) }
            }
            Drawn::Commit { by, source, objects, trim } => {
                let by = self.incarnation(by);
                // Half of the time the chain is the author's own.
                let source = if objects.len() % 2 == 1 { by } else { self.incarnation(source) };
                let mut ends = BTreeMap::new();
                let objects: Vec<_> =
                    objects.iter().map(|drawn| self.object(by, source, drawn, &mut ends)).collect();
                Command::Commit { by, source, objects, trim: trim.filter(|_| by == source).map(WalNumber) }
            }
            Drawn::Rewrite { by, unnamed, pieces } => self.drawn_rewrite(by, unnamed, pieces),
            Drawn::Open { by, buckets, from } => {
                let buckets: Vec<_> = buckets
                    .into_iter()
                    .map(|(at, off)| {
                        let (id, plain) = self.bucket(at);
                        (id, plain.epoch + off)
                    })
                    .collect();
                // Mostly the chain that the first bucket hangs on.
                let chain = buckets.first().and_then(|(id, _)| self.buckets.get(id)?.owner).map(Incarnation);
                let from = from.map(|(at, seal)| TakenOver {
                    incarnation: chain.filter(|_| at < 3).unwrap_or_else(|| self.incarnation(at)),
                    seal: WalNumber(seal),
                });
                open(self.incarnation(by), &buckets, from)
            }
            Drawn::Release { by, bucket, epoch, end } => {
                let (id, plain) = self.bucket(bucket);
                let epoch = BucketEpoch(plain.epoch + epoch);
                Command::Release {
                    by: self.author(&plain, by),
                    bucket: id,
                    epoch,
                    end: Offset(plain.end + end),
                }
            }
            Drawn::RaiseStart { by, bucket, epoch, start } => {
                let (id, plain) = self.bucket(bucket);
                let epoch = BucketEpoch(plain.epoch + epoch);
                let start = Offset(plain.start + start);
                Command::RaiseStart { by: self.author(&plain, by), bucket: id, epoch, start }
            }
            Drawn::Forget(by, bucket, epoch, end) => {
                let (id, plain) = self.bucket(bucket);
                let (epoch, end) = (BucketEpoch(plain.epoch + epoch), Offset(plain.end + end));
                Command::ForgetProducers { by: self.author(&plain, by), bucket: id, epoch, end }
            }
            Drawn::Delete(most) => {
                Command::Deleted { objects: self.doomed.iter().take(most).copied().collect() }
            }
            Drawn::Sweep(at) => Command::Swept { incarnation: self.incarnation(at) },
            Drawn::Repeat(_) | Drawn::Restore => unreachable!("no command"),
        }
    }

    /// Mostly a table with columns, or with partitions, else any, or one that is not there.
    fn with_columns(&self, at: usize, partitioned: bool) -> (TableId, PlainTable) {
        let fits = |table: &&(&u64, &PlainTable)| {
            if partitioned { table.1.partitioned } else { !table.1.schemas.is_empty() }
        };
        let found = match at {
            0..=2 => self.tables.iter().collect::<Vec<_>>().iter().filter(fits).nth(at).copied(),
            _ => self.tables.iter().next(),
        };
        found.map_or((TableId(1), PlainTable::default()), |(id, table)| (TableId(*id), table.clone()))
    }

    fn drawn_change(&self, at: usize, back: usize, more: u32, names: usize) -> Command {
        let (id, table) = self.with_columns(at, false);
        let from = table.schemas.iter().rev().nth(back);
        let change = |from: &Arc<Schema>| {
            let next = from.alter(&[add_column(&format!("x{names}"))]).expect("may");
            (from.id(), Arc::new(next))
        };
        // Of a topic, a schema that comes from nowhere.
        let made = || Arc::new(Schema::create(orders(&[])).expect("a schema"));
        let schema = from.map(change).or_else(|| (back > 0).then(|| (SchemaId(1), made())));
        let options = TableOptions { buckets: table.options.buckets + more, ..table.options.clone() };
        Command::AlterTable(TableChange { id, seen: table.options, options, schema, buckets_max: 1_000 })
    }

    fn drawn_rewrite(
        &self,
        by: usize,
        unnamed: usize,
        pieces: Vec<(u64, usize, u32, usize, usize, u64)>,
    ) -> Command {
        let first = pieces.first().map(|piece| self.bucket(piece.1).1);
        let by = first.map_or(self.incarnation(by), |plain| self.author(&plain, by));
        let mut replaced = Vec::new();
        let mut objects: BTreeMap<u64, Vec<Moved>> = BTreeMap::new();
        for (counter, at, epoch, first, count, off) in pieces {
            let (id, plain) = self.bucket_on(by, at);
            let run: Vec<_> = plain.ranges.iter().skip(first).take(count).collect();
            let (start, end) = match (run.first(), run.last()) {
                (Some(first), Some(last)) => (first.0, last.1 + off),
                // What retention has dropped, or nothing.
                _ => (0, plain.ranges.first().map_or(off, |range| range.0)),
            };
            replaced.extend(run.iter().map(|range| range.2));
            objects.entry(counter).or_default().push((id, plain.epoch + epoch, start, end));
        }
        if unnamed < replaced.len() {
            let spared = replaced[unnamed];
            replaced.retain(|id| *id != spared);
        }
        let objects: Vec<(u64, &[Moved])> =
            objects.iter().map(|(counter, moved)| (*counter, moved.as_slice())).collect();
        rewrite(by, &replaced, self.chain(by), &objects)
    }

    fn object(
        &self,
        by: Incarnation,
        source: Incarnation,
        (wal, number, ranges): &DrawnObject,
        ends: &mut BTreeMap<BucketId, u64>,
    ) -> CommittedObject {
        let ranges: Vec<_> = ranges
            .iter()
            .map(|&(at, epoch, off, length)| {
                let (id, plain) = self.bucket_on(source, at);
                let end = ends.entry(id).or_insert(plain.end);
                let start = *end + off;
                *end = start + length;
                range(id, plain.epoch + epoch, start, *end)
            })
            .collect();
        let id = if *wal && by != source {
            ObjectId::Wal { chain: self.chain(source), number: WalNumber(*number) }
        } else {
            ObjectId::Stream { chain: self.chain(by), counter: *number }
        };
        object(id, &ranges)
    }

    fn agrees(&self, state: &State) {
        assert_eq!(
            state.tables().map(|table| table.id.0).collect::<Vec<_>>(),
            self.tables.keys().copied().collect::<Vec<_>>()
        );
        for (id, plain) in &self.tables {
            let table = state.table(TableId(*id)).expect("there");
            assert_eq!((&table.options, table.buckets), (&plain.options, plain.options.buckets));
            assert!(table.schemas().eq(plain.schemas.iter()));
            assert!(table.schema().is_none_or(|newest| table.schema_by_id(newest.id()) == Some(newest)));
            let partitions = table.partitions().map(|(id, values)| (values.to_vec(), id.0));
            assert_eq!(partitions.collect::<BTreeMap<_, _>>(), plain.partitions);
            let found = |values: &Vec<Literal>| table.partition_of(values).map(|id| id.0);
            assert!(plain.partitions.iter().all(|(values, id)| found(values) == Some(*id)));
            let mut buckets = plain.buckets(TableId(*id));
            buckets.sort_unstable();
            assert_eq!(table.bucket_ids().collect::<Vec<_>>(), buckets);
        }
        assert_eq!(state.bucket_count(), self.buckets.len());
        for (id, plain) in &self.buckets {
            let bucket = state.bucket(id).expect("there");
            let ranges: Vec<_> =
                bucket.ranges.iter().map(|(start, range)| (start.0, range.end.0, range.object)).collect();
            assert_eq!(ranges, plain.ranges, "{id}");
            let found = (bucket.epoch.0, bucket.owner.map(|owner| owner.0), bucket.start.0, bucket.end.0);
            assert_eq!(found, (plain.epoch, plain.owner, plain.start, plain.end), "{id}");
        }
        for (id, life) in &self.lives {
            let incarnation = state.incarnation(Incarnation(*id)).expect("there");
            assert_eq!((incarnation.fenced, incarnation.trim.0), (life.fenced, life.trim));
            assert_eq!(state.dead(Incarnation(*id)), self.dead(*id));
        }
        assert_eq!(state.doomed().map(|(id, _)| *id).collect::<BTreeSet<_>>(), self.doomed);
        assert_eq!(state.objects().map(|(id, _)| *id).collect::<BTreeSet<_>>(), self.referenced());
    }
}

/// I2, I13 and I14, from one state to the next.
fn invariants(before: &State, after: &State) {
    for (id, bucket) in after.buckets() {
        let mut next = None;
        for (start, range) in &bucket.ranges {
            assert!(next.is_none_or(|next| next == *start), "I2: {id} has a gap or an overlap at {start}");
            assert!(after.object(&range.object).is_some(), "I14: {} is referenced", range.object);
            next = Some(range.end);
        }
        assert!(bucket.start <= bucket.end && next.is_none_or(|next| next == bucket.end));
        if let Some(old) = before.bucket(id) {
            assert!(
                old.epoch <= bucket.epoch && old.end <= bucket.end && old.start <= bucket.start,
                "I13, I2: {id}"
            );
            assert!(
                old.owner == bucket.owner || bucket.owner.is_none() || old.epoch < bucket.epoch,
                "I13: {id}"
            );
        }
    }
    for (id, old) in before.incarnations() {
        let new = after.incarnation(id).expect("incarnations stay");
        assert!(old.trim <= new.trim && old.fenced <= new.fenced && (!before.dead(id) || after.dead(id)));
        assert!(old.seal.is_none() || old.seal == new.seal, "the seal outlives everything");
        assert!(!old.fenced || old.trim == new.trim, "the trim of a fenced chain is frozen");
    }
    for (id, _) in before.doomed() {
        assert!(after.object(id).is_none(), "I14: {id} came back");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn i11_to_i14_random_commands_agree_with_a_naive_model(
        steps in prop::collection::vec((drawn(), 1..4usize), 1..80),
    ) {
        let mut log = Log::new();
        log.done(Command::CreateDatabase { name: database("kafka") });
        for level in 2..=FEATURE_LEVEL_MAX {
            log.done(Command::RaiseFeatureLevel { level });
        }
        let mut model = Model::default();
        let mut sent: Vec<(RequestId, Command)> = Vec::new();
        let mut open_row: Vec<(RequestId, Command)> = Vec::new();
        let steps = owned().into_iter().map(|drawn| (drawn, 1)).chain(steps);
        for (step, (drawn, per_row)) in steps.enumerate() {
            if matches!(drawn, Drawn::Restore) {
                log.state = State::restore(&log.state.snapshot()).expect("restores");
                continue;
            }
            let entry = match &drawn {
                Drawn::Repeat(back) => match sent.len().checked_sub(1 + back) {
                    Some(at) => sent[at].clone(),
                    None => continue,
                },
                _ => (log.next_request(), model.concrete(drawn, step)),
            };
            sent.push(entry.clone());
            open_row.push(entry);
            // Ids come from the row and the place, so rows with several commands carry none that make ids but the first.
            let makes = |c: &Command| {
                matches!(c, Command::Register(_) | Command::CreateTable(_) | Command::CreatePartition(_))
            };
            if open_row.len() < per_row && !open_row.iter().any(|(_, c)| makes(c)) {
                continue;
            }
            let row = std::mem::take(&mut open_row);
            let index = log.state.witness().index.0 + 1;
            let before = log.state.clone();
            let mut known: BTreeSet<u64> = BTreeSet::new();
            let high = before.sessions.get(&request(1, 0).session).map_or(0, |s| s.high);
            let results = log.append(&row);
            for (place, ((id, command), (answered, result))) in row.iter().zip(results).enumerate() {
                prop_assert_eq!(*id, answered);
                if id.counter <= high || !known.insert(id.counter) {
                    if let Some(old) = before.result_of(id) {
                        prop_assert_eq!(old, &result, "I12: a repeat is answered alike");
                    }
                    continue;
                }
                if place > 0 && makes(command) {
                    // The model's ids assume place 0: take the real one.
                    if let CommandResult::Done(Answer::TableCreated(made)) = &result {
                        let Command::CreateTable(table) = command else { unreachable!("made a table") };
                        model.tables.insert(made.0, PlainTable::new(table));
                        model.add_buckets(*made);
                        continue;
                    }
                    if let CommandResult::Done(Answer::PartitionCreated(made)) = &result {
                        let Command::CreatePartition(new) = command else { unreachable!("made a partition") };
                        let table = model.tables.get_mut(&new.table.0).expect("there");
                        prop_assert!(table.partitioned && !table.partitions.contains_key(&new.values));
                        table.partitions.insert(new.values.clone(), made.0);
                        model.add_buckets(new.table);
                        continue;
                    }
                }
                let (accepted, opened) = model.run(index, command);
                match result {
                    CommandResult::Refused(refusal) => prop_assert!(!accepted, "{:?}: {}", command, refusal),
                    CommandResult::Done(answer) => {
                        prop_assert!(accepted, "{:?} was accepted", command);
                        if let (Answer::Opened { refused }, Command::Open { buckets, .. }) = (answer, command) {
                            prop_assert_eq!(refused.len() + opened.len(), buckets.len());
                        }
                    }
                }
            }
            model.agrees(&log.state);
            invariants(&before, &log.state);
            let restored = State::restore(&log.state.snapshot()).expect("restores");
            prop_assert_eq!(restored.digest(), log.state.digest());
        }
        let mut other = State::new(CLUSTER);
        for row in &log.rows {
            other.apply(row).expect("follows");
        }
        prop_assert_eq!(other.snapshot(), log.state.snapshot(), "I11");
    }
}
