//! Topics and partitions of a request as an answer names them: each once, however often the request did.
//!
//! Lives on: anywhere (pure).
use mink_kafka_wire::KafkaString;
use std::collections::BTreeMap;

/// A partition of a request, and how often the request named it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Named<P> {
    pub(super) partition: P,
    pub(super) times: usize,
}

/// The partitions of each topic, both in the order in which they were first named. Of what is named again the last mention counts.
pub(super) fn named_once<P>(
    topics: impl Iterator<Item = (KafkaString, Vec<P>)>,
    index: impl Fn(&P) -> i32,
) -> Vec<(KafkaString, Vec<Named<P>>)> {
    let mut found: Vec<(KafkaString, Vec<Named<P>>)> = Vec::new();
    let mut topic_places: BTreeMap<KafkaString, usize> = BTreeMap::new();
    let mut places: BTreeMap<(usize, i32), usize> = BTreeMap::new();
    for (name, partitions) in topics {
        let place = *topic_places.entry(name.clone()).or_insert(found.len());
        if place == found.len() {
            found.push((name, Vec::with_capacity(partitions.len())));
        }
        let Some((_, named)) = found.get_mut(place) else { continue };
        for partition in partitions {
            let at = *places.entry((place, index(&partition))).or_insert(named.len());
            match named.get_mut(at) {
                Some(known) => *known = Named { partition, times: known.times + 1 },
                None => named.push(Named { partition, times: 1 }),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mention_counts_at_the_place_of_the_first() {
        let asked = [("b", vec![(1, "x"), (0, "y"), (1, "z")]), ("a", vec![(1, "u")]), ("b", vec![(0, "v")])];
        let topics = asked.into_iter().map(|(name, partitions)| (name.into(), partitions));
        let once = named_once(topics, |(index, _)| *index);
        let named = |partition, times| Named { partition, times };
        assert_eq!(
            once,
            [
                ("b".into(), vec![named((1, "z"), 2), named((0, "v"), 2)]),
                ("a".into(), vec![named((1, "u"), 1)])
            ]
        );
    }
}
