//! The flights of `tests/data` as Kafka records; `tests/data/README.md` defines how a row becomes one.
//! Lives on: anywhere (pure, but for reading the file).
//! Owns: nothing.
//! Invariants: the records are the same, byte for byte, in every language of `tests/clients`.

use std::path::PathBuf;

use crate::{Error, ErrorKind, Result};

/// Rows in the set.
pub const ROWS: usize = 100_000;
/// The decoded file is smaller than this.
const CSV_BYTES_MAX: usize = 16 << 20;
const HEADER: &str = "time_hour,carrier,flight,tailnum,origin,dest,dep_delay,arr_delay,air_time,distance";
/// By column: whether its values are JSON numbers.
const COLUMNS: [(&str, bool); 10] = [
    ("time_hour", false),
    ("carrier", false),
    ("flight", true),
    ("tailnum", false),
    ("origin", false),
    ("dest", false),
    ("dep_delay", true),
    ("arr_delay", true),
    ("air_time", true),
    ("distance", true),
];

/// One flight as a Kafka record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The aircraft, or a null key.
    pub key: Option<Vec<u8>>,
    /// The row as JSON; unique in the set.
    pub value: Vec<u8>,
    /// The scheduled hour of departure, in milliseconds since 1970 (UTC).
    pub timestamp_ms: i64,
    /// `carrier` and `origin`, in this order.
    pub headers: [(&'static str, Vec<u8>); 2],
}

/// The first `count` records of the set, at most all of them.
///
/// # Errors
/// [`ErrorKind::Io`] if the file can't be read, [`ErrorKind::Failed`] if it is not the expected one.
pub fn flights(count: usize) -> Result<Vec<Record>> {
    let path = path();
    let packed = std::fs::read(&path)
        .map_err(|error| Error::io(format_args!("reading {}", path.display()), &error))?;
    let csv = zstd::bulk::decompress(&packed, CSV_BYTES_MAX)
        .map_err(|error| Error::io(format_args!("decoding {}", path.display()), &error))?;
    let csv = String::from_utf8(csv).map_err(|_| wrong("it is not UTF-8"))?;
    let mut lines = csv.lines();
    if lines.next() != Some(HEADER) {
        return Err(wrong("its columns are others"));
    }
    lines.take(count).map(|line| record(line).ok_or_else(|| wrong(&format!("row {line:?}")))).collect()
}

/// The packed file.
pub fn path() -> PathBuf {
    crate::script::tests_folder().join("data").join("flights.csv.zst")
}

fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::Failed, format!("flights.csv.zst is not the expected file: {what}"))
}

fn record(line: &str) -> Option<Record> {
    let mut fields = line.split(',');
    let row: [&str; COLUMNS.len()] = std::array::from_fn(|_| fields.next().unwrap_or_default());
    let [time_hour, carrier, _, tailnum, origin, ..] = row;
    let mut value = String::with_capacity(192);
    for ((name, is_number), text) in COLUMNS.iter().zip(row) {
        value.push_str(if value.is_empty() { "{\"" } else { ",\"" });
        value.push_str(name);
        value.push_str("\":");
        // No text of the set holds a character that JSON escapes.
        match (text, is_number) {
            ("", _) => value.push_str("null"),
            (number, true) => value.push_str(number),
            (text, false) => value.extend(["\"", text, "\""]),
        }
    }
    value.push('}');
    Some(Record {
        key: (!tailnum.is_empty()).then(|| tailnum.as_bytes().to_vec()),
        value: value.into_bytes(),
        timestamp_ms: milliseconds(time_hour)?,
        headers: [("carrier", carrier.as_bytes().to_vec()), ("origin", origin.as_bytes().to_vec())],
    })
}

/// Milliseconds since 1970 of `YYYY-MM-DDTHH:MM:SSZ`.
fn milliseconds(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    // Days from the civil calendar, with years that begin in March: a leap day is then the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468;
    Some(((days * 24 + number(11, 13)?) * 60 + number(14, 16)?) * 60_000 + number(17, 19)? * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    /// Recorded in `tests/data/README.md`; `tests/clients/flights.py digest` computes it too.
    const RECORDS_SHA256: &str = "debac36521413dea504a16a14639f8f352f79f2dbd2d88807bca898c0bdc346b";

    fn field(digest: &mut Sha256, bytes: &[u8]) {
        digest.update(i32::try_from(bytes.len()).unwrap().to_be_bytes());
        digest.update(bytes);
    }

    #[test]
    fn the_records_are_those_of_every_other_language() {
        let records = flights(usize::MAX).unwrap();
        assert_eq!(records.len(), ROWS);
        let mut digest = Sha256::new();
        for record in &records {
            match &record.key {
                Some(key) => field(&mut digest, key),
                None => digest.update((-1_i32).to_be_bytes()),
            }
            field(&mut digest, &record.value);
            digest.update(record.timestamp_ms.to_be_bytes());
            for (name, value) in &record.headers {
                field(&mut digest, name.as_bytes());
                field(&mut digest, value);
            }
        }
        let digest = digest.finalize().iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        assert_eq!(digest, RECORDS_SHA256);
    }

    #[test]
    fn a_row_becomes_a_record() {
        let record = record("2013-01-01T10:00:00Z,UA,1545,N14228,EWR,IAH,-2,,227,1400").unwrap();
        assert_eq!(record.key.as_deref(), Some(&b"N14228"[..]));
        assert_eq!(
            String::from_utf8(record.value).unwrap(),
            "{\"time_hour\":\"2013-01-01T10:00:00Z\",\"carrier\":\"UA\",\"flight\":1545,\"tailnum\":\"N14228\",\
             \"origin\":\"EWR\",\"dest\":\"IAH\",\"dep_delay\":-2,\"arr_delay\":null,\"air_time\":227,\"distance\":1400}"
        );
        assert_eq!(record.timestamp_ms, 1_357_034_400_000);
        assert_eq!(record.headers, [("carrier", b"UA".to_vec()), ("origin", b"EWR".to_vec())]);
    }

    #[test]
    fn times_are_right_around_leap_days() {
        assert_eq!(milliseconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(milliseconds("2000-02-29T23:59:59Z"), Some(951_868_799_000));
        assert_eq!(milliseconds("2013-03-01T00:00:00Z"), Some(1_362_096_000_000));
        assert_eq!(milliseconds("no time"), None);
    }

    #[test]
    fn the_set_is_sorted_by_time_and_has_null_keys() {
        let records = flights(20_000).unwrap();
        assert!(records.windows(2).all(|pair| pair[0].timestamp_ms <= pair[1].timestamp_ms));
        assert!(records.iter().any(|record| record.key.is_none()));
    }
}
