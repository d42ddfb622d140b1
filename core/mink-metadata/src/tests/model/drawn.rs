//! What the model is fed with: random commands in small numbers, before they are about anything that is there.
//!
//! Lives on: tests only.
use proptest::prelude::*;

/// A command as it is drawn: small numbers that become ids once the model's state is known.
#[derive(Clone, Debug)]
pub(super) enum Drawn {
    Register(u32),
    Fence {
        who: usize,
        by: usize,
    },
    Leave {
        who: usize,
        trim: u64,
        seal: Option<u64>,
    },
    Create(u32),
    /// Buckets, partitioned or not.
    CreateWithColumns(u32, bool),
    /// Table, how many schemas back the change was made from, more buckets.
    Alter(usize, usize, u32),
    /// Table, value.
    CreatePartition(usize, i64),
    /// Table, partition.
    DropPartition(usize, usize),
    Drop(usize),
    Commit {
        by: usize,
        source: usize,
        objects: Vec<DrawnObject>,
        trim: Option<u64>,
    },
    /// By, which of the run's objects is not named (mostly none), pieces as (counter, bucket, epoch off by, first range,
    /// ranges, end off by).
    Rewrite {
        by: usize,
        unnamed: usize,
        pieces: Vec<(u64, usize, u32, usize, usize, u64)>,
    },
    Open {
        by: usize,
        buckets: Vec<(usize, u32)>,
        from: Option<(usize, u64)>,
    },
    Release {
        by: usize,
        bucket: usize,
        epoch: u32,
        end: u64,
    },
    RaiseStart {
        by: usize,
        bucket: usize,
        epoch: u32,
        start: u64,
    },
    /// By, bucket, epoch off by, end off by.
    Forget(usize, usize, u32, u64),
    Delete(usize),
    Sweep(usize),
    Repeat(usize),
    Restore,
}

/// WAL or not, number, ranges as (bucket, epoch off by, start off by, length).
pub(super) type DrawnObject = (bool, u64, Vec<(usize, u32, u64, u64)>);

/// Mostly nothing, sometimes one too many.
fn off() -> impl Strategy<Value = u64> {
    prop_oneof![9 => Just(0u64), 1 => Just(1u64)]
}

pub(super) fn drawn() -> impl Strategy<Value = Drawn> {
    let small = || 0..4usize;
    let epoch = || prop_oneof![9 => Just(0u32), 1 => Just(1u32)];
    let range = (0..6usize, epoch(), off(), prop_oneof![9 => 1..4u64, 1 => Just(0u64)]);
    let object = (prop::bool::weighted(0.4), 0..40u64, prop::collection::vec(range, 0..4));
    prop_oneof![
        2 => (0..3u32).prop_map(Drawn::Register),
        2 => (small(), small()).prop_map(|(who, by)| Drawn::Fence { who, by }),
        1 => (small(), 0..6u64, prop::option::of(0..6u64)).prop_map(|(who, trim, seal)| Drawn::Leave { who, trim, seal }),
        2 => (1..4u32).prop_map(Drawn::Create),
        2 => (1..3u32, prop::bool::weighted(0.7)).prop_map(|(buckets, parts)| Drawn::CreateWithColumns(buckets, parts)),
        3 => (small(), prop_oneof![3 => Just(0usize), 1 => 1..3usize], prop_oneof![3 => Just(0u32), 1 => Just(1u32)])
            .prop_map(|(table, back, more)| Drawn::Alter(table, back, more)),
        4 => (small(), 0..4i64).prop_map(|(table, value)| Drawn::CreatePartition(table, value)),
        2 => (small(), 0..3usize).prop_map(|(table, partition)| Drawn::DropPartition(table, partition)),
        1 => small().prop_map(Drawn::Drop),
        9 => (small(), small(), prop::collection::vec(object, 0..3), prop::option::of(0..9u64))
            .prop_map(|(by, source, objects, trim)| Drawn::Commit { by, source, objects, trim }),
        5 => (small(), 0..40usize, prop::collection::vec((40..80u64, 0..6usize, epoch(), 0..3usize, 1..5usize, off()), 0..4))
            .prop_map(|(by, unnamed, pieces)| Drawn::Rewrite { by, unnamed, pieces }),
        6 => (small(), prop::collection::vec((0..6usize, epoch()), 0..4), prop::option::of((small(), 0..9u64)))
            .prop_map(|(by, buckets, from)| Drawn::Open { by, buckets, from }),
        1 => (small(), 0..6usize, epoch(), off())
            .prop_map(|(by, bucket, epoch, end)| Drawn::Release { by, bucket, epoch, end }),
        2 => (small(), 0..6usize, epoch(), 0..9u64)
            .prop_map(|(by, bucket, epoch, start)| Drawn::RaiseStart { by, bucket, epoch, start }),
        1 => (small(), 0..6usize, epoch(), off())
            .prop_map(|(by, bucket, epoch, end)| Drawn::Forget(by, bucket, epoch, end)),
        1 => small().prop_map(Drawn::Delete),
        1 => small().prop_map(Drawn::Sweep),
        2 => (0..50usize).prop_map(Drawn::Repeat),
        1 => Just(Drawn::Restore),
    ]
}

/// A node that owns buckets with some ranges each: what most commands are about.
pub(super) fn owned() -> Vec<Drawn> {
    let mut steps = vec![
        Drawn::Register(0),
        Drawn::Create(3),
        Drawn::CreateWithColumns(1, true),
        Drawn::CreatePartition(1, 0),
        Drawn::Open { by: 0, buckets: (0..4).map(|at| (at, 0)).collect(), from: None },
    ];
    for counter in 0..5 {
        let ranges = (0..3).map(|at| (at, 0, 0, 2)).collect();
        let objects = vec![(false, counter, ranges)];
        steps.push(Drawn::Commit { by: 0, source: 0, objects, trim: None });
    }
    steps
}
