#!/usr/bin/env bash
# Produces and consumes the flights with kcat. Same command line as its neighbours (README.md).
# kcat sets one list of headers for all it sends, so records of equal headers go in one call; it can't set timestamps, so those
# are checked to be of this run. Needs MINK_PYTHON, which `run` sets.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage() {
  echo "usage: kcat_client.sh create|produce|consume|roundtrip --bootstrap HOST:PORT --topic T [--codec C] [--count N] [--partitions P] [--idempotent] [--cold] [--any-timestamp] [--timeout SECONDS]" >&2
  exit 2
}
operation=${1:-} bootstrap='' topic='' codec=none count=1000 partitions='' idempotent=false any=false cold=false limit=120
[ $# -gt 0 ] && shift
while [ $# -gt 0 ]; do
  case $1 in
    --bootstrap) bootstrap=$2 ; shift 2 ;;
    --topic) topic=$2 ; shift 2 ;;
    --codec) codec=$2 ; shift 2 ;;
    --count) count=$2 ; shift 2 ;;
    --partitions) partitions=$2 ; shift 2 ;;
    --timeout) limit=$2 ; shift 2 ;;
    --idempotent) idempotent=true ; shift ;;
    --cold) cold=true ; shift ;;
    --any-timestamp) any=true ; shift ;;
    *) usage ;;
  esac
done
case $operation in create | produce | consume | roundtrip) ;; *) usage ;; esac
[ -n "$bootstrap" ] && [ -n "$topic" ] || usage
end_at=$((SECONDS + limit))
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

# bounded COMMAND...: runs it within what is left of the whole run's time.
bounded() {
  local left=$((end_at - SECONDS))
  [ $left -gt 0 ] || { echo "kcat: timed out" >&2; exit 1; }
  timeout $left "$@" || { echo "kcat: failed ($?): $*" >&2; exit 1; }
}
since() { awk "BEGIN { printf \"%.3f\", $EPOCHREALTIME - $1 }"; }

# partitions_of: the partition numbers of the topic.
partitions_of() { kcat -L -b "$bootstrap" -t "$topic" | awk '$1 == "partition" { sub(",", "", $2); print $2 }' | sort -n; }
leaders() {
  local part parts
  parts=$(partitions_of) && [ -n "$parts" ] || return 1
  for part in $parts; do
    kcat -Q -b "$bootstrap" -t "$topic:$part:-1" > "$work/leader" 2>&1 || return 1
  done
}

if [ -n "$partitions" ] && [ "$operation" != consume ]; then
  bounded "$MINK_PYTHON" "$here/confluent_client.py" create --bootstrap "$bootstrap" --topic "$topic" --partitions "$partitions" > "$work/created"
fi
summary="\"client\": \"kcat\", \"version\": \"$(kcat -V 2>&1 | grep -o 'librdkafka [0-9.]*')\", \"operation\": \"$operation\", \"topic\": \"$topic\""
summary+=", \"codec\": \"$codec\", \"idempotent\": $idempotent, \"records\": $count"
floor=0
if [ "$operation" = produce ] || [ "$operation" = roundtrip ]; then
  mkdir "$work/input"
  bounded "$MINK_PYTHON" "$here/flights.py" kcat-files "$work/input" "$count"
  # Metadata makes the topic if need be; then wait for its leaders (confluent_client.py says why).
  until $cold || leaders; do
    [ $SECONDS -lt $end_at ] || { echo "kcat: timed out waiting for the leaders of $topic" >&2; exit 1; }
    sleep 0.05
  done
  begun=$EPOCHREALTIME
  floor=${begun%.*}000
  for file in "$work/input"/*; do
    name=${file##*/}
    # -Z: an empty key is a null key.
    bounded kcat -P -q -b "$bootstrap" -t "$topic" -K '\t' -Z -H "carrier=${name%-*}" -H "origin=${name#*-}" \
      -X acks=all -X compression.codec="$codec" -X enable.idempotence=$idempotent -l "$file"
  done
  summary+=", \"produce_seconds\": $(since "$begun")"
fi
if [ "$operation" = consume ] || [ "$operation" = roundtrip ]; then
  [ "$operation" = roundtrip ] || $any || floor=-
  begun=$EPOCHREALTIME
  parts=$(partitions_of)
  [ -n "$parts" ] || { echo "kcat: topic $topic has no partitions" >&2; exit 1; }
  ends=()
  for part in $parts; do
    end=$(bounded kcat -Q -b "$bootstrap" -t "$topic:$part:-1" | awk '{ print $NF }')
    ends+=("$part=$end")
    bounded kcat -C -q -e -b "$bootstrap" -t "$topic" -p "$part" -o beginning -f '%p\t%o\t%T\t%K\t%k\t%h\t%s\n' >> "$work/read"
  done
  summary+=", \"consume_seconds\": $(since "$begun"), \"partitions\": ${#ends[@]}"
  bounded "$MINK_PYTHON" "$here/flights.py" compare "kcat $operation $topic" "$count" "$floor" "${ends[@]}" < "$work/read"
fi
echo "{$summary}"
