//! All percentiles of a latency as text, in the form that `HdrHistogram`'s own tools write and its plotter reads.
//!
//! Lives on: anywhere (pure).
use hdrhistogram::Histogram;
use std::fmt::{self, Write};

/// Lines for each halving of the distance to 100%.
pub(super) const PER_HALVING: u32 = 5;
/// In these files latencies are in ms.
const US_PER_MS: f64 = 1e3;

/// The file, latencies in ms.
#[expect(clippy::cast_precision_loss, reason = "numbers for people")]
pub(super) fn text(latency_us: &Histogram<u64>) -> Result<String, fmt::Error> {
    let ms = |us: u64| us as f64 / US_PER_MS;
    let mut text =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut counted = 0;
    for value in latency_us.iter_quantiles(PER_HALVING) {
        counted += value.count_since_last_iteration();
        let (at, quantile) = (ms(value.value_iterated_to()), value.quantile_iterated_to());
        if quantile < 1.0 {
            writeln!(text, "{at:12.3} {quantile:2.12} {counted:10} {:14.2}", 1.0 / (1.0 - quantile))?;
        } else {
            writeln!(text, "{at:12.3} {quantile:2.12} {counted:10}")?;
        }
    }
    let (mean, deviation) = (latency_us.mean() / US_PER_MS, latency_us.stdev() / US_PER_MS);
    writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]")?;
    let (max, count) = (ms(latency_us.max()), latency_us.len());
    writeln!(text, "#[Max     = {max:12.3}, Total count    = {count:12}]")?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_rise_to_all_of_them_and_the_last_line_is_the_slowest() {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        for us in 1..=1000 {
            histogram.record(us * 1000).unwrap();
        }
        let text = text(&histogram).unwrap();
        let lines: Vec<Vec<f64>> = text
            .lines()
            .filter(|line| line.starts_with(' ') && !line.contains("Value"))
            .map(|line| line.split_whitespace().map(|field| field.parse().unwrap()).collect())
            .collect();
        assert!(lines.len() > 10 && lines.is_sorted_by(|a, b| a[0] <= b[0] && a[2] <= b[2]), "{text}");
        assert_eq!(&lines.last().unwrap()[1..], [1.0, 1000.0]);
        let median = lines.iter().find(|line| line[1] >= 0.5).unwrap();
        assert!((499.0..502.0).contains(&median[0]) && median[3] >= 2.0, "{text}");
        assert!(text.contains("Total count    =         1000"), "{text}");
    }
}
