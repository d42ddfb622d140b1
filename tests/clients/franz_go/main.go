// Produces or consumes records with franz-go, as piped_client.py tells and hears through pipes:
//
//	round_trip produce BOOTSTRAP TOPIC CODEC IDEMPOTENT   records come on stdin, acks go to stdout
//	round_trip consume BOOTSTRAP TOPIC SECONDS GROUP      records go to stdout, read by the group, which is new, and committed
//	round_trip create BOOTSTRAP TOPIC PARTITIONS
//
// The form of the lines stands in piped_client.py.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var out = bufio.NewWriterSize(os.Stdout, 1<<16)

func main() {
	args := os.Args[1:]
	operation, topic := args[0], args[2]
	seeds := kgo.SeedBrokers(args[1])
	switch operation {
	case "create":
		create(seeds, topic, int32(number(args[3])))
	case "produce":
		produce(seeds, topic, args[3], args[4] == "true")
	case "consume":
		consume(seeds, topic, time.Duration(number(args[3]))*time.Second, args[4])
	default:
		fail(fmt.Errorf("no such operation: %s", operation))
	}
	fmt.Fprintf(out, "version\t%s\n", version())
	fail(out.Flush())
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "franz-go:", err)
		os.Exit(1)
	}
}

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	fail(err)
	return value
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/twmb/franz-go" {
			return module.Version
		}
	}
	return "unknown"
}

func client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(options...)
	fail(err)
	return made
}

func create(seeds kgo.Opt, topic string, partitions int32) {
	admin := kadm.NewClient(client(seeds))
	defer admin.Close()
	made, err := admin.CreateTopic(context.Background(), partitions, 1, nil, topic)
	fail(err)
	fail(made.Err)
}

func produce(seeds kgo.Opt, topic, codec string, idempotent bool) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	options := []kgo.Opt{
		seeds, kgo.DefaultProduceTopic(topic), kgo.AllowAutoTopicCreation(), kgo.ProducerBatchCompression(codecs[codec]),
	}
	if !idempotent {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	producer := client(options...)
	defer producer.Close()
	var records []*kgo.Record
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		record := parse(lines.Bytes())
		records = append(records, record)
		producer.Produce(context.Background(), record, func(_ *kgo.Record, err error) { fail(err) })
	}
	fail(lines.Err())
	fail(producer.Flush(context.Background()))
	for at, record := range records {
		fmt.Fprintf(out, "%d\t%d\t%d\n", at, record.Partition, record.Offset)
	}
}

func parse(line []byte) *kgo.Record {
	fields := bytes.Split(bytes.Clone(line), []byte("\t"))
	record := &kgo.Record{Timestamp: time.UnixMilli(number(string(fields[0]))), Value: fields[4]}
	if string(fields[1]) != "-1" {
		record.Key = fields[2]
	}
	for _, header := range bytes.Split(fields[3], []byte(",")) {
		name, value, _ := bytes.Cut(header, []byte("="))
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: string(name), Value: value})
	}
	return record
}

func consume(seeds kgo.Opt, topic string, within time.Duration, group string) {
	ctx, stop := context.WithTimeout(context.Background(), within)
	defer stop()
	// The consumer finds the topic by itself; the end is what another client is told.
	asking := client(seeds)
	defer asking.Close()
	admin := kadm.NewClient(asking)
	ends, err := admin.ListEndOffsets(ctx, topic)
	fail(err)
	fail(ends.Error())
	left := int64(0)
	ends.Each(func(end kadm.ListedOffset) { left += end.Offset })

	consumer := client(
		seeds, kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	defer consumer.Close()
	for left > 0 {
		fetches := consumer.PollFetches(ctx)
		fail(fetches.Err())
		fetches.EachRecord(write)
		left -= int64(fetches.NumRecords())
	}
	fail(consumer.CommitUncommittedOffsets(ctx))
	committed, err := admin.FetchOffsetsForTopics(ctx, group, topic)
	fail(err)
	fail(committed.Error())
	all := ends.Offsets().Sorted()
	sort.Slice(all, func(i, j int) bool { return all[i].Partition < all[j].Partition })
	for _, end := range all {
		of, _ := committed.Lookup(topic, end.Partition)
		if end.At == 0 {
			// Nothing was read of it, so nothing of it was committed.
			of.At = 0
		}
		fmt.Fprintf(out, "end\t%d\t%d\t%d\n", end.Partition, end.At, of.At)
	}
}

func write(record *kgo.Record) {
	length := len(record.Key)
	if record.Key == nil {
		length = -1
	}
	fmt.Fprintf(out, "%d\t%d\t%d\t%d\t%s\t", record.Partition, record.Offset, record.Timestamp.UnixMilli(), length, record.Key)
	for at, header := range record.Headers {
		if at > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(out, "%s=%s", header.Key, header.Value)
	}
	fmt.Fprintf(out, "\t%s\n", record.Value)
}
