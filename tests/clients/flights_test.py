#!/usr/bin/env python3
"""The comparison finds what it is there to find: each test breaks one thing of a good read. Needs no server."""

import unittest

import flights

COUNT = 200
PARTITIONS = 3


def good_read(records):
    """(partition, offset, key, value, headers, timestamp) in the order in which a consumer could see them."""
    read = []
    for partition in range(PARTITIONS):
        for offset, each in enumerate(records[partition::PARTITIONS]):
            read.append([partition, offset, each.key, each.value, list(each.headers), each.timestamp_ms])
    return read


class ComparisonTest(unittest.TestCase):
    def setUp(self):
        self.records = flights.records(COUNT)
        self.read = good_read(self.records)
        self.positions = {number: (number % PARTITIONS, number // PARTITIONS) for number in range(COUNT)}

    def compare(self, read, end_offsets=None, **how):
        comparison = flights.Comparison(self.records, self.positions, **how)
        for each in read:
            comparison.add(*each)
        ends = {partition: len(self.records[partition::PARTITIONS]) for partition in range(PARTITIONS)}
        comparison.finish(ends if end_offsets is None else end_offsets)

    def differs(self, words, read, **how):
        with self.assertRaisesRegex(flights.Difference, words):
            self.compare(read, **how)

    def renumbered(self, read):
        """Offsets dense again after records were taken out or put in."""
        after = {}
        for each in read:
            each[1] = after.get(each[0], 0)
            after[each[0]] = each[1] + 1
        return read, after

    def test_a_good_read_passes(self):
        self.compare(self.read)

    def test_a_gap_in_the_offsets_is_found(self):
        self.differs("partition 0 offset 8: offset 7 was expected", self.read[:7] + self.read[8:])

    def test_a_lost_record_is_found_when_offsets_stay_dense(self):
        self.positions = {}
        read, ends = self.renumbered(self.read[:7] + self.read[8:])
        self.differs("record 21 is missing", read, end_offsets=ends)

    def test_a_lost_end_is_found(self):
        self.differs("partition 2: read up to offset 65, the end is 66", self.read[:-1])

    def test_a_duplicate_is_found(self):
        self.positions = {}
        read, ends = self.renumbered(self.read[:8] + [list(self.read[7])] + self.read[8:])
        self.differs("record 21 again", read, end_offsets=ends)

    def test_two_records_in_the_wrong_order_are_found(self):
        self.positions = {}
        read = self.read
        read[4], read[5] = read[5], read[4]
        self.differs("record 12 after record 15", self.renumbered(read)[0])

    def test_grouped_records_keep_their_order_inside_a_group_only(self):
        self.positions = {}
        read, _ = self.renumbered(sorted(self.read, key=lambda each: (each[0], each[4])))
        self.differs("after record", read)
        self.compare(read, grouped=True)
        at = next(at for at in range(len(read)) if (read[at][0], read[at][4]) == (read[at + 1][0], read[at + 1][4]))
        read[at], read[at + 1] = read[at + 1], read[at]
        self.differs("after record", self.renumbered(read)[0], grouped=True)

    def test_an_ack_at_another_place_is_found(self):
        self.positions[21] = (0, 6)
        self.differs("record 21, which was acked at", self.read)

    def test_each_changed_field_is_found(self):
        foreign = self.records[0]
        for field, changed, words in [
            (2, b"N00000", "key"),
            (2, None, "key"),
            (3, foreign.value + b" ", "never produced"),
            (4, [("carrier", b"ZZ"), self.read[9][4][1]], "headers"),
            (4, list(reversed(self.read[9][4])), "headers"),
            (4, [], "headers"),
            (5, self.read[9][5] + 1, "timestamp"),
        ]:
            with self.subTest(field=field, changed=changed):
                read = [list(each) for each in self.read]
                read[9][field] = changed
                self.differs(words, read)

    def test_a_null_key_is_not_an_empty_key(self):
        self.records = flights.records(5000)
        self.read = good_read(self.records)
        self.positions = {}
        at = next(at for at, each in enumerate(self.read) if each[2] is None)
        self.read[at][2] = b""
        self.differs("key b'' instead of None", self.read)

    def test_timestamps_of_the_run_must_be_of_the_run(self):
        self.differs("is not of this run", self.read, timestamp_floor_ms=self.records[-1].timestamp_ms + 1)
        self.compare(self.read, timestamp_floor_ms=self.records[0].timestamp_ms)

    def test_the_set_is_the_recorded_one(self):
        self.assertEqual(flights.digest(), "debac36521413dea504a16a14639f8f352f79f2dbd2d88807bca898c0bdc346b")

    def test_every_value_is_unique(self):
        everything = flights.records()
        self.assertEqual(len({each.value for each in everything}), len(everything))


if __name__ == "__main__":
    unittest.main()
