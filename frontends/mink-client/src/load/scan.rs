//! Scanning a table under load.
//!
//! Lives on: one task per connection.
//! Invariants: every row that is counted was decoded and its place checked against those before it.
use super::ending::Ending;
use super::put::client_error;
use super::tally::{Came, Tally};
use super::{LoadResult, Progress, Span, check_connections, finish};
use crate::error::{ClientError, ErrorKind};
use crate::flight::{FlightClient, Operator, ScanBuilder, bytes_of};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// What to scan: everything that the table holds when it begins.
#[derive(Clone, Debug)]
pub struct ScanLoad {
    /// `DATABASE.TABLE`.
    pub table: String,
    /// None: all.
    pub columns: Vec<String>,
    /// All of them are met: column, comparison, constant.
    pub filter: Vec<(String, Operator, String)>,
    /// Ends earlier, after about so many rows, warm-up included.
    pub rows: Option<u64>,
    /// Time for which rows are not counted.
    pub warmup: Duration,
    /// Ends earlier, so long after the warm-up.
    pub duration: Option<Duration>,
    /// Connections to which the buckets are dealt out, at most one for each of them.
    pub connections: usize,
}

/// Scans the table at a Flight listener.
///
/// # Errors
/// What keeps the load from starting. The first error of a scan ends the load and stands in its result.
pub async fn scan(
    address: &str,
    load: &ScanLoad,
    progress: &Arc<Progress>,
) -> Result<LoadResult, ClientError> {
    let asked = check_connections(load.connections)?;
    let connect = async || FlightClient::connect(address).await.map_err(|error| client_error(&error));
    let first = connect().await?;
    let buckets = first.describe(&load.table).await.map_err(|error| client_error(&error))?.buckets;
    let connections = asked.min(usize::try_from(buckets).unwrap_or(1)).max(1);
    let mut clients = vec![first];
    while clients.len() < connections {
        clients.push(connect().await?);
    }
    let span = Span::new(Instant::now(), load.warmup, load.duration);
    let tally = Arc::new(Tally::new(span.measured_from, span.until)?);
    let ending = Ending::new(span.until, progress);
    let mut tasks = JoinSet::new();
    for (index, client) in (0_u32..).zip(clients) {
        let mine = (index..buckets).step_by(connections);
        let scans: Vec<ScanBuilder> = mine.map(|bucket| load.of_bucket(&client, bucket)).collect();
        let rows = load.rows.unwrap_or(u64::MAX);
        let part = Part { scans, rows, ending: ending.clone(), tally: Arc::clone(&tally) };
        tasks.spawn(part.run());
    }
    if let Err(error) = finish(tasks, span, &ending).await {
        tally.failed(Instant::now(), 0, error);
    }
    Ok(LoadResult { connections, ..tally.result(false)? })
}

impl ScanLoad {
    fn of_bucket(&self, client: &FlightClient, bucket: u32) -> ScanBuilder {
        let scan = client.scan(&self.table).bucket(bucket).columns(self.columns.iter().cloned());
        self.filter.iter().fold(scan, |scan, (column, operator, value)| scan.filter(column, *operator, value))
    }
}

/// What one connection reads, one bucket after the other.
struct Part {
    scans: Vec<ScanBuilder>,
    /// Of all connections together.
    rows: u64,
    ending: Ending,
    tally: Arc<Tally>,
}

impl Part {
    async fn run(self) -> Result<(), ClientError> {
        let Part { scans, rows: most, ending, tally } = self;
        for scan in scans {
            let mut stream = scan.rows();
            while ending.progress().records.load(Ordering::Relaxed) < most {
                let asked = Instant::now();
                let next = tokio::select! {
                    biased;
                    over = ending.over() => {
                        tally.over(over);
                        return Ok(());
                    }
                    next = stream.next() => next,
                };
                let Some(found) = next else { break };
                let found = found.map_err(|error| client_error(&error))?;
                let (records, bytes) = (found.batch.num_rows() as u64, bytes_of(&found.batch) as u64);
                if tally.counts(asked) {
                    let since = [(asked, 1)];
                    tally.came(
                        Instant::now(),
                        &Came { records, bytes, batches: 0, since: &since, ages_ms: &[] },
                    );
                }
                ending.progress().add(records, bytes);
            }
        }
        Ok(())
    }
}

/// A comparison as a command line has it: `amount>=10`, `note is null`.
///
/// # Errors
/// `Misuse` for what is none.
pub fn comparison(text: &str) -> Result<(String, Operator, String), ClientError> {
    // Longer ones first: `<=` begins as `<` does.
    const OPERATORS: [(&str, Operator); 7] = [
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("!=", Operator::NotEqual),
        ("<>", Operator::NotEqual),
        ("=", Operator::Equal),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    let first = OPERATORS.iter().filter_map(|(sign, operator)| Some((text.find(sign)?, *sign, *operator)));
    let first = first.min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len())));
    let parts = first.and_then(|(at, sign, operator)| {
        let (column, rest) = text.split_at_checked(at)?;
        Some((column.trim(), operator, rest.strip_prefix(sign)?.trim()))
    });
    match parts {
        Some((column, operator, value)) if !column.is_empty() => {
            Ok((column.to_owned(), operator, value.to_owned()))
        }
        _ => Err(ClientError::new(
            ErrorKind::Misuse,
            format!("{text:?} is no comparison; write COLUMN=VALUE, or !=, <, <=, >, >= in the place of ="),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_cut_at_its_first_sign() {
        let of = |text| comparison(text).ok();
        let expected = |column: &str, operator, value: &str| Some((column.into(), operator, value.into()));
        assert_eq!(of("amount >= 10"), expected("amount", Operator::GreaterOrEqual, "10"));
        assert_eq!(of("note=a<=b"), expected("note", Operator::Equal, "a<=b"));
        assert_eq!(of("n<>3"), expected("n", Operator::NotEqual, "3"));
        assert_eq!(of("note="), expected("note", Operator::Equal, ""));
        assert_eq!((of("=3"), of("n")), (None, None));
    }
}
