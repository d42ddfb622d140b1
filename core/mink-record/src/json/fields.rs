//! Columns with names: those of a table, of a ROW, and the two of a MAP's entries.
//!
//! Lives on: anywhere (pure).
//! Invariants: a field is known by its name, in any order; one that comes where it came last time costs one comparison.
use super::column::{Column, Held};
use super::error::{JsonError, named, quoted};
use super::text::Text;
use mink_types::schema::{Field, Literal};
use std::cmp::Ordering;

/// How many names an error lists.
const LISTED_MAX: usize = 12;

#[derive(Debug)]
pub(super) struct Fields {
    pub(super) columns: Vec<Named>,
    /// Places of the columns, by their names.
    sorted: Vec<usize>,
    /// What one entry of each takes, together.
    width: usize,
}

#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: String,
    /// The name in quotes, if it needs no escapes: then the bytes of a text can be compared with it.
    plain: Option<String>,
    default: Option<Literal>,
    pub(super) column: Column,
}

/// What an object is read for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// Entries of each column before the row.
    pub(super) base: usize,
    /// Places of columns that another object has given already.
    pub(super) given: &'a [usize],
    /// Places of the columns that it may have, if not all.
    pub(super) only: Option<&'a [usize]>,
}

impl Part<'_> {
    /// A row in one object.
    pub(super) fn whole(base: usize) -> Part<'static> {
        Part { base, given: &[], only: None }
    }
}

impl Fields {
    pub(super) fn new<'a>(fields: impl IntoIterator<Item = &'a Field>) -> Fields {
        let columns: Vec<Named> = fields
            .into_iter()
            .map(|field| Named {
                name: field.name.clone(),
                plain: Some(format!("\"{}\"", field.name)).filter(|_| !field.name.contains(['"', '\\'])),
                default: field.default.clone(),
                column: Column::new(field),
            })
            .collect();
        let mut sorted: Vec<(String, usize)> =
            columns.iter().enumerate().map(|(place, named)| (named.name.clone(), place)).collect();
        sorted.sort_unstable();
        let width = columns.iter().map(|named| named.column.width).sum();
        Fields { columns, sorted: sorted.into_iter().map(|(_, place)| place).collect(), width }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Reads the fields of an object, each into its column. Those that are missing stay so.
    pub(super) fn read(
        &mut self,
        text: &mut Text<'_>,
        held: &mut Held,
        part: Part<'_>,
    ) -> Result<(), JsonError> {
        text.expect(b'{', "an object")?;
        if text.empty(b'}') {
            return Ok(());
        }
        let mut likely = 0;
        loop {
            let place = self.place(text, likely)?;
            let Some(named) = self.columns.get_mut(place) else {
                return Err(text.unexpected("a known field"));
            };
            if part.only.is_some_and(|only| !only.contains(&place)) {
                return Err(
                    JsonError::field("no key column; send it in the record's value").below(&named.name)
                );
            }
            if named.column.len() > part.base + usize::from(part.given.contains(&place)) {
                return Err(JsonError::field("named twice; use each name once").below(&named.name));
            }
            text.expect(b':', "a colon")?;
            named.column.read(text, held).map_err(|error| error.below(&named.name))?;
            if !text.more(b'}', "a comma or the object's end")? {
                return Ok(());
            }
            likely = place + 1;
        }
    }

    /// Goes over a name; gives the place of its column, which is likely this one.
    fn place(&self, text: &mut Text<'_>, likely: usize) -> Result<usize, JsonError> {
        text.peek();
        let plain = self.columns.get(likely).and_then(|named| named.plain.as_deref());
        if let Some(plain) = plain.filter(|plain| text.rest().starts_with(plain.as_bytes())) {
            text.skip(plain.len());
            return Ok(likely);
        }
        let name = text.string()?;
        let name_at = |place: &usize| self.columns.get(*place).map_or("", |named| named.name.as_str());
        match self.sorted.binary_search_by(|place| name_at(place).cmp(&name)) {
            Ok(found) => self.sorted.get(found).copied().ok_or_else(|| self.unknown(&name)),
            Err(_) => Err(self.unknown(&name)),
        }
    }

    fn unknown(&self, name: &str) -> JsonError {
        let mut names = self.columns.iter().map(|known| named(&known.name));
        let mut list = names.by_ref().take(LISTED_MAX).collect::<Vec<_>>().join(", ");
        if names.next().is_some() {
            list.push_str(", …");
        }
        JsonError::field(format!("there is no field {}; use {list}", quoted(name)))
    }

    /// Gives the columns that the row did not name their default, or null.
    pub(super) fn fill(&mut self, base: usize, held: &mut Held) -> Result<(), JsonError> {
        for Named { name, default, column, .. } in &mut self.columns {
            if column.len() > base {
                continue;
            }
            match default {
                Some(literal) => column.append_literal(literal, held).map_err(|error| error.below(name))?,
                None if column.nullable => column.append_null(),
                None => {
                    let message = format!(
                        "missing, but it is NOT NULL and has no default; use {}",
                        column.values.accepted()
                    );
                    return Err(JsonError::field(message).below(name));
                }
            }
        }
        Ok(())
    }

    /// Of a column that both parts of a row have given: that they are the same. One of them is kept.
    pub(super) fn agree(&mut self, place: usize, base: usize) -> Result<(), JsonError> {
        let Some(Named { name, column, .. }) = self.columns.get_mut(place) else { return Ok(()) };
        if column.len() == base + 2 {
            if column.compare(base, base + 1).is_ne() {
                let message = "the record's key and its value have different values; send the same, or one";
                return Err(JsonError::field(message).below(name));
            }
            column.truncate(base + 1);
        }
        Ok(())
    }

    pub(super) fn append_unseen(&mut self) {
        for named in &mut self.columns {
            named.column.append_unseen();
        }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        for named in &mut self.columns {
            named.column.truncate(len);
        }
    }

    pub(super) fn compare(&self, a: usize, b: usize) -> Ordering {
        let orders = self.columns.iter().map(|named| named.column.compare(a, b));
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}
