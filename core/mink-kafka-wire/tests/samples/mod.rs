//! Draws messages from a seed: what the round trips and the allocation test are run with.
//!
//! Lives on: tests only; included by the unit tests and by `tests/allocation.rs`.
//! Owns: the hand-written half. The generated half draws each message field by field.

mod generated;

use bytes::Bytes;
use mink_kafka_wire::{KafkaString, Records, Uuid};

pub(crate) use generated::with_each_api;

/// A struct of the protocol that can be drawn, complete for `version`.
pub(crate) trait Sample {
    fn sample(source: &mut Source, version: i16) -> Self;
}

/// A small deterministic generator (splitmix64): one seed, one message.
#[derive(Debug)]
pub(crate) struct Source(u64);

impl Source {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `0..bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap();
        usize::try_from(self.next() % bound.max(1)).unwrap()
    }

    fn octets<const N: usize>(&mut self) -> [u8; N] {
        // Extreme values come often: they are where encodings differ.
        match self.below(8) {
            0 => [0; N],
            1 => [0xff; N],
            _ => std::array::from_fn(|_| self.next().to_le_bytes()[0]),
        }
    }

    pub(crate) fn boolean(&mut self) -> bool {
        self.below(2) == 1
    }

    pub(crate) fn int8(&mut self) -> i8 {
        i8::from_be_bytes(self.octets())
    }

    pub(crate) fn int16(&mut self) -> i16 {
        i16::from_be_bytes(self.octets())
    }

    pub(crate) fn uint16(&mut self) -> u16 {
        u16::from_be_bytes(self.octets())
    }

    pub(crate) fn int32(&mut self) -> i32 {
        i32::from_be_bytes(self.octets())
    }

    pub(crate) fn int64(&mut self) -> i64 {
        i64::from_be_bytes(self.octets())
    }

    pub(crate) fn uuid(&mut self) -> Uuid {
        Uuid(self.octets())
    }

    pub(crate) fn string(&mut self) -> KafkaString {
        // Up to 200 bytes, so that compact lengths of one and of two bytes occur.
        let longest = if self.below(10) == 0 { 100 } else { 12 };
        let length = self.below(longest);
        let letters = ['a', 'Z', '0', '.', '-', '_', 'ü'];
        let text: String = (0..length).map(|_| letters[self.below(letters.len())]).collect();
        KafkaString::from(text)
    }

    pub(crate) fn bytes(&mut self) -> Bytes {
        let length = self.below(40);
        (0..length).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    pub(crate) fn records(&mut self) -> Records {
        (0..self.below(4)).map(|_| self.bytes()).collect()
    }

    pub(crate) fn optional<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(3) > 0).then(|| draw(self))
    }

    pub(crate) fn array<T>(&mut self, mut draw: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| draw(self)).collect()
    }
}
