//! A table from its creation to a tail of it, over Arrow Flight: `cargo run -p mink-client --example orders 127.0.0.1:9123`.
//!
//! Lives on: a runtime of its own.
mod orders;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9123".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for line in runtime.block_on(orders::run(&address))? {
        println!("{line}");
    }
    Ok(())
}
