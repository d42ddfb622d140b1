//! The routes over a node that is only a value; the connections over real sockets.
mod connections;

use crate::{AllowedHosts, HttpNode, router};
use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use mink_api::{
    Admin, AdminError, Broker, BucketStatus, DeleteRecordsError, DeleteUpTo, Metric, MetricValue,
    NodeIdentity, NodeStatus,
};
use mink_metadata::{ConfigScope, State};
use mink_types::schema::{Literal, Schema, SchemaId};
use mink_types::{
    BucketEpoch, BucketId, BucketIndex, ClusterName, ClusterUuid, DatabaseName, Incarnation, LogIndex,
    NodeId, Offset, PartitionId, ProducerId, RowHash, TableId, TableOptions, TablePath,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

#[derive(Debug)]
struct Fake {
    not_ready: Vec<String>,
}

#[async_trait]
impl Admin for Fake {
    fn state(&self) -> State {
        State::new(ClusterUuid([7; 16]))
    }
    fn identity(&self) -> NodeIdentity {
        let cluster = ClusterName::new("mink").expect("valid");
        NodeIdentity { cluster, node: NodeId(1), incarnation: Incarnation(2) }
    }
    fn brokers(&self) -> Vec<Broker> {
        Vec::new()
    }
    async fn create_table(
        &self,
        path: TablePath,
        _: TableOptions,
        _: Option<Arc<Schema>>,
    ) -> Result<TableId, AdminError> {
        match path.table.as_str() {
            "taken" => Err(AdminError::Exists { what: format!("table {path}") }),
            _ => Ok(TableId(5)),
        }
    }
    async fn alter_table(
        &self,
        _: TableId,
        _: TableOptions,
        _: TableOptions,
        _: Option<(SchemaId, Arc<Schema>)>,
    ) -> Result<(), AdminError> {
        Err(AdminError::Stopping)
    }
    async fn create_partition(&self, _: TableId, _: Vec<Literal>) -> Result<(PartitionId, bool), AdminError> {
        Err(AdminError::Stopping)
    }
    async fn drop_partition(&self, _: TableId, _: PartitionId) -> Result<(), AdminError> {
        Err(AdminError::Stopping)
    }

    async fn alter_broker_configs(
        &self,
        _: ConfigScope,
        _: BTreeMap<String, String>,
        _: BTreeMap<String, String>,
    ) -> Result<(), AdminError> {
        Err(AdminError::Stopping)
    }

    async fn drop_table(&self, _: TableId) -> Result<(), AdminError> {
        Ok(())
    }
    async fn create_database(&self, name: DatabaseName) -> Result<(), AdminError> {
        match name.as_str() {
            "stuck" => std::future::pending().await,
            _ => Ok(()),
        }
    }
    async fn drop_database(&self, name: DatabaseName) -> Result<(), AdminError> {
        Err(AdminError::NotFound { what: format!("database {name}") })
    }
    async fn delete_records(
        &self,
        asked: Vec<(BucketId, DeleteUpTo)>,
    ) -> Vec<Result<Offset, DeleteRecordsError>> {
        asked.into_iter().map(|_| Err(AdminError::Stopping.into())).collect()
    }
    async fn wait_open(&self, _: TableId, _: Duration) -> bool {
        true
    }
    fn producer_id(&self) -> Result<ProducerId, AdminError> {
        Err(AdminError::Stopping)
    }
    async fn status(&self) -> NodeStatus {
        status(self.not_ready.clone())
    }
    async fn metrics(&self) -> Vec<Metric> {
        let requests =
            |op: &str, n| Metric::counter("mink_object_store_requests", "requests", n).label("op", op);
        let ack = MetricValue::Histogram { buckets: vec![(0.01, 3), (f64::INFINITY, 1)], sum: 0.5, count: 4 };
        vec![
            requests("put", 4),
            Metric::gauge("mink_memory_bytes", "memory", 12.0).label("part", "tail"),
            requests("get", 2),
            Metric::seconds("process_cpu_seconds", "processor time", 1.5).label("mode", "user"),
            Metric { name: "mink_append_ack_seconds", help: "acks", labels: Vec::new(), value: ack },
        ]
    }
}

fn status(not_ready: Vec<String>) -> NodeStatus {
    let bucket = BucketStatus {
        bucket: BucketId::unpartitioned(TableId(65_536), BucketIndex(1)),
        epoch: BucketEpoch(4),
        log_start: Offset(0),
        committed_end: Offset(10),
        high_watermark: Some(Offset(12)),
    };
    NodeStatus {
        node: NodeId(1),
        incarnation: Incarnation(2),
        not_ready,
        draining: false,
        lease: true,
        metadata_index: LogIndex(3),
        metadata_hash: RowHash::default(),
        untrimmed_bytes: 0,
        untrimmed_objects: 0,
        pending_deletions: 0,
        lost: Vec::new(),
        buckets: vec![bucket],
        storage: "memory://".into(),
        database: "memory".into(),
        shards: 2,
        runtime: "epoll".into(),
    }
}

async fn call(node: Fake, request: Request<Body>) -> (StatusCode, String) {
    let starting = HttpNode::starting(status(Vec::new()));
    starting.up(Arc::new(node));
    ask(&Arc::new(starting), request).await
}

async fn ask(node: &Arc<HttpNode>, request: Request<Body>) -> (StatusCode, String) {
    let router = router(Arc::clone(node), AllowedHosts::new([]));
    let response = router.oneshot(request).await.expect("infallible");
    assert!(response.headers().keys().all(|name| !name.as_str().starts_with("access-control")));
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
    (status, String::from_utf8(body.to_vec()).expect("text"))
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).expect("a request")
}

