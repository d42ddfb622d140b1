//! What the records of a load hold: random bytes, or real data that is gone through again and again.
//!
//! Lives on: anywhere (pure); the same seed gives the same bytes.
use super::pace::Random;
use crate::error::{ClientError, ErrorKind};
use std::sync::Arc;

/// Random contents are slices of so many bytes.
const RANDOM_BYTES: usize = 1 << 20;
/// From each time through them to the next, so that no value comes twice soon.
const STEP: usize = 61;

/// The values of a load.
#[derive(Clone, Debug)]
pub enum Values {
    /// Random bytes, which do not compress, of `min` to `max` bytes, all sizes alike.
    Random { min: usize, max: usize },
    /// These, in order, from the first again after the last.
    Given(Arc<Items>),
}

/// The keys of a load.
#[derive(Clone, Debug)]
pub enum Keys {
    /// No keys: partitions in turn.
    None,
    /// Random bytes; partitions by the key.
    Random { bytes: usize },
    /// These, in order, from the first again after the last; partitions by the key.
    Given(Arc<Items>),
}

/// Values or keys from real data; at least one.
#[derive(Debug)]
pub struct Items {
    bytes: Vec<u8>,
    /// Where each begins and ends.
    spans: Vec<(usize, usize)>,
}

impl Items {
    /// The lines of a text, without their ends; those without a byte are left out.
    ///
    /// # Errors
    /// `Misuse` if there is no line.
    pub fn lines(bytes: Vec<u8>) -> Result<Items, ClientError> {
        let mut spans = Vec::new();
        let mut begin = 0;
        for line in bytes.split(|byte| *byte == b'\n') {
            let end = begin + line.len();
            if !line.is_empty() {
                spans.push((begin, end));
            }
            begin = end + 1;
        }
        Items::with(bytes, spans)
    }

    /// Each as it is.
    ///
    /// # Errors
    /// `Misuse` if there is none.
    pub fn of<'a>(items: impl IntoIterator<Item = &'a [u8]>) -> Result<Items, ClientError> {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        for item in items {
            let begin = bytes.len();
            bytes.extend_from_slice(item);
            spans.push((begin, bytes.len()));
        }
        Items::with(bytes, spans)
    }

    fn with(bytes: Vec<u8>, spans: Vec<(usize, usize)>) -> Result<Items, ClientError> {
        if spans.is_empty() {
            return Err(ClientError::new(ErrorKind::Misuse, "there is nothing to send in it"));
        }
        Ok(Items { bytes, spans })
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.spans.len()
    }

    fn sizes(&self) -> impl Iterator<Item = usize> {
        self.spans.iter().map(|(begin, end)| end - begin)
    }

    fn bytes_mean(&self) -> usize {
        self.sizes().sum::<usize>() / self.count()
    }

    fn get(&self, number: usize) -> &[u8] {
        let span = self.spans.get(number % self.spans.len());
        span.and_then(|(begin, end)| self.bytes.get(*begin..*end)).unwrap_or_default()
    }
}

impl Values {
    /// The longest.
    pub fn bytes_max(&self) -> usize {
        match self {
            Values::Random { max, .. } => *max,
            Values::Given(items) => items.sizes().max().unwrap_or(0),
        }
    }

    /// Of one record on average.
    pub fn bytes_mean(&self) -> usize {
        match self {
            Values::Random { min, max } => usize::midpoint(*min, *max),
            Values::Given(items) => items.bytes_mean(),
        }
    }
}

impl Keys {
    pub(super) fn bytes_mean(&self) -> usize {
        match self {
            Keys::None => 0,
            Keys::Random { bytes } => *bytes,
            Keys::Given(items) => items.bytes_mean(),
        }
    }

    pub(super) fn bytes_max(&self) -> usize {
        match self {
            Keys::None => 0,
            Keys::Random { bytes } => *bytes,
            Keys::Given(items) => items.sizes().max().unwrap_or(0),
        }
    }
}

/// The contents of one connection's records.
#[derive(Debug)]
pub(super) struct Contents {
    values: Values,
    keys: Keys,
    random: Random,
    random_bytes: Vec<u8>,
    /// Where the next random value begins. They come one after the other: within `RANDOM_BYTES` nothing repeats that a codec could find.
    cursor: usize,
    /// Of the record to come.
    number: usize,
}

