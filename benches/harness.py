"""What benches/figures, benches/peers and benches/flight share: a store, a Mink node, pinned cores, `mink bench` with its JSON, tables.

What can't be had is skipped by name, what fails is told in a line and left out, and what was measured before is in the tables all the same. Every broker runs on the first half of the cores, the client and the store on the others. A store is SeaweedFS behind the fault proxy, which counts
requests and delays PUTs. All servers listen on 127.0.0.1 and are stopped by their process ids.
"""
import argparse, json, mmap, os, pathlib, re, shutil, signal, socket, statistics, subprocess, sys, tempfile, time, urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PARTS = ROOT / "tests" / "parts"
SKIPPED = 77
RECORD_BYTES = 1024
FIRST_PORT, END_PORT, PORT_STEP = 24000, 32000, 50
PAGE_BYTES = 4096
SIZE = re.compile(r"[1-9][0-9]*(KiB|MiB)?")
TIME = re.compile(r"[1-9][0-9]*(ms|s|m|h)")
S3_KEYS = {"AWS_ACCESS_KEY_ID": "ci", "AWS_SECRET_ACCESS_KEY": "ci-secret-key", "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"}


class Skip(Exception):
    """What this machine can't have, and why."""


def free_ports(count, taken=set()):
    """The first of `count` neighbouring ports that nobody listens on, and that were not given out before; when all were, from the first again."""
    places = (END_PORT - FIRST_PORT) // PORT_STEP
    for fresh in (True, False):
        if not fresh:
            taken.clear()
        for place in range(places):
            port = FIRST_PORT + (os.getpid() + place) % places * PORT_STEP
            if port in taken:
                continue
            taken.add(port)
            try:
                for offset in range(count):
                    with socket.socket() as probe:
                        probe.bind(("127.0.0.1", port + offset))
                return port
            except OSError:
                continue
    raise RuntimeError(f"no free ports on 127.0.0.1 between {FIRST_PORT} and {END_PORT}")


def wait_for(what, ready, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ready():
            return
        time.sleep(0.05)
    raise RuntimeError(f"{what} was not ready within {seconds} s")


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def run_part(*command, **environment):
    done = subprocess.run([str(word) for word in command], env=os.environ | environment, capture_output=True, text=True)
    if done.returncode == SKIPPED:
        raise Skip(done.stderr.strip() or done.stdout.strip())
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip()[-500:]}")
    return done.stdout.strip()


def one_line(error):
    return " ".join(str(error).split()) or type(error).__name__


def say(*words):
    """Progress: what was measured goes to stdout, this to stderr."""
    print(*words, file=sys.stderr, flush=True)


