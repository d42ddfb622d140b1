//! `cargo xtask generate-kafka`: writes the Kafka messages that mink-kafka-wire speaks.
//!
//! Lives on: a developer's machine.
//! Owns: `core/mink-kafka-wire/src/messages/` and `core/mink-kafka-wire/tests/samples/generated.rs`.
//! Invariants: the same jar gives the same bytes (nothing here iterates an unordered map or asks a clock);
//! what the schema says and this generator does not understand is an error, never skipped.

mod emit;
mod index;
mod samples;
mod schema;
mod types;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use schema::{ApiEntry, Schema};

/// The messages Mink speaks. To add an API, add its name here, run the generator, and give it a line in
/// `OFFERED` of mink-kafka-wire once a frontend answers it.
const MESSAGES: &[&str] = &[
    "Produce",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "OffsetFetch",
    "FindCoordinator",
    "JoinGroup",
    "Heartbeat",
    "LeaveGroup",
    "SyncGroup",
    "DescribeGroups",
    "ListGroups",
    "ApiVersions",
    "CreateTopics",
    "DeleteTopics",
    "DeleteRecords",
    "InitProducerId",
    "OffsetForLeaderEpoch",
    "DescribeAcls",
    "CreateAcls",
    "DeleteAcls",
    "DescribeConfigs",
    "AlterConfigs",
    "AlterReplicaLogDirs",
    "DescribeLogDirs",
    "CreatePartitions",
    "DeleteGroups",
    "ElectLeaders",
    "IncrementalAlterConfigs",
    "AlterPartitionReassignments",
    "ListPartitionReassignments",
    "OffsetDelete",
    "DescribeQuorum",
    "DescribeCluster",
    "DescribeProducers",
    "ListConfigResources",
    "DescribeTopicPartitions",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The kafka-clients jar; its `common/message/*.json` are the input
    #[arg(long, value_name = "PATH")]
    jar: PathBuf,
}

/// One request with its response, as the jar defines them.
#[derive(Debug)]
pub(crate) struct Pair {
    /// `ListOffsets`
    name: String,
    request: Schema,
    response: Schema,
}

impl Pair {
    /// The structs of the response that the request does not define already.
    fn own_structs_of_response(&self) -> impl Iterator<Item = &schema::Struct> {
        self.response.structs.iter().filter(|one| self.request.find(&one.name).is_err())
    }
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let root = workspace_root()?;
    let wire = root.join("core/mink-kafka-wire");
    let kafka_version = kafka_version(&options.jar)?;
    let apis = all_apis(&options.jar)?;
    let pairs =
        MESSAGES.iter().map(|name| read_pair(&options.jar, name)).collect::<Result<Vec<_>, String>>()?;

    let messages = wire.join("src/messages");
    if messages.exists() {
        fs::remove_dir_all(&messages).map_err(|e| format!("cannot clear {}: {e}", messages.display()))?;
    }
    for pair in &pairs {
        let text = emit::message_file(pair, &kafka_version)?;
        write_formatted(&root, &messages.join(format!("{}.rs", schema::snake_case(&pair.name))), &text)?;
    }
    write_formatted(&root, &messages.join("api_key.rs"), &index::api_key_file(&apis, &kafka_version))?;
    write_formatted(&root, &messages.join("mod.rs"), &index::index_file(&pairs, &kafka_version))?;
    let samples = samples::samples_file(&pairs, &kafka_version)?;
    write_formatted(&root, &wire.join("tests/samples/generated.rs"), &samples)?;
    println!("{} message pairs of Kafka {kafka_version} written to {}", pairs.len(), messages.display());
    Ok(())
}

fn workspace_root() -> Result<PathBuf, String> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .no_deps()
        .exec()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    Ok(metadata.workspace_root.into_std_path_buf())
}

fn read_pair(jar: &Path, name: &str) -> Result<Pair, String> {
    let read = |kind: &str| {
        let entry = format!("common/message/{name}{kind}.json");
        Schema::parse(&jar_entry(jar, &entry)?).map_err(|e| format!("{entry}: {e}"))
    };
    let mut pair = Pair { name: name.to_owned(), request: read("Request")?, response: read("Response")? };
    if pair.request.flexible != pair.response.flexible || pair.request.valid != pair.response.valid {
        return Err(format!("{name}: request and response differ in their version ranges"));
    }
    // Both live in one module: what the response calls alike but means otherwise gets a name of its own, and so does what holds it.
    while let Some(name) =
        pair.response.structs.iter().find_map(|one| {
            pair.request.find(&one.name).is_ok_and(|same| same != one).then(|| one.name.clone())
        })
    {
        pair.response.rename(&name, &format!("{name}Response"));
    }
    Ok(pair)
}

/// Every API a broker can be asked for, so that a key we do not speak can be named in a log line.
fn all_apis(jar: &Path) -> Result<Vec<ApiEntry>, String> {
    let mut apis = Vec::new();
    for entry in jar_listing(jar)? {
        if entry.starts_with("common/message/") && entry.ends_with("Request.json") {
            let text = jar_entry(jar, &entry)?;
            apis.extend(ApiEntry::parse(&text).map_err(|e| format!("{entry}: {e}"))?);
        }
    }
    apis.sort_by_key(|api| api.key);
    Ok(apis)
}

fn kafka_version(jar: &Path) -> Result<String, String> {
    let properties = jar_entry(jar, "kafka/kafka-version.properties")?;
    properties
        .lines()
        .find_map(|line| line.strip_prefix("version="))
        .map(|version| version.trim().to_owned())
        .ok_or_else(|| "the jar does not tell its version: is it a kafka-clients jar?".to_owned())
}

fn jar_listing(jar: &Path) -> Result<Vec<String>, String> {
    Ok(unzip(&["-Z1"], jar, None)?.lines().map(str::to_owned).collect())
}

fn jar_entry(jar: &Path, entry: &str) -> Result<String, String> {
    unzip(&["-p"], jar, Some(entry))
}

fn unzip(options: &[&str], jar: &Path, entry: Option<&str>) -> Result<String, String> {
    let output = Command::new("unzip")
        .args(options)
        .arg(jar)
        .args(entry)
        .output()
        .map_err(|e| format!("cannot run unzip ({e}): install it, it opens the jar"))?;
    if !output.status.success() {
        let what = entry.unwrap_or("the listing");
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("unzip cannot read {what} from {}: {}", jar.display(), why.trim()));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("{}: {e}", jar.display()))
}

/// Formats with the workspace's rustfmt settings before anything is written, so that `cargo fmt` has nothing to add.
fn write_formatted(root: &Path, path: &Path, text: &str) -> Result<(), String> {
    let formatted = rustfmt(root, text).map_err(|e| format!("{}: {e}", path.display()))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
    }
    fs::write(path, formatted).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn rustfmt(root: &Path, text: &str) -> Result<Vec<u8>, String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot run rustfmt: {e}"))?;
    let mut stdin = child.stdin.take().ok_or("rustfmt has no standard input")?;
    stdin.write_all(text.as_bytes()).map_err(|e| format!("rustfmt: {e}"))?;
    drop(stdin);
    let output = child.wait_with_output().map_err(|e| format!("rustfmt: {e}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err("rustfmt refused the generated text".to_owned())
    }
}
