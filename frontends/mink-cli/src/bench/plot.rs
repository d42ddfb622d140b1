//! A load as a picture: latency by percentile, throughput by second.
//!
//! Lives on: anywhere (pure).
use super::percentiles::PER_HALVING;
use mink_client::load::LoadResult;
use std::fmt::{self, Write};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 640.0;
/// Of both panels, from the left.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 830.0;
/// Marks on an axis beside 0, at most.
const MARKS_MAX: i32 = 6;
/// A share of a second below this tells nothing of a rate.
const SHARE_MIN: f64 = 0.2;
const STYLE: &str = "text{font:12px sans-serif;fill:#222}.title text{font-size:15px;font-weight:bold}.mark{stroke:#ddd}\
    .axis{stroke:#222;fill:none}.line{stroke:#1f6fb4;stroke-width:2;fill:none}";

/// One set of axes with one line.
struct Panel {
    title: String,
    top: f64,
    bottom: f64,
    /// Place on the x axis, from 0 to `x_max`, and text.
    x_marks: Vec<(f64, String)>,
    x_max: f64,
    /// In the units of the axes.
    points: Vec<(f64, f64)>,
}

/// The file.
pub(super) fn svg(
    [title, below]: &[String; 2],
    latency_from: &str,
    result: &LoadResult,
) -> Result<String, fmt::Error> {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\">\n\
         <style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    out.push_str("<g class=\"title\">\n");
    text(&mut out, (WIDTH / 2.0, 24.0), "middle", title)?;
    out.push_str("</g>\n");
    text(&mut out, (WIDTH / 2.0, 44.0), "middle", below)?;
    latency(latency_from, result).draw(&mut out)?;
    throughput(result).draw(&mut out)?;
    out.push_str("</svg>\n");
    Ok(out)
}

/// Percentiles on a scale on which each further nine takes the same room.
#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn latency(from: &str, result: &LoadResult) -> Panel {
    let nines = |quantile: f64| -(1.0 - quantile).log10();
    // Beyond one in all records there is nothing to tell apart.
    let x_max = (result.latency.len().max(10) as f64).log10();
    let points = result.latency.iter_quantiles(PER_HALVING);
    let points = points.map(|value| {
        (nines(value.quantile_iterated_to()).min(x_max), value.value_iterated_to() as f64 / 1e3)
    });
    let marks = ["0%", "90%", "99%", "99.9%", "99.99%", "99.999%", "99.9999%"];
    let x_marks = marks.iter().enumerate().map(|(at, mark)| (at as f64, (*mark).to_owned()));
    let x_marks = x_marks.filter(|(at, _)| *at <= x_max).collect();
    Panel {
        title: format!("latency by percentile, ms, from when {from}"),
        top: 80.0,
        bottom: 310.0,
        x_marks,
        x_max,
        points: points.collect(),
    }
}

/// Each second is a step; the last one may be a part of a second.
#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn throughput(result: &LoadResult) -> Panel {
    let elapsed = result.elapsed.as_secs_f64();
    let points = result.series.iter().enumerate().filter_map(|(at, second)| {
        let (at, share) = (at as f64, (elapsed - at as f64).min(1.0));
        let rate = second.bytes as f64 / f64::from(1 << 20) / share.max(1e-9);
        (share >= SHARE_MIN || at < 0.5).then_some([(at, rate), (at + share.max(0.0), rate)])
    });
    let points = points.flatten();
    let x_max = elapsed.max(1e-3);
    let x_marks = marks(x_max).into_iter().map(|at| (at, format!("{at} s"))).collect();
    Panel {
        title: "throughput by second, MiB/s".into(),
        top: 370.0,
        bottom: 600.0,
        x_marks,
        x_max,
        points: points.collect(),
    }
}

