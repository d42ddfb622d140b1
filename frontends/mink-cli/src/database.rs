//! `mink db`: databases, which hold tables.
//!
//! Lives on: the command's task.
//! Talks to: a node, by SQL over Flight; by `/api/v1` if the address says so.
use crate::address::{AdminAddress, Place};
use crate::failure::Failure;
use crate::output::{OutputArgs, printer};
use crate::sql;
use clap::{Args, Subcommand};
use mink_ddl::Statement;
use mink_types::DatabaseName;
use reqwest::Method;
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(crate) struct DatabaseArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List databases
    #[command(after_help = "Example:\n  mink db list --output json")]
    List {
        #[command(flatten)]
        node: AdminAddress,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Create a database
    #[command(after_help = "Examples:\n  mink db create sales\n  mink db create sales --if-not-exists")]
    Create {
        #[arg(value_parser = name)]
        name: DatabaseName,
        /// It may be there already
        #[arg(long)]
        if_not_exists: bool,
        #[command(flatten)]
        node: AdminAddress,
    },
    /// Drop a database that has no tables
    #[command(after_help = "Examples:\n  mink db drop sales\n  mink db drop sales --if-exists")]
    Drop {
        #[arg(value_parser = name)]
        name: DatabaseName,
        /// It may be gone already
        #[arg(long)]
        if_exists: bool,
        #[command(flatten)]
        node: AdminAddress,
    },
}

fn name(text: &str) -> Result<DatabaseName, String> {
    DatabaseName::new(text).map_err(|error| error.to_string())
}

pub(crate) async fn run(args: DatabaseArgs) -> Result<(), Failure> {
    match args.verb {
        Verb::List { node, output } => {
            let mut printer = printer(output.output, &["database"])?;
            for database in list(&node).await? {
                printer.row(vec![database])?;
            }
            printer.finish()
        }
        Verb::Create { name, if_not_exists, node } => create(name, if_not_exists, &node).await,
        Verb::Drop { name, if_exists, node } => drop_database(name, if_exists, &node).await,
    }
}

/// The names of all databases.
async fn list(node: &AdminAddress) -> Result<Vec<Value>, Failure> {
    if let Place::Http(_) = node.place()? {
        let answer = node.http().await?.get("/databases").await?;
        let named = answer.as_array().into_iter().flatten().filter_map(|row| row.get("database"));
        return Ok(named.cloned().collect());
    }
    let rows = sql::rows(&node.flight().await?, &Statement::ShowDatabases.to_string()).await?;
    Ok(rows.iter().map(|row| row.value("database")).collect())
}

async fn create(name: DatabaseName, if_not_exists: bool, node: &AdminAddress) -> Result<(), Failure> {
    let Place::Http(_) = node.place()? else {
        return by_sql(node, &Statement::CreateDatabase { name, if_not_exists }).await;
    };
    let body = json!({ "name": name.as_str() });
    let made = node.http().await?.call(Method::POST, "/databases", Some(&body)).await;
    // What `/api/v1` refuses is told in words for people alone, so it is looked for.
    if made.is_err() && if_not_exists && list(node).await?.contains(&name.as_str().into()) {
        eprintln!("unchanged database {name}");
        return Ok(());
    }
    made.map_err(advised)?;
    eprintln!("created database {name}");
    Ok(())
}

async fn drop_database(name: DatabaseName, if_exists: bool, node: &AdminAddress) -> Result<(), Failure> {
    let Place::Http(_) = node.place()? else {
        return by_sql(node, &Statement::DropDatabase { name, if_exists }).await;
    };
    let dropped = node.http().await?.call(Method::DELETE, &format!("/databases/{name}"), None).await;
    if dropped.is_err() && if_exists && !list(node).await?.contains(&name.as_str().into()) {
        eprintln!("unchanged database {name}");
        return Ok(());
    }
    dropped.map_err(advised)?;
    eprintln!("dropped database {name}");
    Ok(())
}

/// What `/api/v1` says, with the flag that helps: it knows of none.
pub(crate) fn advised(failure: Failure) -> Failure {
    let advice = match failure.words() {
        words if words.ends_with("exists already") => "--if-not-exists takes it as it is",
        words if words.ends_with("does not exist") => "--if-exists does without it",
        _ => return failure,
    };
    Failure::failed(format!("{}; {advice}", failure.words()))
}

async fn by_sql(node: &AdminAddress, statement: &Statement) -> Result<(), Failure> {
    sql::tell(&sql::rows(&node.flight().await?, &statement.to_string()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: DatabaseArgs,
    }

    #[test]
    fn what_is_there_or_gone_is_told_with_the_flag_that_helps() {
        let told = |words: &str| advised(Failure::failed(words)).words().to_owned();
        assert!(told("table kafka.a exists already").ends_with("already; --if-not-exists takes it as it is"));
        assert!(told("database a does not exist").ends_with("exist; --if-exists does without it"));
        assert_eq!(told("table kafka.a: no room"), "table kafka.a: no room");
    }

    #[test]
    fn what_may_be_there_or_gone_is_said_by_a_flag() {
        let verb = |words: &[&str]| {
            let line = Line::try_parse_from(["db"].iter().chain(words)).expect("a command line");
            line.args.verb
        };
        let Verb::Create { if_not_exists, .. } = verb(&["create", "sales", "--if-not-exists"]) else {
            panic!("it creates")
        };
        let Verb::Drop { if_exists, .. } = verb(&["drop", "sales", "--if-exists"]) else {
            panic!("it drops")
        };
        assert!(if_not_exists && if_exists);
        assert!(matches!(verb(&["drop", "sales"]), Verb::Drop { if_exists: false, .. }));
        assert!(matches!(verb(&["create", "sales"]), Verb::Create { if_not_exists: false, .. }));
    }
}
