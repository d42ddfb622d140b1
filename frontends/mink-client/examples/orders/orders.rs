//! What the example does; a test of a real node does the same.
//!
//! Lives on: any tokio runtime.
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use mink_client::flight::{FlightClient, Operator, Start};
use std::error::Error;
use std::sync::Arc;

/// Orders of two regions: the first number, and how many.
fn orders(first: i64, count: i64) -> Result<RecordBatch, Box<dyn Error>> {
    let numbers = first..first + count;
    let regions = numbers.clone().map(|number| if number % 3 == 0 { "us" } else { "eu" });
    let region = Arc::new(StringArray::from_iter_values(regions)) as ArrayRef;
    let id = Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef;
    Ok(RecordBatch::try_from_iter([("id", id), ("region", region)])?)
}

/// Makes a table, writes to it, reads some of it, and follows it; what came of it.
pub(crate) async fn run(address: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let client = FlightClient::connect(address).await?;
    client.sql("CREATE DATABASE IF NOT EXISTS example").await?;
    client
        .sql(
            "CREATE TABLE IF NOT EXISTS example.orders (id BIGINT NOT NULL, region STRING NOT NULL)
             PARTITIONED BY (region) WITH ('bucket.num' = '4', 'bucket.key' = 'id')",
        )
        .await?;
    let mut said = Vec::new();

    // Rows go to the partitions and buckets that their values say. Both writes are under way before either is waited for.
    let writer = client.writer("example.orders").idempotent().open().await?;
    let (first, second) = (writer.write(orders(0, 60)?).await?, writer.write(orders(60, 40)?).await?);
    let places = first.await?.len() + second.await?.len();
    said.push(format!("100 rows lie in {places} runs of offsets"));

    // One partition, by filter.
    let scan = client.scan("example.orders").columns(["id"]).partition("region", "us");
    let mut rows = scan.filter("id", Operator::Less, "30").rows();
    let mut found = 0;
    while let Some(rows) = rows.next().await {
        found += rows?.batch.num_rows();
    }
    said.push(format!("{found} orders below 30 are of the us"));

    // A tail: from here on, for as long as it is read.
    let mut tail = client.scan("example.orders").from(Start::Offset(0)).follow();
    drop(writer.write(orders(100, 10)?).await?);
    let mut followed = 0;
    while followed < 110 {
        let rows = tail.next().await.ok_or("a tail has no end")??;
        followed += rows.batch.num_rows();
    }
    said.push(format!("{followed} rows were followed"));

    // Another process goes on where this one stopped, by the writer's name: what is stored is passed over.
    let name = writer.id().ok_or("an idempotent writer has a name")?;
    writer.close().await?;
    let again = client.writer("example.orders").replay(name).open().await?;
    drop(again.write(orders(0, 60)?).await?);
    drop(again.write(orders(60, 40)?).await?);
    drop(again.write(orders(100, 20)?).await?);
    let stored: u64 = again.close().await?.iter().map(|stored| stored.rows).sum();
    said.push(format!("{stored} rows were new"));
    Ok(said)
}
