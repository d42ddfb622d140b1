//! Administration under `/api/v1`: one handler per route, JSON in and out.
//!
//! Lives on: the service runtime.
use crate::node::NotUp;
use crate::routes::Node;
use crate::view::{NodeView, StatusView, TableView, ends};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use mink_api::AdminError;
use mink_types::{DatabaseName, Limits, NameError, RowHash, TableName, TableOptions, TablePath};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A refusal as HTTP shows it.
#[derive(Debug)]
pub(crate) struct Failure(StatusCode, String);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

/// The one place where an administrative error becomes an HTTP status.
impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Failure {
        let status = match error {
            AdminError::Exists { .. } | AdminError::Conflict { .. } => StatusCode::CONFLICT,
            AdminError::NotFound { .. } => StatusCode::NOT_FOUND,
            AdminError::Invalid { .. } | AdminError::Limit { .. } => StatusCode::BAD_REQUEST,
            AdminError::Throttled { .. } => StatusCode::TOO_MANY_REQUESTS,
            AdminError::Unavailable { .. } | AdminError::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        };
        Failure(status, error.to_string())
    }
}

impl From<NotUp> for Failure {
    fn from(error: NotUp) -> Failure {
        Failure(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Failure {
        Failure(StatusCode::BAD_REQUEST, error.to_string())
    }
}

fn no_table(path: &TablePath) -> Failure {
    Failure(StatusCode::NOT_FOUND, format!("table {path} does not exist"))
}

pub(crate) async fn status(State(node): State<Node>) -> Json<StatusView> {
    Json(node.status().await.into())
}

pub(crate) async fn metadata(State(node): State<Node>) -> Result<Json<Value>, Failure> {
    let node = node.admin()?;
    let state = node.state();
    let witness = state.witness();
    Ok(Json(json!({
        "cluster": node.identity().cluster.as_str(),
        "cluster_uuid": state.cluster().to_string(),
        "index": witness.index.0,
        "hash": witness.hash.to_string(),
        "digest": RowHash(state.digest()).to_string(),
        "feature_level": state.feature_level(),
        "tables": state.tables().count(),
        "buckets": state.bucket_count(),
        "objects": state.objects().count(),
        "pending_deletions": state.doomed().count(),
    })))
}

/// Who the node is, and where clients find its listeners; an empty address stands for one that is off.
pub(crate) async fn node(State(node): State<Node>) -> Result<Json<NodeView>, Failure> {
    let admin = node.admin()?;
    let (identity, state) = (admin.identity(), admin.state());
    let life = state
        .incarnation(identity.incarnation)
        .ok_or_else(|| NotUp { step: "it has yet to read of its own registration".into() })?;
    Ok(Json(NodeView::new(&identity, life)))
}

pub(crate) async fn databases(State(node): State<Node>) -> Result<Json<Value>, Failure> {
    let state = node.admin()?.state();
    let shown = state.databases().filter(|database| !database.name.is_internal());
    Ok(Json(shown.map(|database| json!({ "database": database.name.as_str() })).collect()))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewDatabase {
    name: String,
}

pub(crate) async fn create_database(
    State(node): State<Node>,
    Json(new): Json<NewDatabase>,
) -> Result<StatusCode, Failure> {
    node.admin()?.create_database(DatabaseName::new(&new.name)?).await?;
    Ok(StatusCode::CREATED)
}

pub(crate) async fn drop_database(
    State(node): State<Node>,
    Path(database): Path<String>,
) -> Result<StatusCode, Failure> {
    node.admin()?.drop_database(DatabaseName::new(&database)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn tables(State(node): State<Node>) -> Result<Json<Vec<TableView>>, Failure> {
    let admin = node.admin()?;
    let (state, ends) = (admin.state(), ends(&admin.status().await));
    // Nobody creates, reads or drops the internal ones.
    let shown = state.tables().filter(|table| !table.path.database.is_internal());
    Ok(Json(shown.map(|table| TableView::new(&state, table, &ends)).collect()))
}

fn path(database: &str, table: &str) -> Result<TablePath, NameError> {
    Ok(TablePath { database: DatabaseName::new(database)?, table: TableName::new(table)? })
}

pub(crate) async fn table(
    State(node): State<Node>,
    Path((database, table)): Path<(String, String)>,
) -> Result<Json<TableView>, Failure> {
    let (admin, path) = (node.admin()?, path(&database, &table)?);
    let (state, ends) = (admin.state(), ends(&admin.status().await));
    let table = state.table_at(&path).ok_or_else(|| no_table(&path))?;
    Ok(Json(TableView::new(&state, table, &ends)))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTable {
    table: String,
    #[serde(default)]
    options: BTreeMap<String, String>,
}

pub(crate) async fn create_table(
    State(node): State<Node>,
    Json(new): Json<NewTable>,
) -> Result<(StatusCode, Json<Value>), Failure> {
    let path = TablePath::parse(&new.table)?;
    let (mut options, limits) = (TableOptions::default(), Limits::default());
    for (name, value) in &new.options {
        options
            .set(name, value, &limits)
            .map_err(|error| Failure(StatusCode::BAD_REQUEST, error.to_string()))?;
    }
    options.check().map_err(|error| Failure(StatusCode::BAD_REQUEST, error.to_string()))?;
    let id = node.admin()?.create_table(path, options, None).await?;
    Ok((StatusCode::CREATED, Json(json!({ "id": id.0 }))))
}

pub(crate) async fn drop_table(
    State(node): State<Node>,
    Path((database, table)): Path<(String, String)>,
) -> Result<StatusCode, Failure> {
    let path = path(&database, &table)?;
    let node = node.admin()?;
    let id = node.state().table_at(&path).map(|table| table.id).ok_or_else(|| no_table(&path))?;
    node.drop_table(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
