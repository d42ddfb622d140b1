#!/usr/bin/env node
// Produces the flights with kafkajs; reading back is confluent_client.py's part, because kafkajs reads through groups only.
// Same command line as its neighbours (README.md). Needs MINK_NODE_MODULES and MINK_PYTHON, which `run` sets.

import { execFileSync, spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(join(process.env.MINK_NODE_MODULES, "/"));
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require("kafkajs");
CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");

const NUMBERS = new Set(["flight", "dep_delay", "arr_delay", "air_time", "distance"]);
// kafkajs brings no codec of its own for lz4 and zstd.
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy };
// Records of one send: kafkajs has no linger, a send is one request per broker.
const RECORDS_PER_SEND = 2000;

function fail(text, code = 1) {
  console.error(`kafkajs: ${text}`);
  process.exit(code);
}

function records(count) {
  const csv = execFileSync(process.env.MINK_PYTHON, [join(here, "flights.py"), "csv"], { maxBuffer: 1 << 26 });
  const [head, ...rows] = csv.toString().trimEnd().split("\n");
  const columns = head.split(",");
  if (!(count > 0 && count <= rows.length)) fail(`--count must lie in 1..${rows.length}`, 2);
  return rows.slice(0, count).map((line) => {
    const row = {};
    line.split(",").forEach((text, at) => {
      row[columns[at]] = text === "" ? null : NUMBERS.has(columns[at]) ? Number(text) : text;
    });
    return {
      key: row.tailnum,
      value: JSON.stringify(row),
      headers: { carrier: row.carrier, origin: row.origin },
      timestamp: String(Date.parse(row.time_hour)),
    };
  });
}

async function produce(options, all) {
  const kafka = new Kafka({ brokers: [options.bootstrap], clientId: "mink-test", logLevel: logLevel.ERROR });
  if (options.partitions) {
    const admin = kafka.admin();
    await admin.connect();
    const made = await admin.createTopics({
      topics: [{ topic: options.topic, numPartitions: Number(options.partitions), replicationFactor: 1 }],
    });
    await admin.disconnect();
    if (!made) fail(`topic ${options.topic} is there already`);
  }
  if (options.operation === "create") return;
  const producer = kafka.producer({
    idempotent: options.idempotent,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: true,
  });
  await producer.connect();
  for (let at = 0; at < all.length; at += RECORDS_PER_SEND) {
    await producer.send({
      topic: options.topic,
      acks: -1,
      compression: CODECS[options.codec],
      messages: all.slice(at, at + RECORDS_PER_SEND),
    });
  }
  await producer.disconnect();
}

function readBack(options, seconds) {
  const args = ["consume", "--bootstrap", options.bootstrap, "--topic", options.topic, "--count", options.count];
  args.push("--timeout", String(seconds));
  const client = join(here, "confluent_client.py");
  const done = spawnSync(process.env.MINK_PYTHON, [client, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  if (done.status !== 0) fail("reading back failed");
  return JSON.parse(done.stdout.toString());
}

const parsed = parseArgs({
  allowPositionals: true,
  options: {
    bootstrap: { type: "string" },
    topic: { type: "string" },
    codec: { type: "string", default: "none" },
    count: { type: "string", default: "1000" },
    partitions: { type: "string" },
    idempotent: { type: "boolean", default: false },
    // Accepted and without effect: one request is in flight at a time here, so a refused one can't be overtaken.
    cold: { type: "boolean", default: false },
    timeout: { type: "string", default: "120" },
  },
});
const options = { ...parsed.values, operation: parsed.positionals[0] };
if (!["create", "produce", "consume", "roundtrip"].includes(options.operation) || !options.bootstrap || !options.topic)
  fail("usage: create|produce|consume|roundtrip --bootstrap HOST:PORT --topic T ...", 2);
if (CODECS[options.codec] === undefined) fail(`no codec ${options.codec}; there are ${Object.keys(CODECS)}`, 2);

const begun = performance.now();
const bound = setTimeout(() => fail("timed out"), Number(options.timeout) * 1000);
const summary = { client: "kafkajs", version: require("kafkajs/package.json").version };
Object.assign(summary, { operation: options.operation, topic: options.topic, codec: options.codec });
Object.assign(summary, { idempotent: options.idempotent, records: Number(options.count) });
try {
  if (options.operation !== "consume") {
    const all = records(Number(options.count));
    const from = performance.now();
    await produce(options, all);
    summary.produce_seconds = Number(((performance.now() - from) / 1000).toFixed(3));
  }
  if (options.operation === "consume" || options.operation === "roundtrip") {
    const read = readBack(options, Number(options.timeout) - (performance.now() - begun) / 1000);
    Object.assign(summary, { read_by: read.client, consume_seconds: read.consume_seconds, partitions: read.partitions });
  }
} catch (error) {
  fail(error.stack ?? error);
}
clearTimeout(bound);
console.log(JSON.stringify(summary));
