//! The schema of one Kafka message, as its JSON file gives it.
//!
//! Lives on: a developer's machine.
//! Owns: the reading of versions, types and defaults; anything it does not know is an error.

use serde::Deserialize;

/// An inclusive range of versions; empty when `min > max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) min: i16,
    pub(crate) max: i16,
}

impl Versions {
    pub(crate) const NONE: Self = Self { min: 1, max: 0 };

    fn parse(text: &str) -> Result<Self, String> {
        let number = |t: &str| t.parse::<i16>().map_err(|e| format!("versions {text:?}: {e}"));
        if text == "none" {
            Ok(Self::NONE)
        } else if let Some(min) = text.strip_suffix('+') {
            Ok(Self { min: number(min)?, max: i16::MAX })
        } else if let Some((min, max)) = text.split_once('-') {
            Ok(Self { min: number(min)?, max: number(max)? })
        } else {
            Ok(Self { min: number(text)?, max: number(text)? })
        }
    }

    pub(crate) fn intersect(self, other: Self) -> Self {
        Self { min: self.min.max(other.min), max: self.max.min(other.max) }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.min > self.max
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        other.is_empty() || (self.min <= other.min && other.max <= self.max)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = i16> {
        self.min..=self.max
    }

    /// How a reader would say it: `3`, `3 and up`, `0 to 7`.
    pub(crate) fn in_words(self) -> String {
        if self.max == i16::MAX {
            format!("{} and up", self.min)
        } else if self.min == self.max {
            self.min.to_string()
        } else {
            format!("{} to {}", self.min, self.max)
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Int64,
    Uuid,
    String,
    Bytes,
    Records,
    Struct(String),
    Array(Box<Type>),
}

impl Type {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "bool" => Self::Bool,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "uint16" => Self::Uint16,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "uuid" => Self::Uuid,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "records" => Self::Records,
            _ => match text.strip_prefix("[]") {
                Some(element) => Self::Array(Box::new(Self::parse(element)?)),
                None if text.starts_with(|c: char| c.is_ascii_uppercase()) => Self::Struct(text.to_owned()),
                None => return Err(format!("type {text:?} is not known to this generator yet")),
            },
        })
    }

    fn rename(&mut self, from: &str, to: &str) {
        match self {
            Self::Struct(name) if name == from => to.clone_into(name),
            Self::Array(element) => element.rename(from, to),
            _ => {}
        }
    }

    /// The struct that this type is, or is an array of.
    pub(crate) fn struct_name(&self) -> Option<&str> {
        match self {
            Self::Struct(name) => Some(name),
            Self::Array(element) => element.struct_name(),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    /// snake_case
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) versions: Versions,
    pub(crate) nullable: Versions,
    /// Tag and the versions in which the field is tagged.
    pub(crate) tag: Option<u32>,
    /// As written in the JSON, or none.
    pub(crate) default: Option<String>,
    /// Whether a sender may leave a set field out at versions that do not have it.
    pub(crate) ignorable: bool,
}

/// One struct of a message: the message itself or one nested in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Struct {
    pub(crate) name: String,
    /// The versions in which it can occur.
    pub(crate) versions: Versions,
    pub(crate) fields: Vec<Field>,
}

#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) key: i16,
    pub(crate) name: String,
    pub(crate) valid: Versions,
    pub(crate) flexible: Versions,
    /// The message first, then its structs in the order of their first use.
    pub(crate) structs: Vec<Struct>,
}

impl Schema {
    pub(crate) fn parse(json: &str) -> Result<Self, String> {
        let raw = RawMessage::parse(json)?;
        let valid = Versions::parse(&raw.valid_versions)?;
        let flexible = Versions::parse(&raw.flexible_versions)?.intersect(valid);
        let mut schema = Self {
            key: raw.api_key.ok_or("no apiKey")?,
            name: raw.name.clone(),
            valid,
            flexible,
            structs: Vec::new(),
        };
        schema.add_struct(&raw.name, valid, &raw.fields, &raw.common_structs)?;
        Ok(schema)
    }

