//! The generated files about all messages: the list of API keys, and the two enums over the messages.
//!
//! Lives on: a developer's machine.
//! Owns: nothing but the texts.

use std::fmt::Write as _;

use super::Pair;
use super::emit::header;
use super::schema::{ApiEntry, snake_case};

pub(crate) fn api_key_file(apis: &[ApiEntry], kafka_version: &str) -> String {
    let mut file = header("The APIs that Kafka clients may ask a broker for.", kafka_version);
    file.push_str(
        "\n/// An API by its key. Being listed does not mean that Mink speaks it: see `OFFERED`.\n\
         #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]\n#[repr(i16)]\npub enum ApiKey {\n",
    );
    for api in apis {
        let _ = writeln!(file, "/// Key {}.\n{} = {},", api.key, api.name, api.key);
    }
    file.push_str("}\n\nimpl ApiKey {\n/// The API of a key on the wire, if Kafka has one.\n");
    file.push_str("pub const fn from_code(code: i16) -> Option<Self> {\nSome(match code {\n");
    for api in apis {
        let _ = writeln!(file, "{} => Self::{},", api.key, api.name);
    }
    file.push_str("_ => return None,\n})\n}\n\n/// The key on the wire.\npub const fn code(self) -> i16 {\nself as i16\n}\n\n");
    file.push_str("/// The name as Kafka writes it, for logs and metrics.\npub const fn name(self) -> &'static str {\nmatch self {\n");
    for api in apis {
        let _ = writeln!(file, "Self::{} => \"{}\",", api.name, api.name);
    }
    file.push_str("}\n}\n\n");
    file.push_str(
        "/// The first version with compact lengths and tagged fields; `None` when no version has them.\n\
         pub const fn flexible_from(self) -> Option<i16> {\nmatch self {\n",
    );
    let mut thresholds: Vec<Option<i16>> = apis.iter().map(|api| api.flexible_from).collect();
    thresholds.sort_unstable();
    thresholds.dedup();
    for threshold in thresholds {
        let members: Vec<_> = apis
            .iter()
            .filter(|api| api.flexible_from == threshold)
            .map(|api| format!("Self::{}", api.name))
            .collect();
        let value = threshold.map_or_else(|| "None".to_owned(), |version| format!("Some({version})"));
        let _ = writeln!(file, "{} => {value},", members.join(" | "));
    }
    file.push_str("}\n}\n}\n");
    file
}

pub(crate) fn index_file(pairs: &[Pair], kafka_version: &str) -> String {
    let mut file = header("Every message Mink speaks, and the two enums over them.", kafka_version);
    file.push('\n');
    let mut modules: Vec<_> = pairs.iter().map(|pair| snake_case(&pair.name)).collect();
    modules.sort();
    file.push_str("mod api_key;\n");
    for module in &modules {
        let _ = writeln!(file, "pub mod {module};");
    }
    file.push_str("\npub use api_key::ApiKey;\n\nuse bytes::Bytes;\n\nuse crate::error::{DecodeError, EncodeError, Fault};\n");
    file.push_str(
        "use crate::frame::Frame;\nuse crate::header::encode_response;\nuse crate::message::Message;\n\n",
    );
    for pair in pairs {
        let module = snake_case(&pair.name);
        let (request, response) = (&pair.request.name, &pair.response.name);
        let _ = writeln!(file, "use {module}::{{{request}, {response}}};");
    }
    body_enum(&mut file, pairs, "Request");
    file.push_str(
        "\nimpl RequestBody {\n/// Decodes the bytes after the header; every byte must be used.\n///\n\
         /// Any version that the message has is decoded, offered or not: see [`crate::decode_request`].\n\
         pub fn decode(key: ApiKey, version: i16, body: Bytes) -> Result<Self, DecodeError> {\nOk(match key {\n",
    );
    for pair in pairs {
        let _ = writeln!(
            file,
            "ApiKey::{} => Self::{}({}::decode_body(version, body)?),",
            pair.name, pair.name, pair.request.name
        );
    }
    file.push_str("_ => return Err(DecodeError { message: key.name(), field: \"api_key\", fault: Fault::UnknownApi { api_key: key.code() } }),\n})\n}\n\n");
    api_key_of(&mut file, pairs);
    file.push_str("}\n");
    body_enum(&mut file, pairs, "Response");
    file.push_str(
        "\nimpl ResponseBody {\n/// Decodes the bytes after the header, as a client does; every byte must be used.\n\
         pub fn decode(key: ApiKey, version: i16, body: Bytes) -> Result<Self, DecodeError> {\nOk(match key {\n",
    );
    for pair in pairs {
        let _ = writeln!(
            file,
            "ApiKey::{} => Self::{}({}::decode_body(version, body)?),",
            pair.name, pair.name, pair.response.name
        );
    }
    file.push_str("_ => return Err(DecodeError { message: key.name(), field: \"api_key\", fault: Fault::UnknownApi { api_key: key.code() } }),\n})\n}\n\n");
    file.push_str(
        "/// The whole frame of this response: see [`encode_response`].\n\
         pub fn encode(&self, version: i16, correlation_id: i32) -> Result<Frame, EncodeError> {\nmatch self {\n",
    );
    for pair in pairs {
        let _ =
            writeln!(file, "Self::{}(body) => encode_response(version, correlation_id, body),", pair.name);
    }
    file.push_str("}\n}\n\n");
    api_key_of(&mut file, pairs);
    file.push_str("}\n");
    file
}

fn body_enum(file: &mut String, pairs: &[Pair], kind: &str) {
    let _ = writeln!(file, "\n/// A {} of any API that Mink speaks.", kind.to_lowercase());
    let _ = writeln!(file, "#[derive(Debug, Clone, PartialEq, Eq)]\npub enum {kind}Body {{");
    for pair in pairs {
        let _ = writeln!(file, "/// Key {}.\n{}({}{kind}),", pair.request.key, pair.name, pair.name);
    }
    file.push_str("}\n");
    for pair in pairs {
        let _ = write!(
            file,
            "\nimpl From<{name}{kind}> for {kind}Body {{\nfn from(body: {name}{kind}) -> Self {{\nSelf::{name}(body)\n}}\n}}\n",
            name = pair.name
        );
    }
}

fn api_key_of(file: &mut String, pairs: &[Pair]) {
    file.push_str("/// Which API this is of.\npub const fn api_key(&self) -> ApiKey {\nmatch self {\n");
    for pair in pairs {
        let _ = writeln!(file, "Self::{} (_) => ApiKey::{},", pair.name, pair.name);
    }
    file.push_str("}\n}\n");
}
