//! What stays from one statement to the next: the database that names without one are of. The node keeps none: it is given whole names.
//!
//! Lives on: anywhere (pure).
use super::row::Row;
use mink_ddl::{Statement, parse};
use mink_types::DatabaseName;
use serde_json::Value;
use std::borrow::Cow;

/// Statements that follow each other.
#[derive(Debug, Default)]
pub(crate) struct Session {
    database: Option<DatabaseName>,
}

/// What is to be done for a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step<'a> {
    /// The node is to run this.
    Send(Cow<'a, str>),
    /// The session goes over to a database, if there is such.
    Use(DatabaseName),
}

impl Session {
    pub(super) fn database(&self) -> Option<&DatabaseName> {
        self.database.as_ref()
    }

    /// What a statement means here. What does not parse is sent as it is: a newer node may know it, any other says what is wrong.
    pub(super) fn step<'a>(&self, text: &'a str) -> Step<'a> {
        match (parse(text, self.database()), self.database()) {
            (Ok(Statement::Use { name }), _) => Step::Use(name),
            (Ok(Statement::ShowTables { database: None }), Some(database)) => {
                Step::Send(tables_of(database).into())
            }
            (Ok(statement), Some(_)) => Step::Send(statement.to_string().into()),
            _ => Step::Send(text.into()),
        }
    }

    /// From here on names without a database are of this one; what is told of that.
    pub(super) fn goes_over(&mut self, database: DatabaseName) -> Vec<Row> {
        let told = Row::of([("result", "using".into()), ("database", Value::from(database.as_str()))]);
        self.database = Some(database);
        vec![told]
    }
}

/// A statement that fails where there is no such database.
pub(super) fn tables_of(database: &DatabaseName) -> String {
    Statement::ShowTables { database: Some(database.clone()) }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(session: &Session, text: &str) -> String {
        match session.step(text) {
            Step::Send(text) => text.into_owned(),
            Step::Use(name) => panic!("{text}: goes over to {name}"),
        }
    }

    #[test]
    fn names_without_a_database_are_of_the_one_in_use_and_others_stay() {
        let mut session = Session::default();
        assert_eq!(sent(&session, "DESCRIBE  orders"), "DESCRIBE  orders", "sent as it is");
        let Step::Use(name) = session.step("use sales;") else { panic!("USE is for the session") };
        assert_eq!(session.goes_over(name)[0].to_value()["result"], "using");
        for (typed, whole) in [
            ("DESCRIBE  orders", "DESCRIBE sales.orders"),
            ("DROP TABLE other.orders", "DROP TABLE other.orders"),
            ("SHOW TABLES", "SHOW TABLES FROM sales"),
            ("SHOW TABLES IN other", "SHOW TABLES FROM other"),
            ("SHOW DATABASES", "SHOW DATABASES"),
            ("EXPLAIN orders", "EXPLAIN orders"),
        ] {
            assert_eq!(sent(&session, typed), whole);
        }
        let Step::Use(name) = session.step("USE \"my-db\"") else { panic!("USE is for the session") };
        session.goes_over(name);
        assert_eq!(sent(&session, "SHOW TABLES"), "SHOW TABLES FROM \"my-db\"");
    }
}
