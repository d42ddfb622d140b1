//! Latency on purpose: `?put-latency=50ms&get-latency=50ms` behind a `memory://` or `file://` address.
//!
//! Lives on: service runtime.
//! Owns: nothing. A seam like those of tests, in front of the one that the caller may bring.
//! Invariants: it delays requests and changes no answer. For benchmarks and trials: an embedded store then takes as long as
//! a remote one, so that counts of requests and times of acks are those of a remote store.
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mink_rt::Service;

use crate::faults::{FaultAnswer, FaultSeam, Request};
use crate::stats::Op;

/// The longest latency that can be asked for.
const LATENCY_MAX: Duration = Duration::from_mins(1);

/// What an address asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Latencies {
    /// Of PUT and DELETE.
    pub(crate) put: Duration,
    /// Of GET, HEAD and LIST.
    pub(crate) get: Duration,
}

/// Splits an address into what stands before `?` and the latencies behind it.
pub(crate) fn split(rest: &str) -> Result<(&str, Latencies), String> {
    let Some((before, query)) = rest.split_once('?') else {
        return Ok((rest, Latencies::default()));
    };
    let mut latencies = Latencies::default();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let latency = duration(value).filter(|latency| *latency <= LATENCY_MAX);
        match (name, latency) {
            ("put-latency", Some(latency)) => latencies.put = latency,
            ("get-latency", Some(latency)) => latencies.get = latency,
            ("put-latency" | "get-latency", None) => {
                return Err(format!("{name} is {value:?}, not a time up to a minute such as 50ms"));
            }
            _ => return Err(format!("it has no parameter {name:?}")),
        }
    }
    Ok((before, latencies))
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let count: u64 = digits.parse().ok()?;
    match text.get(digits.len()..)? {
        "us" => Some(Duration::from_micros(count)),
        "ms" => Some(Duration::from_millis(count)),
        "s" => Some(Duration::from_secs(count)),
        _ => None,
    }
}

impl Latencies {
    /// The seam that delays requests so, in front of `behind`.
    pub(crate) fn seam(
        self,
        service: &Service,
        behind: Option<Arc<dyn FaultSeam>>,
    ) -> Option<Arc<dyn FaultSeam>> {
        if self == Latencies::default() {
            return behind;
        }
        Some(Arc::new(Delays { latencies: self, service: service.clone(), behind }))
    }
}

#[derive(Debug)]
struct Delays {
    latencies: Latencies,
    service: Service,
    behind: Option<Arc<dyn FaultSeam>>,
}

#[async_trait]
impl FaultSeam for Delays {
    async fn before(&self, request: Request<'_>) -> Option<FaultAnswer> {
        let latency = match request.op {
            Op::Put | Op::Delete => self.latencies.put,
            Op::Get | Op::Head | Op::List => self.latencies.get,
            Op::Credentials => Duration::ZERO,
        };
        if latency > Duration::ZERO {
            self.service.sleep(latency).await;
        }
        match &self.behind {
            Some(behind) => behind.before(request).await,
            None => None,
        }
    }

    async fn after(&self, request: Request<'_>) -> Option<FaultAnswer> {
        match &self.behind {
            Some(behind) => behind.after(request).await,
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_how_long_its_requests_take() {
        let latencies = Latencies { put: Duration::from_millis(50), get: Duration::from_micros(700) };
        assert_eq!(split("/d?put-latency=50ms&get-latency=700us"), Ok(("/d", latencies)));
        assert_eq!(split("/d"), Ok(("/d", Latencies::default())));
        assert_eq!(split("?get-latency=1s").map(|(_, l)| l.get), Ok(Duration::from_secs(1)));
    }

    #[test]
    fn anything_else_behind_the_question_mark_is_refused_by_name() {
        for (query, named) in [
            ("?put-latency=50", "50"),
            ("?put-latency=2000s", "minute"),
            ("?delay=1s", "delay"),
            ("?", "\"\""),
        ] {
            let refused = split(query).expect_err(query);
            assert!(refused.contains(named), "{refused}");
        }
    }
}