    fn add_struct(
        &mut self,
        name: &str,
        versions: Versions,
        raw_fields: &[RawField],
        common: &[RawStruct],
    ) -> Result<(), String> {
        if let Some(known) = self.structs.iter().find(|known| known.name == name) {
            // A shared struct that occurs in the same versions wherever it is used is one struct.
            if known.versions == versions && common.iter().any(|shared| shared.name == name) {
                return Ok(());
            }
            return Err(format!("struct {name} is used twice: widen its versions in the generator first"));
        }
        let fields = raw_fields
            .iter()
            .map(|raw| raw.resolve(versions, self.flexible).map_err(|e| format!("{name}.{}: {e}", raw.name)))
            .collect::<Result<Vec<_>, String>>()?;
        let index = self.structs.len();
        self.structs.push(Struct { name: name.to_owned(), versions, fields: Vec::new() });
        for (field, raw) in fields.iter().zip(raw_fields) {
            let Some(nested) = field.ty.struct_name().filter(|_| !field.versions.is_empty()) else {
                continue;
            };
            let raw_nested = if raw.fields.is_empty() {
                let shared = common.iter().find(|candidate| candidate.name == nested);
                &shared.ok_or_else(|| format!("struct {nested} is not defined"))?.fields
            } else {
                &raw.fields
            };
            self.add_struct(nested, field.versions, raw_nested, common)?;
        }
        let present = fields.into_iter().filter(|field| !field.versions.is_empty()).collect();
        if let Some(slot) = self.structs.get_mut(index) {
            slot.fields = present;
        }
        Ok(())
    }

    /// Gives a struct another name, here and in the fields that are of it.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        for one in &mut self.structs {
            if one.name == from {
                to.clone_into(&mut one.name);
            }
            for field in &mut one.fields {
                field.ty.rename(from, to);
            }
        }
    }

    pub(crate) fn find(&self, name: &str) -> Result<&Struct, String> {
        self.structs.iter().find(|known| known.name == name).ok_or_else(|| format!("no struct {name}"))
    }

    /// The fewest bytes `ty` takes at `version`; what bounds an array's count by the bytes that are left.
    fn size_min(&self, ty: &Type, version: i16) -> Result<usize, String> {
        let flexible = self.flexible.covers(Versions { min: version, max: version });
        Ok(match ty {
            Type::Bool | Type::Int8 => 1,
            Type::Int16 | Type::Uint16 => 2,
            Type::Int32 => 4,
            Type::Int64 => 8,
            Type::Uuid => 16,
            Type::String => {
                if flexible {
                    1
                } else {
                    2
                }
            }
            Type::Bytes | Type::Records | Type::Array(_) => {
                if flexible {
                    1
                } else {
                    4
                }
            }
            Type::Struct(name) => {
                let mut size = usize::from(flexible);
                for field in self.find(name)?.fields.iter().filter(|field| field.tag.is_none()) {
                    if field.versions.covers(Versions { min: version, max: version }) {
                        // A nullable struct begins with a byte that says whether it is there.
                        let nullable = !field.nullable.is_empty() && matches!(field.ty, Type::Struct(_));
                        size += if nullable { 1 } else { self.size_min(&field.ty, version)? };
                    }
                }
                size
            }
        })
    }

    /// The smallest of [`Self::size_min`] over `versions`, at least 1.
    pub(crate) fn size_min_over(&self, ty: &Type, versions: Versions) -> Result<usize, String> {
        let mut smallest = usize::MAX;
        for version in versions.iter() {
            smallest = smallest.min(self.size_min(ty, version)?);
        }
        Ok(smallest.max(1))
    }
}

/// Key, name and flexible versions of one API that brokers serve.
#[derive(Debug)]
pub(crate) struct ApiEntry {
    pub(crate) key: i16,
    pub(crate) name: String,
    pub(crate) flexible_from: Option<i16>,
}

