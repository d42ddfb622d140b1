//! An administrator: creates tables and drops them again while everything else goes on.
//!
//! Lives on: the simulation's thread.
//! Owns: what it was told of its tables.
//! Invariants checked: I12 (a table that was made and dropped does not come back), K-26 (a drop by id means that table alone).
use crate::clients::Clients;
use crate::history::rows;
use crate::machine::Site;
use mink_api::{AdminError, DeleteUpTo};
use mink_metadata::State;
use mink_types::schema::Schema;
use mink_types::{
    ArrowCompression, BATCH_BYTES_MAX_DEFAULT, DatabaseName, LogFormat, Offset, TableId, TableName,
    TableOptions, TablePath,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Pause after an administrative request that did not work.
const PAUSE: Duration = Duration::from_millis(300);

/// What is known of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    /// Its creation was not answered.
    Unknown,
    Made(TableId),
    /// Its drop was not answered.
    Dropping(TableId),
    Dropped,
}

/// The administrator's notes.
#[derive(Debug, Default)]
pub(crate) struct Notes(BTreeMap<String, Known>);

/// Where topics are.
pub(crate) fn database() -> Option<DatabaseName> {
    DatabaseName::new("kafka").ok()
}

fn path(name: &str) -> Option<TablePath> {
    let database = database()?;
    Some(TablePath { database, table: TableName::new(name).ok()? })
}

/// Options of a table, and its columns if it has any: some of a history's tables forget.
fn options(site: &Site, buckets: u32) -> (TableOptions, Option<Arc<Schema>>) {
    let (dice, plan) = (&site.dice, &site.plan);
    let ttl = plan.ttl.filter(|_| !dice.one_in(3));
    // Nothing is drawn for histories without such tables: their seeds stay what they were.
    let schema = (plan.typed && !dice.one_in(4)).then(rows::columns);
    let compressions = [ArrowCompression::None, ArrowCompression::Lz4, ArrowCompression::Zstd];
    let compression = schema.as_ref().and_then(|_| dice.pick(&compressions)).unwrap_or_default();
    let options = TableOptions {
        format: if schema.is_some() { LogFormat::Arrow } else { LogFormat::Kafka },
        arrow_compression: compression,
        buckets,
        log_ttl_ms: ttl.and_then(|ttl| u64::try_from(ttl.as_millis()).ok()),
        retention_bytes: plan.retention_bytes.filter(|_| dice.one_in(2)),
        batch_bytes_max: BATCH_BYTES_MAX_DEFAULT,
        ..TableOptions::default()
    };
    (options, schema)
}

/// Creates a table for good, whatever it takes.
pub(crate) async fn create(clients: &Clients, name: &str) -> TableId {
    let site = &clients.site;
    let (options, schema) = options(site, site.plan.buckets);
    loop {
        let Some((serving, path)) = site.pick().zip(path(name)) else {
            site.service.sleep(PAUSE).await;
            continue;
        };
        let (admin, options, schema) = (Arc::clone(&serving.admin), options.clone(), schema.clone());
        let made = serving.call(async move { admin.create_table(path, options, schema).await }).await;
        let id = match made {
            Some(Ok(id)) => Some(id),
            // An earlier request was carried out.
            Some(Err(AdminError::Exists { .. })) => find(&serving.admin.state(), name),
            _ => None,
        };
        if let Some(id) = id {
            let state = serving.admin.state();
            let Some(table) = state.table(id) else { continue };
            clients.begin_with(table);
            return id;
        }
        site.service.sleep(PAUSE).await;
    }
}

fn find(state: &State, name: &str) -> Option<TableId> {
    state.table_at(&path(name)?).map(|table| table.id)
}

/// Creates and drops tables until the clients stop.
pub(crate) async fn wander(clients: Clients) -> Notes {
    let (site, mut notes) = (&clients.site, Notes::default());
    for round in 0.. {
        site.service.sleep(site.dice.between(PAUSE, PAUSE * 20)).await;
        if clients.stopping() {
            break;
        }
        if site.dice.one_in(3) {
            delete_records(&clients).await;
        }
        let name = format!("passing-{round}");
        notes.round(&clients, name).await;
    }
    notes
}

/// Gives up the front of a log.
async fn delete_records(clients: &Clients) {
    let site = &clients.site;
    let Some((bucket, serving)) = clients.some_bucket().zip(site.pick()) else { return };
    let end = site.history.mark(bucket).high_watermark();
    let upto = Offset(site.dice.below(end.0 / 2 + 1));
    site.history.may_start_at(bucket, upto);
    let admin = Arc::clone(&serving.admin);
    let asked = vec![(bucket, DeleteUpTo::Offset(upto))];
    let told = serving.call(async move { admin.delete_records(asked).await }).await;
    if let Some(Ok(start)) = told.and_then(|told| told.into_iter().next()) {
        clients.know_start(bucket, start).await;
        site.history.starts_at(bucket, start);
    }
}

impl Notes {
    async fn round(&mut self, clients: &Clients, name: String) {
        let site = &clients.site;
        let Some((serving, path)) = site.pick().zip(path(&name)) else { return };
        let (admin, (options, schema)) = (Arc::clone(&serving.admin), options(site, 1));
        self.0.insert(name.clone(), Known::Unknown);
        let made = serving.call(async move { admin.create_table(path, options, schema).await }).await;
        let Some(Ok(id)) = made else { return };
        self.0.insert(name.clone(), Known::Made(id));
        let state = serving.admin.state();
        let Some(table) = state.table(id) else { return };
        clients.begin_with(table);
        let buckets: Vec<_> = table.bucket_ids().collect();
        site.service.sleep(site.dice.between(PAUSE, PAUSE * 30)).await;
        if site.dice.one_in(3) {
            return;
        }
        for bucket in &buckets {
            clients.buckets().remove(bucket);
            site.history.forget(*bucket);
        }
        let Some(serving) = site.pick() else { return };
        self.0.insert(name.clone(), Known::Dropping(id));
        let admin = Arc::clone(&serving.admin);
        if let Some(Ok(())) = serving.call(async move { admin.drop_table(id).await }).await {
            self.0.insert(name, Known::Dropped);
        }
    }

    /// Whether the state can be what these requests have made.
    pub(crate) fn check(&self, clients: &Clients, state: &State) {
        for (name, known) in &self.0 {
            let there = find(state, name);
            let possible = match known {
                Known::Unknown => true,
                Known::Made(id) => there == Some(*id),
                Known::Dropping(id) => there.is_none_or(|found| found == *id),
                Known::Dropped => there.is_none(),
            };
            if !possible {
                clients
                    .site
                    .history
                    .violated(format!("I12: table {name} is {known:?}, but is there as {there:?}"));
            }
        }
    }
}
