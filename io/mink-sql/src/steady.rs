//! Reads of the store that a start needs: repeated while the store does not answer, with growing pauses (P-6).
//!
//! Lives on: the service runtime, during a start.
//! Owns: nothing.
//! Invariants: only "does not answer" is repeated; what the store says for certain is handed on at once.
use std::future::Future;
use std::time::Duration;

use mink_object::GetError;
use mink_rt::Service;

/// Attempts before the start gives up and says so; with the pauses about 15 s.
const ATTEMPTS_MAX: u32 = 10;
/// First and longest pause between two attempts; each is drawn between half and the whole of it.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// The answer of `read`, asked again while the store does not answer.
pub(crate) async fn steady<T, F: Future<Output = Result<T, GetError>>>(
    service: &Service,
    mut read: impl FnMut() -> F,
) -> Result<T, GetError> {
    let (mut attempt, mut pause) = (1, PAUSE_FIRST);
    loop {
        match read().await {
            Err(GetError::Unavailable { reason }) if attempt < ATTEMPTS_MAX => {
                tracing::debug!(attempt, reason, "the store does not answer, reading again");
            }
            answer => return answer,
        }
        let half = pause / 2;
        let spread = u64::try_from(half.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        service.sleep(half + Duration::from_millis(service.random_u64() % spread)).await;
        pause = (pause * 2).min(PAUSE_MAX);
        attempt += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sim;

    /// Reads from a store that does not answer `failures` times, then says `then`; the answer and how often it was asked.
    fn read(failures: u32, then: Result<u8, GetError>) -> (Result<u8, GetError>, u32) {
        sim(1, |service| async move {
            let mut asked = 0;
            let answer = steady(&service, || {
                asked += 1;
                let away = Err(GetError::Unavailable { reason: "503".into() });
                let answer = if asked <= failures { away } else { then.clone() };
                async move { answer }
            });
            (answer.await, asked)
        })
    }

    #[test]
    fn p_6_a_start_reads_again_while_the_store_does_not_answer_but_not_for_ever() {
        assert_eq!(read(0, Ok(7)), (Ok(7), 1));
        assert_eq!(read(5, Ok(7)), (Ok(7), 6));
        let (answer, asked) = read(u32::MAX, Ok(7));
        assert!(matches!(answer, Err(GetError::Unavailable { .. })));
        assert_eq!(asked, ATTEMPTS_MAX);
    }

    #[test]
    fn p_15_what_the_store_says_for_certain_is_handed_on_at_once() {
        assert_eq!(read(0, Err(GetError::NotFound)), (Err(GetError::NotFound), 1));
        assert_eq!(read(2, Err(GetError::NotFound)), (Err(GetError::NotFound), 3));
    }
}
