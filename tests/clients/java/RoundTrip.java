// Produces or consumes records with Apache Kafka's own client, as piped_client.py tells and hears through pipes:
//   RoundTrip produce BOOTSTRAP TOPIC CODEC IDEMPOTENT   records come on stdin, acks go to stdout
//   RoundTrip consume BOOTSTRAP TOPIC SECONDS GROUP      records go to stdout, read by the group, which is new, and committed
//   RoundTrip create BOOTSTRAP TOPIC PARTITIONS
// The form of the lines stands in piped_client.py.

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class RoundTrip {
  // Bytes, not text: what is read is held against what was written byte for byte.
  private static final PrintStream OUT = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false);

  public static void main(String[] args) throws Exception {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", args[1]);
    switch (args[0]) {
      case "create" -> create(settings, args[2], Integer.parseInt(args[3]));
      case "produce" -> produce(settings, args[2], args[3], Boolean.parseBoolean(args[4]));
      case "consume" -> consume(settings, args[2], Duration.ofSeconds(Long.parseLong(args[3])), args[4]);
      default -> throw new IllegalArgumentException(args[0]);
    }
    line("version", version());
    OUT.flush();
  }

  private static String version() throws IOException {
    Properties said = new Properties();
    try (InputStream file = KafkaProducer.class.getResourceAsStream("/kafka/kafka-version.properties")) {
      said.load(file);
    }
    return said.getProperty("version");
  }

  private static void create(Properties settings, String topic, int partitions) throws Exception {
    try (Admin admin = Admin.create(settings)) {
      admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
    }
  }

  private static void produce(Properties settings, String topic, String codec, boolean idempotent) throws Exception {
    settings.put("acks", "all");
    settings.put("compression.type", codec);
    settings.put("enable.idempotence", idempotent);
    settings.put("linger.ms", 5);
    List<Future<RecordMetadata>> acks = new ArrayList<>();
    try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
      InputStream input = new BufferedInputStream(System.in, 1 << 16);
      for (byte[][] fields = fields(input); fields != null; fields = fields(input)) {
        byte[] key = text(fields[1]).equals("-1") ? null : fields[2];
        var record = new ProducerRecord<byte[], byte[]>(topic, null, Long.valueOf(text(fields[0])), key, fields[4]);
        for (String header : text(fields[3]).split(",")) {
          String[] pair = header.split("=", 2);
          record.headers().add(pair[0], pair[1].getBytes(StandardCharsets.UTF_8));
        }
        acks.add(producer.send(record));
      }
    }
    for (int number = 0; number < acks.size(); number++) {
      RecordMetadata ack = acks.get(number).get();
      line(number, ack.partition(), ack.offset());
    }
  }

  private static void consume(Properties settings, String topic, Duration within, String group) throws Exception {
    settings.put("group.id", group);
    settings.put("auto.offset.reset", "earliest");
    settings.put("enable.auto.commit", false);
    long until = System.nanoTime() + within.toNanos();
    try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
          .map(info -> new TopicPartition(topic, info.partition())).toList();
      Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
      long left = ends.values().stream().mapToLong(Long::longValue).sum();
      consumer.subscribe(List.of(topic));
      // The group has all partitions once it has read all; one without records is waited for by its assignment.
      while (left > 0 || consumer.assignment().size() < partitions.size()) {
        if (System.nanoTime() > until) throw new IllegalStateException("timed out, " + left + " records are missing");
        for (var record : consumer.poll(Duration.ofMillis(200))) {
          write(record);
          left--;
        }
      }
      consumer.commitSync();
      Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
      for (TopicPartition partition : partitions) {
        OffsetAndMetadata of = committed.get(partition);
        line("end", partition.partition(), ends.get(partition), of == null ? -1 : of.offset());
      }
    }
  }

  private static void write(ConsumerRecord<byte[], byte[]> record) throws IOException {
    byte[] key = record.key();
    OUT.print(record.partition() + "\t" + record.offset() + "\t" + record.timestamp() + "\t");
    OUT.print((key == null ? -1 : key.length) + "\t");
    if (key != null) OUT.write(key);
    OUT.print("\t");
    String between = "";
    for (Header header : record.headers()) {
      OUT.print(between + header.key() + "=");
      OUT.write(header.value());
      between = ",";
    }
    OUT.print("\t");
    OUT.write(record.value());
    OUT.print("\n");
  }

  private static void line(Object... fields) {
    OUT.print(String.join("\t", List.of(fields).stream().map(Object::toString).toList()) + "\n");
  }

  // The next line's five fields; null at the end.
  private static byte[][] fields(InputStream input) throws IOException {
    byte[][] fields = new byte[5][];
    var field = new ByteArrayOutputStream();
    for (int at = 0; at < fields.length; ) {
      int next = input.read();
      if (next < 0) return null;
      if (next == '\t' || next == '\n') {
        fields[at++] = field.toByteArray();
        field.reset();
      } else {
        field.write(next);
      }
    }
    return fields;
  }

  private static String text(byte[] field) {
    return new String(field, StandardCharsets.UTF_8);
  }
}