impl Contents {
    /// For connection `index` of so many: each begins at another place of the data.
    pub(super) fn new(values: &Values, keys: &Keys, index: usize, connections: usize) -> Contents {
        let longest = match values {
            Values::Random { max, .. } => *max,
            Values::Given(_) => 0,
        };
        // Another seed than that of the connection's schedule.
        let mut random = Random(!(index as u64));
        let random_bytes = random_bytes(RANDOM_BYTES + longest.max(keys.bytes_max()), &mut random);
        let count = match values {
            Values::Random { .. } => 0,
            Values::Given(items) => items.count(),
        };
        let number = count / connections.max(1) * index;
        Contents { values: values.clone(), keys: keys.clone(), random, random_bytes, cursor: 0, number }
    }

    /// Key and value of the next record.
    pub(super) fn next(&mut self) -> (Option<&[u8]>, &[u8]) {
        let number = self.number;
        self.number = number.wrapping_add(1);
        let key_at = match self.keys {
            Keys::Random { .. } => self.random.below(RANDOM_BYTES),
            Keys::None | Keys::Given(_) => 0,
        };
        let value_bytes = match self.values {
            Values::Random { min, max } if min < max => min + self.random.below(max - min + 1),
            Values::Random { max, .. } => max,
            Values::Given(_) => 0,
        };
        let value_at = self.cursor;
        self.cursor = value_at + value_bytes;
        if self.cursor >= RANDOM_BYTES {
            self.cursor = (self.cursor + STEP) % RANDOM_BYTES;
        }
        let slice = |at: usize, bytes: usize| self.random_bytes.get(at..at + bytes).unwrap_or_default();
        let key = match &self.keys {
            Keys::None => None,
            Keys::Random { bytes } => Some(slice(key_at, *bytes)),
            Keys::Given(items) => Some(items.get(number)),
        };
        let value = match &self.values {
            Values::Random { .. } => slice(value_at, value_bytes),
            Values::Given(items) => items.get(number),
        };
        (key, value)
    }
}

fn random_bytes(count: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(values: &Values, count: usize) -> Vec<usize> {
        let mut contents = Contents::new(values, &Keys::None, 0, 1);
        (0..count).map(|_| contents.next().1.len()).collect()
    }

    #[test]
    fn random_contents_do_not_repeat_and_are_the_same_for_one_seed() {
        let values = Values::Random { min: 100, max: 100 };
        let ten = |index| {
            let mut contents = Contents::new(&values, &Keys::Random { bytes: 16 }, index, 2);
            let next = |_| {
                let (key, value) = contents.next();
                (key.unwrap().to_vec(), value.to_vec())
            };
            (0..10).map(next).collect::<Vec<_>>()
        };
        assert_eq!(ten(0), ten(0));
        assert_ne!(ten(0), ten(1));
        assert_ne!(ten(0)[0], ten(0)[1]);
        assert!(ten(0).iter().all(|(key, value)| (key.len(), value.len()) == (16, 100)));
    }

    #[test]
    fn sizes_stay_in_their_range_and_reach_both_ends() {
        let sizes = sizes(&Values::Random { min: 3, max: 6 }, 1000);
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&3), Some(&6)));
        assert_eq!(Values::Random { min: 3, max: 6 }.bytes_max(), 6);
    }

    #[test]
    fn lines_are_gone_through_again_and_again_and_connections_begin_apart() {
        let items = Arc::new(Items::lines(b"one\n\nthree\r\nfour".to_vec()).unwrap());
        assert_eq!(items.count(), 3);
        let values = Values::Given(Arc::clone(&items));
        assert_eq!((values.bytes_max(), values.bytes_mean()), (6, 4));
        assert_eq!(sizes(&values, 4), [3, 6, 4, 3]);
        let mut second = Contents::new(&values, &Keys::Given(items), 1, 2);
        assert_eq!(second.next(), (Some(&b"three\r"[..]), &b"three\r"[..]));
        assert!(Items::lines(b"\n\n".to_vec()).is_err() && Items::of([]).is_err());
    }
}