def touch_memory():
    """Writes to each page of three quarters of the free memory once, and gives it back. A fresh virtual machine has to get each page that is first
    touched from its host, which was seen to make a produce three times as dear; from then on the kernel has them. Returns the bytes."""
    read = lambda path: pathlib.Path(path).read_text()
    free = int(re.search(r"MemFree: +([0-9]+)", read("/proc/meminfo"))[1]) * 1024
    try:
        free = min(free, int(read("/sys/fs/cgroup/memory.max")) - int(read("/sys/fs/cgroup/memory.current")))
    except (OSError, ValueError):
        pass  # no such group, or one without a limit
    count = max(free, 0) * 3 // 4 // PAGE_BYTES * PAGE_BYTES
    step = 256 << 20
    if count:
        with mmap.mmap(-1, count) as memory:
            for begin in range(0, count, step):
                end = min(begin + step, count)
                memory[begin:end:PAGE_BYTES] = b"\1" * ((end - begin) // PAGE_BYTES)
    return count


class Store:
    """SeaweedFS behind the fault proxy, started when the first broker asks for it."""

    def __init__(self, run):
        self.run, self.control, self.endpoint, self.port = run, None, None, None

    def start(self):
        if self.endpoint:
            return
        if not self.run.xtask.exists():
            raise Skip(f"{self.run.xtask} is not there: cargo build -p xtask")
        try:
            self.start_server()
        except (RuntimeError, OSError) as error:
            raise Skip(one_line(error)) from error

    def start_server(self):
        folder, scratch, self.port = self.run.folder / "s3", self.run.folder / "tmp", free_ports(20)
        scratch.mkdir(exist_ok=True)
        port = self.port
        up = self.run.on_client_cores(PARTS / "seaweedfs-up", folder, port)
        self.run.pids.append(int(run_part(*up, TMPDIR=str(scratch))))
        server = f"http://127.0.0.1:{port}"
        for bucket in ("mink", "tansu"):
            run_part(PARTS / "s3-tool", server, "ready", bucket)
        rule = ["--rule", f"put: delay {self.run.options.put_delay}"] if self.run.options.put_delay else []
        proxy = subprocess.Popen(self.run.on_client_cores(self.run.xtask, "faultproxy", "--to", server, *rule),
                                 stdout=subprocess.PIPE, text=True, env=os.environ | S3_KEYS)
        self.run.pids.append(proxy.pid)
        found = re.match(r"faultproxy ready endpoint=(\S+) control=(\S+)", proxy.stdout.readline())
        if not found:
            raise RuntimeError("the fault proxy did not start")
        self.endpoint, self.control = found[1], found[2]
        if not self.control.endswith("/__faults"):
            self.control += "/__faults"

    def clean_up(self):
        """SeaweedFS names its sockets in /tmp by its ports, whatever TMPDIR says, and leaves them there."""
        for port in range(self.port, self.port + 20) if self.port else ():
            for left in pathlib.Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                left.unlink(missing_ok=True)

    def requests(self):
        with urllib.request.urlopen(self.control) as answer:
            return sum(json.load(answer)["requests"].values())


class Broker:
    """One server: `start` gives it `port` and `pid`."""
    on_s3 = False

    def __init__(self, run, name):
        self.run, self.name, self.port, self.pid = run, name, free_ports(4), None

    def stop(self):
        os.kill(self.pid, signal.SIGKILL)
        self.run.pids.remove(self.pid)
        os.waitpid(self.pid, 0)

    def addr(self):
        """Where its own counters are to be had."""
        return "none"

    def spawn(self, command, **environment):
        log = open(self.run.folder / f"{self.name}.log", "w")
        process = subprocess.Popen(self.run.on_broker_cores(*command), stdout=log, stderr=log, env=os.environ | environment)
        self.run.pids.append(process.pid)
        wait_for(self.name, lambda: process.poll() is not None or listens(self.port))
        time.sleep(0.2)  # a server whose port is taken ends about now
        if process.poll() is not None:
            words = (self.run.folder / f"{self.name}.log").read_text()[-500:]
            # What a machine does not allow is no failure.
            raise (Skip if "--runtime uring" in words else RuntimeError)(f"{self.name} ended at once: {one_line(words)}")
        return process.pid


class Mink(Broker):
    """A node of ours on the store that its name ends with: memory, memory20ms (what a PUT takes), file, s3. `flags` go to `mink serve`."""
    flags, kept = [], False

    def start(self):
        kind, environment = self.name.removeprefix("mink-"), {}
        folder = self.run.folder / f"{self.name}-{self.port}"
        command = [self.run.mink, "serve", "--data-dir", folder, "--kafka-listen", f"127.0.0.1:{self.port}",
                   "--flight-listen", self.flight(), "--http-listen", f"127.0.0.1:{self.port + 1}"]
        command += self.flags
        if kind.startswith("memory"):
            latency = kind.removeprefix("memory")
            command += ["--storage", f"memory://?put-latency={latency}" if latency else "memory://", "--metadata", "memory://"]
        elif kind == "s3":
            self.run.store.start()
            command += ["--storage", f"s3://mink/{self.name}-{self.port}"]
            environment = S3_KEYS | {"AWS_ENDPOINT_URL": self.run.store.endpoint, "AWS_ALLOW_HTTP": "true"}
        self.on_s3 = kind == "s3"
        self.pid = self.spawn(command, **environment)

    def addr(self):
        return f"http://127.0.0.1:{self.port + 1}"

    def flight(self):
        """Its Flight listener; off unless it is measured."""
        return "none"


class Run:
    def __init__(self, options):
        self.options, self.pids, self.failures = options, [], 0
        # Servers are stopped then, too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mink-bench-", dir=options.dir))
        self.mink, self.xtask = options.mink.resolve(), options.xtask.resolve()
        cores = sorted(os.sched_getaffinity(0))
        half = max(1, len(cores) // 2)
        self.broker_cores, self.client_cores = cores[:half], cores[half:] or cores
        self.store = Store(self)

    def attempt(self, what, work):
        """What `work` gives; nothing if it can't be had here or fails, which is told."""
        try:
            return work()
        except Skip as why:
            say(f"skip {what}: {one_line(why)}")
        except (RuntimeError, OSError, KeyError, ValueError) as error:
            say(f"failed {what}: {one_line(error)}")
            self.failures += 1
        return None

    def warm_up(self):
        if self.options.cold:
            print("memory as it was found (--cold)", flush=True)
            return
        print(f"{touch_memory() / (1 << 30):.1f} GiB of free memory touched once before the start; --cold leaves that out", flush=True)

    def on_broker_cores(self, *command):
        return self.pinned(self.broker_cores, command)

    def on_client_cores(self, *command):
        return self.pinned(self.client_cores, command)

    @staticmethod
    def pinned(cores, command):
        return ["taskset", "-c", ",".join(map(str, cores)), *map(str, command)]

    def bench(self, broker, verb, *flags):
        return self.bench_at(broker, verb, *flags, "--kafka", f"127.0.0.1:{broker.port}")

    def bench_at(self, broker, verb, *flags):
        """The JSON of a `mink bench`, told where the load goes."""
        command = [self.mink, "bench", verb, *flags, "--addr", broker.addr(), "--node-pid", broker.pid, "--output", "json"]
        done = subprocess.run(self.on_client_cores(*command), capture_output=True, text=True)
        if done.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM):
            raise KeyboardInterrupt
        if done.returncode:
            raise RuntimeError(f"{broker.name}: mink bench {verb} {' '.join(map(str, flags))}: {done.stderr.strip()[-500:]}")
        return json.loads(done.stdout.splitlines()[-1])

    def settled(self, before):
        """Requests since `before`, once no more came for two seconds: what a broker flushes after its acks counts too."""
        end, last = time.monotonic() + 15, None
        while time.monotonic() < end:
            now = self.store.requests()
            if now == last:
                break
            last = now
            time.sleep(2)
        return self.store.requests() - before

    def stop_servers(self):
        for pid in reversed(self.pids):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.pids.clear()
        self.store.clean_up()
        self.store = Store(self)
        for left in self.folder.iterdir():
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()

    def stop(self):
        self.stop_servers()
        shutil.rmtree(self.folder, ignore_errors=True)


def median(rounds, measure):
    found = [each[measure] for each in rounds if each[measure] is not None]
    return statistics.median(found) if found else None


def told(values, columns):
    """Figures in a line of progress."""
    return ", ".join(f"{column} {figure(value)}" for column, value in zip(columns, values))


def figure(value):
    return "-" if value is None else f"{value:,.2f}"


class Table:
    """A table whose rows are printed as they come; one without rows is none."""

    def __init__(self, title, columns):
        self.title, self.columns, self.is_begun = title, columns, False

    def row(self, name, values):
        if not self.is_begun:
            self.is_begun = True
            print(f"\n{self.title}\n")
            print("| | " + " | ".join(self.columns) + " |\n|---|" + "---|" * len(self.columns))
        print(f"| {name} | " + " | ".join(figure(value) for value in values) + " |", flush=True)


def medians_of(done, rounds):
    """For a title: of how many rounds, should a run have ended before the last."""
    return f"medians of {rounds} round{'s' if rounds > 1 else ''}" + (f", {done} of which were run" if done < rounds else "")


def at_least_1(text):
    """For argparse: a count that measures something."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number of at least 1")
    return int(text)


def a_time(text):
    if not TIME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r}: give a time like 20s or 500ms")
    return text


def some_of(what, there_are):
    """For argparse: a list by commas, each of those that there are."""
    def parse(text):
        unknown = [each for each in text.split(",") if each not in there_are]
        if unknown:
            raise argparse.ArgumentTypeError(f"no such {what}: {', '.join(map(repr, unknown))}; there are {', '.join(there_are)}")
        return text
    return parse


def sizes(text):
    wrong = [each for each in text.split(",") if not SIZE.fullmatch(each)]
    if wrong:
        raise argparse.ArgumentTypeError(f"{', '.join(map(repr, wrong))}: give sizes like 16KiB or 1MiB, by commas")
    return text


def counts(text):
    for each in text.split(","):
        at_least_1(each)
    return text


def binaries(parser):
    """Adds the flags that name what was built, and where data lies."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--dir", help="where servers keep their data [default: the system's folder for such]")
    parser.add_argument("--cold", action="store_true", help="don't touch free memory before the start")
    parser.add_argument("--mink", type=pathlib.Path, default=target / "release/mink", help="[default: %(default)s]")
    parser.add_argument("--xtask", type=pathlib.Path, default=target / "debug/xtask", help="for S3 alone [default: %(default)s]")


def built(parser, options):
    if not options.mink.exists():
        parser.error(f"{options.mink} is not there: cargo build --release --bin mink")
    if options.dir and not pathlib.Path(options.dir).is_dir():
        parser.error(f"--dir {options.dir}: there is no such folder")
    if not shutil.which("taskset"):
        parser.error("taskset is not there: it comes with util-linux")


def main_of(name, main):
    """Runs a script: its exit code is 1 if anything failed, and errors are a line."""
    try:
        code = main()
    except KeyboardInterrupt:
        say(f"{name}: stopped")
        code = 128 + signal.SIGINT
    except (RuntimeError, OSError, Skip) as error:
        say(f"{name}: {one_line(error)}")
        code = 1
    sys.exit(code)
