//! Creating and deleting topics.
//!
//! Lives on: any tokio runtime.
use crate::client::{Client, check};
use crate::error::ClientError;
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use mink_kafka_wire::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};

/// What a server may take to carry an administrative request out, in ms.
const ADMIN_TIMEOUT_MS: i32 = 30_000;

impl Client {
    /// Creates a topic; `partitions` of none takes the server's default.
    pub async fn create_topic(
        &self,
        name: &str,
        partitions: Option<i32>,
        configs: &[(&str, &str)],
    ) -> Result<(), ClientError> {
        let configs = configs
            .iter()
            .map(|(name, value)| CreatableTopicConfig { name: (*name).into(), value: Some((*value).into()) })
            .collect();
        let topic = CreatableTopic {
            name: name.into(),
            num_partitions: partitions.unwrap_or(-1),
            replication_factor: -1,
            configs,
            ..CreatableTopic::default()
        };
        let request =
            CreateTopicsRequest { topics: vec![topic], timeout_ms: ADMIN_TIMEOUT_MS, ..Default::default() };
        let answer = self.ask(&request).await?;
        for result in &answer.topics {
            check(
                result.error_code,
                name,
                result.error_message.as_ref().map(mink_kafka_wire::KafkaString::as_str),
            )?;
        }
        Ok(())
    }

    /// Deletes a topic.
    pub async fn delete_topic(&self, name: &str) -> Result<(), ClientError> {
        let request = DeleteTopicsRequest {
            topics: vec![DeleteTopicState { name: Some(name.into()), ..DeleteTopicState::default() }],
            topic_names: vec![name.into()],
            timeout_ms: ADMIN_TIMEOUT_MS,
        };
        let answer = self.ask(&request).await?;
        for result in &answer.responses {
            check(
                result.error_code,
                name,
                result.error_message.as_ref().map(mink_kafka_wire::KafkaString::as_str),
            )?;
        }
        self.forget(name).await;
        Ok(())
    }
}