fn write(method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_owned())).expect("a request")
}

const OURS: [(&str, &str); 2] = [("host", "127.0.0.1:9180"), ("content-type", "application/json")];

fn healthy() -> Fake {
    Fake { not_ready: Vec::new() }
}

#[tokio::test]
async fn a_node_that_is_not_ready_says_why() {
    assert_eq!(call(healthy(), get("/readyz")).await, (StatusCode::OK, "ready\n".into()));
    let full = Fake { not_ready: vec!["the disk of the store is full".into()] };
    let (status, why) = call(full, get("/readyz")).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(why.contains("disk"), "{why}");
}

#[tokio::test]
async fn metrics_of_one_name_stand_together() {
    let (status, page) = call(healthy(), get("/metrics")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(page.matches("# TYPE mink_object_store_requests counter").count(), 1, "{page}");
    for line in [
        "mink_object_store_requests_total{op=\"put\"} 4",
        "mink_object_store_requests_total{op=\"get\"} 2",
        "mink_append_ack_seconds_bucket{le=\"0.01\"} 3",
        "mink_append_ack_seconds_bucket{le=\"+Inf\"} 4",
        "mink_append_ack_seconds_count 4",
        "# TYPE process_cpu_seconds counter",
        "process_cpu_seconds_total{mode=\"user\"} 1.5",
        "# TYPE mink_memory_bytes gauge",
    ] {
        assert!(page.contains(line), "{line} in\n{page}");
    }
}

#[tokio::test]
async fn a_web_page_is_no_client() {
    let body = r#"{"table":"a.b"}"#;
    for (headers, expected) in [
        (vec![("host", "127.0.0.1:9180")], StatusCode::UNSUPPORTED_MEDIA_TYPE),
        (vec![("host", "evil.example:9180"), OURS[1]], StatusCode::FORBIDDEN),
        (vec![OURS[0], OURS[1], ("origin", "http://evil.example")], StatusCode::FORBIDDEN),
        (vec![OURS[0], OURS[1], ("origin", "null")], StatusCode::FORBIDDEN),
        (vec![OURS[1]], StatusCode::FORBIDDEN),
        (OURS.to_vec(), StatusCode::CREATED),
        (vec![OURS[0], OURS[1], ("origin", "http://127.0.0.1:9180")], StatusCode::CREATED),
    ] {
        let request = write(Method::POST, "/api/v1/tables", &headers, body);
        assert_eq!(call(healthy(), request).await.0, expected, "{headers:?}");
    }
}

#[tokio::test]
async fn refusals_say_what_would_be_accepted() {
    for (method, path, body, expected, words) in [
        (Method::POST, "/api/v1/tables", r#"{"table":"orders"}"#, StatusCode::BAD_REQUEST, "DATABASE.TABLE"),
        (
            Method::POST,
            "/api/v1/tables",
            r#"{"table":"a.b","options":{"bucket.num":"0"}}"#,
            StatusCode::BAD_REQUEST,
            "bucket.num",
        ),
        (Method::POST, "/api/v1/tables", r#"{"table":"a.taken"}"#, StatusCode::CONFLICT, "a.taken"),
        (Method::DELETE, "/api/v1/tables/a/none", "", StatusCode::NOT_FOUND, "a.none"),
        (Method::DELETE, "/api/v1/databases/none", "", StatusCode::NOT_FOUND, "none"),
        (Method::POST, "/api/v1/databases", r#"{"name":"mink"}"#, StatusCode::BAD_REQUEST, "reserved"),
    ] {
        let (status, text) = call(healthy(), write(method, path, &OURS, body)).await;
        assert_eq!(status, expected, "{path} {body}: {text}");
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn status_and_metadata_are_json() {
    let (_, status) = call(healthy(), get("/api/v1/status")).await;
    assert!(status.contains(r#""wal_untrimmed_bytes":0"#), "{status}");
    assert!(status.contains(r#""committed_end":10,"high_watermark":12}"#), "{status}");
    let (_, metadata) = call(healthy(), get("/api/v1/metadata")).await;
    assert!(metadata.contains(r#""digest":""#), "{metadata}");
}

#[tokio::test]
async fn a_node_that_starts_is_alive_and_says_what_it_waits_for() {
    let node = Arc::new(HttpNode::starting(status(Vec::new())));
    node.step("waiting 9.9s for the read lease of incarnation 2");
    let step = "starting: waiting 9.9s for the read lease of incarnation 2";
    assert_eq!(ask(&node, get("/healthz")).await.0, StatusCode::OK);
    let not_ready = (StatusCode::SERVICE_UNAVAILABLE, format!("{step}\n"));
    assert_eq!(ask(&node, get("/readyz")).await, not_ready);
    let (code, text) = ask(&node, get("/api/v1/status")).await;
    assert!(code == StatusCode::OK && text.contains(step) && text.contains(r#""ready":false"#), "{text}");
    for request in [
        get("/api/v1/node"),
        get("/api/v1/metadata"),
        get("/api/v1/databases"),
        get("/api/v1/tables"),
        get("/api/v1/tables/a/b"),
        write(Method::POST, "/api/v1/tables", &OURS, r#"{"table":"a.b"}"#),
        write(Method::DELETE, "/api/v1/tables/a/b", &OURS, ""),
        write(Method::POST, "/api/v1/databases", &OURS, r#"{"name":"a"}"#),
        write(Method::DELETE, "/api/v1/databases/a", &OURS, ""),
    ] {
        let (uri, (code, text)) = (request.uri().clone(), ask(&node, request).await);
        assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE, "{uri}: {text}");
        assert!(text.contains(step), "{uri}: {text}");
    }
    node.up(Arc::new(healthy()));
    assert_eq!(ask(&node, get("/readyz")).await.0, StatusCode::OK);
    assert_eq!(ask(&node, get("/api/v1/tables")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn counters_of_other_listeners_stand_among_those_of_the_node() {
    let node = Arc::new(HttpNode::starting(status(Vec::new())));
    node.count_too(Arc::new(|| vec![Metric::counter("mink_kafka_requests", "requests", 3)]));
    let (_, page) = ask(&node, get("/metrics")).await;
    assert!(page.contains("mink_kafka_requests_total 3"), "{page}");
    node.up(Arc::new(healthy()));
    let (_, page) = ask(&node, get("/metrics")).await;
    assert!(page.contains("mink_kafka_requests_total 3") && page.contains("mink_memory_bytes"), "{page}");
}
