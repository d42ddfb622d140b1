//! InitProducerId: fresh ids, bumped epochs, and transactional ids (Kafka is not asked for those: they are not supported).
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use mink_kafka_wire::messages::init_producer_id::InitProducerIdRequest;

use super::{Asker, TIMEOUT_MS};

const BUMPS_FROM: i16 = 3;

pub(super) async fn init_producer_id(run: &mut Asker) {
    let of = || InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: TIMEOUT_MS,
        ..InitProducerIdRequest::default()
    };
    // A Kafka that has just begun has no ids yet.
    run.until("there are ids", 4, &of(), |answer| answer.error_code == 0).await;
    let id = run.ask("an id", of()).await.map_or(-1, |answer| answer.producer_id);
    run.ask("another id", of()).await;
    run.ask("time-out 0", InitProducerIdRequest { transaction_timeout_ms: 0, ..of() }).await;
    run.ask("time-out -1", InitProducerIdRequest { transaction_timeout_ms: -1, ..of() }).await;
    run.ask("an empty transactional id", InitProducerIdRequest { transactional_id: Some("".into()), ..of() })
        .await;
    if run.version >= BUMPS_FROM {
        for (case, producer_id, producer_epoch) in [
            ("bump", id, 0),
            ("bump of an unknown id", id + 900_000, 7),
            ("an id without epoch", id, -1),
            ("an epoch without id", -1, 3),
            ("epoch at its end", id, i16::MAX),
            ("epoch -5", id, -5),
        ] {
            run.ask(case, InitProducerIdRequest { producer_id, producer_epoch, ..of() }).await;
        }
    }
    run.damaged(of()).await;
}