impl Panel {
    fn draw(&self, out: &mut String) -> fmt::Result {
        let highest = self.points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
        let y_marks = marks(highest);
        // The line keeps below the uppermost edge.
        let y_max = highest.max(1e-9) * 1.05;
        let x = |at: f64| LEFT + (RIGHT - LEFT) * at / self.x_max;
        let y = |at: f64| self.bottom - (self.bottom - self.top) * at / y_max;
        text(out, (LEFT, self.top - 10.0), "start", &self.title)?;
        for at in y_marks {
            line(out, "mark", &[(LEFT, y(at)), (RIGHT, y(at))])?;
            text(out, (LEFT - 8.0, y(at) + 4.0), "end", &format!("{at}"))?;
        }
        for (at, mark) in &self.x_marks {
            line(out, "mark", &[(x(*at), self.top), (x(*at), self.bottom)])?;
            text(out, (x(*at), self.bottom + 18.0), "middle", mark)?;
        }
        line(out, "axis", &[(LEFT, self.top), (LEFT, self.bottom), (RIGHT, self.bottom)])?;
        let points: Vec<_> = self.points.iter().map(|point| (x(point.0), y(point.1))).collect();
        line(out, "line", &points)
    }
}

/// Round numbers from 0 up to `max`.
fn marks(max: f64) -> Vec<f64> {
    if !max.is_finite() || max <= 0.0 {
        return vec![0.0];
    }
    let most = f64::from(MARKS_MAX);
    let power = 10_f64.powf((max / most).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| max / step <= most);
    let step = step.unwrap_or(max);
    // Without what binary fractions leave behind.
    let rounded = |at: f64| (at * 1e6).round() / 1e6;
    (0..=MARKS_MAX).map(|number| rounded(f64::from(number) * step)).filter(|at| *at <= max).collect()
}

fn line(out: &mut String, class: &str, points: &[(f64, f64)]) -> fmt::Result {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    writeln!(out, "<polyline class=\"{class}\" points=\"{}\"/>", points.join(" "))
}

fn text(out: &mut String, at: (f64, f64), anchor: &str, what: &str) -> fmt::Result {
    let what = what.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{what}</text>", at.0, at.1)
}

#[cfg(test)]
mod tests {
    use super::super::sample::empty;
    use super::*;
    use mink_client::load::Second;
    use std::time::Duration;

    #[test]
    fn marks_are_round_and_few_and_reach_up_to_the_highest() {
        assert_eq!(marks(7.3), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(marks(0.35), [0.0, 0.1, 0.2, 0.3]);
        assert_eq!(marks(1200.0), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0, 1200.0]);
        assert_eq!((marks(0.0), marks(f64::INFINITY)), (vec![0.0], vec![0.0]));
        for max in [0.001, 1.0, 9.99, 60.0, 123_456.0] {
            assert!((2..=7).contains(&marks(max).len()), "{max}: {:?}", marks(max));
        }
    }

    #[test]
    fn a_run_of_less_than_a_second_has_a_line_too() {
        let second = |bytes| Second { records: 1, bytes, p99: Duration::from_millis(1) };
        let result = |elapsed, series| LoadResult { elapsed, series, ..empty() };
        let panel = throughput(&result(Duration::from_millis(500), vec![second(1 << 20)]));
        assert_eq!((panel.points, panel.x_max), (vec![(0.0, 2.0), (0.5, 2.0)], 0.5));
        // What came in the drain is no throughput.
        let series = vec![second(1 << 20), second(3 << 20), second(9 << 20)];
        let panel = throughput(&result(Duration::from_secs(2), series));
        assert_eq!(panel.points, [(0.0, 1.0), (1.0, 1.0), (1.0, 3.0), (2.0, 3.0)]);
    }

    #[test]
    fn the_picture_says_from_when_latency_counts() {
        let titles = ["kafka.load".to_owned(), "2026".to_owned()];
        let drawn = svg(&titles, "due", &empty()).unwrap();
        assert!(drawn.contains("from when due") && drawn.contains("kafka.load") && drawn.contains("2026"));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }

    #[test]
    fn what_would_be_markup_is_text() {
        let mut out = String::new();
        text(&mut out, (0.0, 0.0), "end", "a<b>&c").unwrap();
        assert!(out.contains(">a&lt;b&gt;&amp;c</text>"), "{out}");
    }
}
