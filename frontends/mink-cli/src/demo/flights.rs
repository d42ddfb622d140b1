//! The data set: 100,000 real flights, embedded; tests/data/README.md tells its source and how a row becomes a record.
//!
//! Lives on: anywhere (pure).
use mink_client::HeaderRef;

const PACKED: &[u8] = include_bytes!("../../../../tests/data/flights.csv.zst");
/// What the data set unpacks to, in bytes.
const UNPACKED_BYTES: usize = 5_753_874;
/// Columns that are numbers; the others are text.
const NUMBERS: [&str; 5] = ["flight", "dep_delay", "arr_delay", "air_time", "distance"];

/// A flight as a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Flight {
    /// The plane; some rows have none.
    pub(crate) key: Option<String>,
    /// The row as JSON.
    pub(crate) value: String,
    /// Scheduled hour of departure, in ms since 1970.
    pub(crate) timestamp: i64,
    pub(crate) carrier: String,
    pub(crate) origin: String,
    pub(crate) dest: String,
    /// In miles.
    pub(crate) distance: i32,
    /// In minutes, less than 0 if it was early; some did not arrive.
    pub(crate) arr_delay: Option<i32>,
}

impl Flight {
    pub(crate) fn headers(&self) -> [HeaderRef<'_>; 2] {
        [
            HeaderRef { key: "carrier", value: Some(self.carrier.as_bytes()) },
            HeaderRef { key: "origin", value: Some(self.origin.as_bytes()) },
        ]
    }

    /// Bytes of key and value.
    pub(crate) fn bytes(&self) -> u64 {
        (self.key.as_ref().map_or(0, String::len) + self.value.len()) as u64
    }
}

/// All flights, in order of their hour.
pub(crate) fn all() -> Result<Vec<Flight>, String> {
    let unpacked =
        zstd::bulk::decompress(PACKED, UNPACKED_BYTES).map_err(|error| format!("the data set: {error}"))?;
    let text = String::from_utf8(unpacked).map_err(|error| format!("the data set: {error}"))?;
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let mut hour = Hour::default();
    lines
        .map(|line| flight(&columns, line, &mut hour).ok_or_else(|| format!("the data set: {line:?}")))
        .collect()
}

/// The hour that was parsed last: many rows share one.
#[derive(Default)]
struct Hour {
    text: String,
    ms: i64,
}

impl Hour {
    fn ms(&mut self, text: &str) -> Option<i64> {
        if self.text != text {
            let time: jiff::Timestamp = text.parse().ok()?;
            (self.text, self.ms) = (text.into(), time.as_millisecond());
        }
        Some(self.ms)
    }
}

fn flight(columns: &[&str], line: &str, hour: &mut Hour) -> Option<Flight> {
    let fields: Vec<&str> = line.split(',').collect();
    if fields.len() != columns.len() {
        return None;
    }
    let field = |name: &str| {
        columns.iter().zip(&fields).find(|(column, _)| **column == name).map(|(_, field)| *field)
    };
    let mut value = String::with_capacity(line.len() * 3);
    for (column, field) in columns.iter().zip(&fields) {
        value.push(if value.is_empty() { '{' } else { ',' });
        value.push('"');
        value.push_str(column);
        value.push_str("\":");
        match *field {
            "" => value.push_str("null"),
            number if NUMBERS.contains(column) => value.push_str(number),
            // No text of the data set needs an escape.
            text => {
                value.push('"');
                value.push_str(text);
                value.push('"');
            }
        }
    }
    value.push('}');
    Some(Flight {
        key: field("tailnum").filter(|plane| !plane.is_empty()).map(str::to_owned),
        value,
        timestamp: hour.ms(field("time_hour")?)?,
        carrier: field("carrier")?.into(),
        origin: field("origin")?.into(),
        dest: field("dest")?.into(),
        distance: field("distance")?.parse().ok()?,
        arr_delay: match field("arr_delay")? {
            "" => None,
            minutes => Some(minutes.parse().ok()?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn flights_are_in_order_of_their_hour() {
        let flights = all().unwrap();
        assert_eq!(flights.len(), 100_000);
        assert!(flights.is_sorted_by_key(|flight| flight.timestamp), "reading by time relies on it");
    }

    #[test]
    fn records_have_the_documented_digest() {
        let mut digest = Sha256::new();
        let put = |digest: &mut Sha256, bytes: Option<&[u8]>| {
            let length = bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap());
            digest.update(length.to_be_bytes());
            digest.update(bytes.unwrap_or_default());
        };
        for flight in all().unwrap() {
            put(&mut digest, flight.key.as_deref().map(str::as_bytes));
            put(&mut digest, Some(flight.value.as_bytes()));
            digest.update(flight.timestamp.to_be_bytes());
            for header in flight.headers() {
                put(&mut digest, Some(header.key.as_bytes()));
                put(&mut digest, header.value);
            }
        }
        assert_eq!(
            format!("{:x}", digest.finalize()),
            "debac36521413dea504a16a14639f8f352f79f2dbd2d88807bca898c0bdc346b"
        );
    }
}
