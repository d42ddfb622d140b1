//! Which statement a text is, and those that are short.
//!
//! Lives on: anywhere (pure).
use crate::error::ParseError;
use crate::parser::Parser;
use crate::statement::Statement;
use mink_types::DatabaseName;

/// What a statement may begin with, and where to go for what newcomers try first.
const STATEMENTS: &str = "CREATE, DROP or ALTER; SHOW DATABASES, TABLES, PARTITIONS or CREATE TABLE; DESCRIBE; USE \
     (rows are read by `mink read` or DoGet and written by `mink write` or DoPut)";

/// Parses one statement, with or without a `;` at its end. A table without a database is of the default one, or refused.
///
/// ```
/// let statement = mink_ddl::parse("drop table if exists sales.orders purge;", None)?;
/// assert_eq!(statement.to_string(), "DROP TABLE IF EXISTS sales.orders PURGE");
///
/// let error = mink_ddl::parse("DROP TABLE orders", None).expect_err("no database");
/// assert_eq!((error.line, error.column), (1, 12));
/// # Ok::<(), mink_ddl::ParseError>(())
/// ```
pub fn parse(text: &str, default_database: Option<&DatabaseName>) -> Result<Statement, ParseError> {
    let mut parser = Parser::new(text, default_database)?;
    if parser.take_word("CREATE") {
        parser.create()
    } else if parser.take_word("DROP") {
        parser.drop()
    } else if parser.take_word("ALTER") {
        parser.word("TABLE")?;
        parser.alter_table()
    } else if parser.take_word("SHOW") {
        parser.show()
    } else if parser.take_word("DESCRIBE") || parser.take_word("DESC") {
        parser.take_word("TABLE");
        let path = parser.table_path()?;
        parser.end("the end of the statement")?;
        Ok(Statement::Describe { path })
    } else if parser.take_word("USE") {
        let name = parser.database_name()?;
        parser.end("the end of the statement")?;
        Ok(Statement::Use { name })
    } else {
        Err(parser.expected(STATEMENTS))
    }
}

impl Parser<'_> {
    fn create(&mut self) -> Result<Statement, ParseError> {
        if self.take_word("TABLE") {
            return self.create_table();
        }
        if !self.take_word("DATABASE") {
            return Err(self.expected("DATABASE or TABLE"));
        }
        let if_not_exists = self.take_words(&["IF", "NOT", "EXISTS"])?;
        let name = self.database_name()?;
        self.end("the end of the statement")?;
        Ok(Statement::CreateDatabase { name, if_not_exists })
    }

    fn drop(&mut self) -> Result<Statement, ParseError> {
        if self.take_word("TABLE") {
            let if_exists = self.take_words(&["IF", "EXISTS"])?;
            let path = self.table_path()?;
            let purge = self.take_word("PURGE");
            self.end(if purge { "the end of the statement" } else { "PURGE or the end of the statement" })?;
            return Ok(Statement::DropTable { path, if_exists, purge });
        }
        if !self.take_word("DATABASE") {
            return Err(self.expected("DATABASE or TABLE"));
        }
        let if_exists = self.take_words(&["IF", "EXISTS"])?;
        let name = self.database_name()?;
        self.end("the end of the statement")?;
        Ok(Statement::DropDatabase { name, if_exists })
    }

    fn show(&mut self) -> Result<Statement, ParseError> {
        let statement = if self.take_word("DATABASES") {
            Statement::ShowDatabases
        } else if self.take_word("TABLES") {
            let named = self.take_word("FROM") || self.take_word("IN");
            let database = if named { Some(self.database_name()?) } else { None };
            Statement::ShowTables { database }
        } else if self.take_word("PARTITIONS") {
            Statement::ShowPartitions { path: self.table_path()? }
        } else if self.take_words(&["CREATE", "TABLE"])? {
            Statement::ShowCreateTable { path: self.table_path()? }
        } else {
            return Err(self.expected("DATABASES, TABLES, PARTITIONS or CREATE TABLE"));
        };
        let open = matches!(statement, Statement::ShowTables { database: None });
        self.end(if open { "FROM, or the end of the statement" } else { "the end of the statement" })?;
        Ok(statement)
    }
}
