//! Values and keys as they are asked for: by size, from a file, or the rows that Mink brings along.
//!
//! Lives on: the command's task.
use crate::demo::flights::{self, Flight};
use crate::failure::Failure;
use crate::numbers;
use mink_client::load::{Items, Keys};
use mink_server::Bytes;
use std::io::Read;
use std::sync::Arc;

pub(super) const RANDOM: &str = "random";
const NONE: &str = "none";
const FLIGHTS: &str = "flights";
/// A file of values is held in memory, so it has an end.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Sizes from the smallest to the largest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sizes {
    pub(super) min: Bytes,
    pub(super) max: Bytes,
}

/// `100`, or `100..4KiB`.
pub(super) fn sizes(text: &str) -> Result<Sizes, String> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    let (min, max) = (min.trim().parse::<Bytes>()?, max.trim().parse::<Bytes>()?);
    if min > max {
        return Err(format!("{text} begins above its end; write {max}..{min}"));
    }
    Ok(Sizes { min, max })
}

/// Lines of a file, or what `of` takes from each flight.
pub(super) fn items(source: &str, of: impl Fn(&Flight) -> &[u8]) -> Result<Arc<Items>, Failure> {
    if source == FLIGHTS {
        let all = flights::all().map_err(Failure::failed)?;
        let items = Items::of(all.iter().map(of)).map_err(|error| Failure::failed(error.to_string()))?;
        return Ok(Arc::new(items));
    }
    let failed = |why: String| Failure::failed(format!("{source}: {why}"));
    let file = std::fs::File::open(source).map_err(|error| {
        failed(format!("{error}; name a file of lines, or `{FLIGHTS}` for data of Mink's own"))
    })?;
    let mut lines = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut lines);
    if read.map_err(|error| failed(error.to_string()))? as u64 > FILE_BYTES_MAX {
        return Err(failed(format!("larger than {}; use a part of it", numbers::bytes(FILE_BYTES_MAX))));
    }
    Ok(Arc::new(Items::lines(lines).map_err(|error| failed(error.to_string()))?))
}

/// Keys as `--keys` names them.
pub(super) fn keys(source: &str, random_bytes: usize) -> Result<Keys, Failure> {
    match source {
        NONE => Ok(Keys::None),
        RANDOM => Ok(Keys::Random { bytes: random_bytes }),
        // Rows without a plane go by their carrier, as in the demo.
        source => {
            items(source, |flight| flight.key.as_ref().unwrap_or(&flight.carrier).as_bytes()).map(Keys::Given)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_client::load::Values;

    #[test]
    fn sizes_are_one_or_a_range_from_the_smaller_to_the_larger() {
        assert_eq!(sizes("100"), Ok(Sizes { min: Bytes(100), max: Bytes(100) }));
        assert_eq!(sizes("1KiB..4KiB"), Ok(Sizes { min: Bytes(1024), max: Bytes(4096) }));
        assert!(sizes("4KiB..1").unwrap_err().contains("write 1B..4KiB"));
        assert!(sizes("..").is_err() && sizes("many").is_err());
    }

    #[test]
    fn flights_are_real_rows_with_their_own_sizes_and_planes_as_keys() {
        let values = Values::Given(items(FLIGHTS, |flight| flight.value.as_bytes()).unwrap());
        assert!(values.bytes_mean() < values.bytes_max() && values.bytes_mean() > 100);
        let Keys::Given(planes) = keys(FLIGHTS, 0).unwrap() else { panic!("flights have keys") };
        assert_eq!(planes.count(), 100_000);
    }

    #[test]
    fn a_file_gives_its_lines_and_one_that_does_not_says_what_would() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let Err(Failure::Failed(words)) = items(path, |_| b"") else { panic!("it is empty") };
        assert!(words.contains("nothing to send"), "{words}");
        std::fs::write(path, "{\"a\":1}\n{\"a\":2}\n").unwrap();
        assert_eq!(items(path, |_| b"").unwrap().count(), 2);
        let Err(Failure::Failed(words)) = keys("no/such/file", 0) else { panic!("it is not there") };
        assert!(words.contains("`flights`"), "{words}");
        assert!(matches!(keys(NONE, 0), Ok(Keys::None)));
        assert!(matches!(keys(RANDOM, 5), Ok(Keys::Random { bytes: 5 })));
    }
}