impl ApiEntry {
    /// None when the file defines something that clients of a broker cannot send.
    pub(crate) fn parse(json: &str) -> Result<Option<Self>, String> {
        let raw = RawMessage::parse(json)?;
        let (Some(key), Some(name)) = (raw.api_key, raw.name.strip_suffix("Request")) else {
            return Ok(None);
        };
        if !raw.listeners.iter().any(|listener| listener == "broker") {
            return Ok(None);
        }
        let flexible = Versions::parse(&raw.flexible_versions)?;
        let flexible_from = (!flexible.is_empty()).then_some(flexible.min);
        Ok(Some(Self { key, name: name.to_owned(), flexible_from }))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawMessage {
    api_key: Option<i16>,
    #[serde(rename = "type")]
    _kind: String,
    #[serde(default)]
    listeners: Vec<String>,
    name: String,
    valid_versions: String,
    #[serde(default = "no_versions")]
    flexible_versions: String,
    #[serde(rename = "latestVersionUnstable")]
    _latest_version_unstable: Option<bool>,
    #[serde(default)]
    fields: Vec<RawField>,
    #[serde(default)]
    common_structs: Vec<RawStruct>,
}

impl RawMessage {
    fn parse(json: &str) -> Result<Self, String> {
        serde_json::from_str(&without_comments(json)).map_err(|e| e.to_string())
    }
}

#[derive(Debug, Deserialize)]
struct RawStruct {
    name: String,
    fields: Vec<RawField>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawField {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    versions: Option<String>,
    nullable_versions: Option<String>,
    tagged_versions: Option<String>,
    flexible_versions: Option<String>,
    tag: Option<u32>,
    default: Option<serde_json::Value>,
    #[serde(default)]
    ignorable: bool,
    #[serde(default)]
    fields: Vec<RawField>,
    #[serde(rename = "about")]
    _about: Option<String>,
    #[serde(rename = "entityType")]
    _entity_type: Option<String>,
    #[serde(rename = "mapKey")]
    _map_key: Option<bool>,
    #[serde(rename = "zeroCopy")]
    _zero_copy: Option<bool>,
}

impl RawField {
    fn resolve(&self, parent: Versions, flexible: Versions) -> Result<Field, String> {
        let parse = |text: &Option<String>| text.as_deref().map_or(Ok(Versions::NONE), Versions::parse);
        let versions = parse(&self.versions)?.intersect(parent);
        let tagged = parse(&self.tagged_versions)?.intersect(versions);
        if self.flexible_versions.is_some() {
            return Err(
                "a field with flexible versions of its own is not known to this generator yet".to_owned()
            );
        }
        if self.tag.is_some() && (tagged != versions || !flexible.covers(versions)) {
            return Err("a field that is tagged at some of its versions only is not known yet".to_owned());
        }
        let ty = Type::parse(&self.ty)?;
        let nullable = parse(&self.nullable_versions)?.intersect(versions);
        let null_by_default = self.default.as_ref().is_some_and(|default| default == "null");
        if matches!(ty, Type::Struct(_)) && !nullable.is_empty() && (self.tag.is_some() || !null_by_default) {
            return Err(
                "a nullable struct that is tagged, or not null by default, is not known yet".to_owned()
            );
        }
        if self.tag.is_some() && ty == Type::Records {
            return Err("tagged records are not known to this generator yet".to_owned());
        }
        let name = snake_case(&self.name);
        if ["reader", "writer", "version", "tagged", "self", "type", "match"].contains(&name.as_str()) {
            return Err("the name clashes with one of the generated code".to_owned());
        }
        let default = self.default.as_ref().map(|value| match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        Ok(Field { name, ty, versions, nullable, tag: self.tag, default, ignorable: self.ignorable })
    }
}

fn no_versions() -> String {
    "none".to_owned()
}

/// Kafka's definitions are JSON with `//` comments; strings may hold `//` themselves.
fn without_comments(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for line in json.lines() {
        let mut in_string = false;
        let mut previous = ' ';
        let mut end = line.len();
        for (at, c) in line.char_indices() {
            if c == '"' && previous != '\\' {
                in_string = !in_string;
            }
            if !in_string && c == '/' && previous == '/' {
                end = at - 1;
                break;
            }
            previous = c;
        }
        plain.push_str(line.get(..end).unwrap_or(line));
        plain.push('\n');
    }
    plain
}

/// `ThrottleTimeMs` to `throttle_time_ms`, `Enable2Pc` to `enable2_pc`.
pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for (at, c) in name.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_slashes_in_strings_stay() {
        let json = "{ // first\n \"a\": \"http://x\", // last\n\"b\": 1 }";
        let value: serde_json::Value = serde_json::from_str(&without_comments(json)).unwrap();
        assert_eq!(value["a"], "http://x");
        assert_eq!(value["b"], 1);
    }

    #[test]
    fn an_unknown_property_is_refused_rather_than_skipped() {
        let json = r#"{"apiKey": 1, "type": "request", "name": "XRequest", "validVersions": "0",
            "fields": [{"name": "A", "type": "int8", "versions": "0+", "novelty": true}]}"#;
        assert!(Schema::parse(json).unwrap_err().contains("novelty"));
    }

    #[test]
    fn versions_read_as_kafka_writes_them() {
        assert_eq!(Versions::parse("3").unwrap(), Versions { min: 3, max: 3 });
        assert_eq!(Versions::parse("3+").unwrap(), Versions { min: 3, max: i16::MAX });
        assert_eq!(Versions::parse("0-7").unwrap(), Versions { min: 0, max: 7 });
        assert!(Versions::parse("none").unwrap().is_empty());
        assert!(Versions::parse("3x").is_err());
    }
}
