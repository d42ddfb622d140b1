"""What benches/figures and benches/peers share: a store, a Mink node, pinned cores, `mink bench` with its JSON, tables.

Every broker runs on the first half of the cores, the client and the store on the others. A store is SeaweedFS behind the fault proxy, which counts
requests and delays PUTs. All servers listen on 127.0.0.1 and are stopped by their process ids.
"""
import json, os, pathlib, re, shutil, signal, socket, statistics, subprocess, sys, tempfile, time, urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PARTS = ROOT / "tests" / "parts"
SKIPPED = 77
RECORD_BYTES = 1024
S3_KEYS = {"AWS_ACCESS_KEY_ID": "ci", "AWS_SECRET_ACCESS_KEY": "ci-secret-key", "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"}


class Skip(Exception):
    """What this machine can't have, and why."""


def free_ports(count, taken=set()):
    """The first of `count` neighbouring ports that nobody listens on, and that were not given out before."""
    for port in range(24000 + os.getpid() % 4000, 32000, 50):
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
    raise RuntimeError("no free ports on 127.0.0.1 between 24000 and 32000")


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


class Store:
    """SeaweedFS behind the fault proxy, started when the first broker asks for it."""

    def __init__(self, run):
        self.run, self.control, self.endpoint = run, None, None

    def start(self):
        if self.endpoint:
            return
        folder, port = self.run.folder / "s3", free_ports(20)
        self.run.pids.append(int(run_part(*self.run.on_client_cores(PARTS / "seaweedfs-up", folder, port))))
        server = f"http://127.0.0.1:{port}"
        for bucket in ("mink", "tansu"):
            run_part(PARTS / "s3-tool", server, "ready", bucket)
        rule = ["--rule", f"put: delay {self.run.options.put_delay}"] if self.run.options.put_delay else []
        proxy = subprocess.Popen(self.run.on_client_cores(self.run.xtask, "faultproxy", "--to", server, *rule),
                                 stdout=subprocess.PIPE, text=True, env=os.environ | S3_KEYS)
        self.run.pids.append(proxy.pid)
        found = re.match(r"faultproxy ready endpoint=(\S+) control=(\S+)", proxy.stdout.readline())
        self.endpoint, self.control = found[1], found[2]
        if not self.control.endswith("/__faults"):
            self.control += "/__faults"

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
            raise RuntimeError(f"{self.name} ended at once: {(self.run.folder / f'{self.name}.log').read_text()[-500:]}")
        return process.pid


class Mink(Broker):
    """A node of ours on the store that its name ends with: memory, memory20ms (what a PUT takes), file, s3. `flags` go to `mink serve`."""
    flags, kept = [], False

    def start(self):
        kind, environment = self.name.removeprefix("mink-"), {}
        folder = self.run.folder / f"{self.name}-{self.port}"
        command = [self.run.mink, "serve", "--data-dir", folder, "--kafka-listen", f"127.0.0.1:{self.port}",
                   "--http-listen", f"127.0.0.1:{self.port + 1}"]
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
        return f"127.0.0.1:{self.port + 1}"


class Run:
    def __init__(self, options):
        self.options, self.pids = options, []
        # Servers are stopped then, too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mink-peers-", dir=options.dir))
        self.mink, self.xtask = options.mink.resolve(), options.xtask.resolve()
        cores = sorted(os.sched_getaffinity(0))
        half = max(1, len(cores) // 2)
        self.broker_cores, self.client_cores = cores[:half], cores[half:] or cores
        self.store = Store(self)

    def on_broker_cores(self, *command):
        return self.pinned(self.broker_cores, command)

    def on_client_cores(self, *command):
        return self.pinned(self.client_cores, command)

    @staticmethod
    def pinned(cores, command):
        return ["taskset", "-c", ",".join(map(str, cores)), *map(str, command)]

    def bench(self, broker, verb, *flags):
        command = [self.mink, "bench", verb, *flags, "--kafka", f"127.0.0.1:{broker.port}", "--addr", broker.addr(), "--node-pid", broker.pid, "--output", "json"]
        done = subprocess.run(self.on_client_cores(*command), capture_output=True, text=True)
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
        self.store = Store(self)
        for left in self.folder.iterdir():
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()

    def stop(self):
        self.stop_servers()
        shutil.rmtree(self.folder, ignore_errors=True)


def median(rounds, measure):
    found = [each[measure] for each in rounds if each[measure] is not None]
    return statistics.median(found) if found else None


def table(title, rows, columns):
    print(f"\n{title}\n")
    print("| | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for name, values in rows:
        print(f"| {name} | " + " | ".join("-" if value is None else f"{value:,.2f}" for value in values) + " |")


def binaries(parser):
    """Adds the flags that name what was built, and where data lies."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--dir", help="where servers keep their data [default: the system's folder for such]")
    parser.add_argument("--mink", type=pathlib.Path, default=target / "release/mink", help="[default: %(default)s]")
    parser.add_argument("--xtask", type=pathlib.Path, default=target / "debug/xtask", help="[default: %(default)s]")


def built(parser, options):
    for binary, how in ((options.mink, "cargo build --release --bin mink"), (options.xtask, "cargo build -p xtask")):
        if not binary.exists():
            parser.error(f"{binary} is not there: {how}")
