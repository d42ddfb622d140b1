//! Latencies as a few lines of text.
//!
//! Lives on: anywhere (pure).
use crate::numbers;
use hdrhistogram::Histogram;
use std::time::Duration;

/// Longest bar, in characters.
const BAR: u64 = 40;
/// Percentiles that are told.
pub(crate) const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// `p50 1.2 ms   p90 3.4 ms   ...   max 1.25 s`.
pub(crate) fn percentiles(latency_us: &Histogram<u64>) -> String {
    let at = |us| numbers::time(Duration::from_micros(us));
    let mut parts: Vec<String> = PERCENTILES
        .iter()
        .map(|percent| format!("p{percent} {}", at(latency_us.value_at_percentile(*percent))))
        .collect();
    parts.push(format!("max {}", at(latency_us.max())));
    parts.join("   ")
}

/// A bar for each doubling of latency that occurred, and for those between.
pub(crate) fn bars(latency_us: &Histogram<u64>) -> Vec<String> {
    // Number k counts what took at least 2^k and less than 2^(k+1) microseconds.
    let mut counts: Vec<u64> = Vec::new();
    for value in latency_us.iter_recorded() {
        let power = value.value_iterated_to().max(1).ilog2() as usize;
        if counts.len() <= power {
            counts.resize(power + 1, 0);
        }
        if let Some(count) = counts.get_mut(power) {
            *count += value.count_at_value();
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
    counts
        .iter()
        .enumerate()
        .skip(first)
        .map(|(power, count)| {
            let upper = numbers::time(Duration::from_micros(2 << power));
            // One in a million still shows.
            let length = if *count == 0 { 0 } else { (count * BAR / most).max(1) };
            let bar = "#".repeat(usize::try_from(length).unwrap_or(0));
            format!("  < {upper:>9} {:>9}  {bar}", numbers::count(*count)).trim_end().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        for (value, count) in values {
            histogram.record_n(*value, *count).unwrap();
        }
        histogram
    }

    #[test]
    fn every_doubling_has_a_bar_and_rare_ones_show() {
        let bars = bars(&histogram(&[(1500, 1000), (9000, 1)]));
        assert_eq!(bars.len(), 4, "{bars:?}");
        assert!(bars[0].contains("2.0 ms") && bars[0].ends_with(&"#".repeat(40)), "{bars:?}");
        assert!(bars[1].ends_with(" 0"), "{bars:?}");
        assert!(bars[3].ends_with("1  #"), "{bars:?}");
    }

    #[test]
    fn nothing_recorded_is_no_bar() {
        assert_eq!(bars(&histogram(&[])), Vec::<String>::new());
    }

    #[test]
    fn percentiles_are_told_in_units() {
        let text = percentiles(&histogram(&[(500, 99), (2_000_000, 1)]));
        assert!(text.starts_with("p50 500 us   p90 500 us   p99 500 us"), "{text}");
        assert!(text.contains("p99.9 2.00 s   p99.99 2.00 s   max 2.00 s"), "{text}");
    }
}
