"""The code blocks of docs/flight.md, one after the other, as they stand; only the address is this node's."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from .kit import ROOT, Difference, require, require_equal

PAGE = ROOT / "docs" / "flight.md"
ADDRESS = "127.0.0.1:9123"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shell(text, folder):
    """A command of the page, in a folder that has the repository's `core`."""
    environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-euc", text], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    require_equal(done.returncode, 0, f"{text.strip()}: {done.stderr}")


def docs(mink, options):
    blocks = [(match[1], match[2], PAGE.read_text()[: match.start()].count("\n") + 2) for match in BLOCK.finditer(PAGE.read_text())]
    require(any(ADDRESS in text for _, text, _ in blocks), f"no block names {ADDRESS}")
    ran = {"sh": 0, "python": 0}
    names = {}
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "core").symlink_to(ROOT / "core")
        sys.path.insert(0, folder)
        # The kit has compiled the same file, under the same name.
        sys.modules.pop("flight_pb2", None)
        try:
            for kind, text, line in blocks:
                if kind == "sh":
                    shell(text, folder)
                elif kind == "python":
                    run(text.replace(ADDRESS, options.flight), line, names)
                else:
                    require(False, f"{PAGE.name}, line {line}: a block of kind {kind!r} is neither sh nor python")
                ran[kind] += 1
        finally:
            sys.path.remove(folder)
    require(ran["python"] >= 5, f"only {ran} blocks")
    return {"blocks": ran}


def run(text, line, names):
    # So that an error names the page's line.
    code = compile("\n" * (line - 1) + text, str(PAGE), "exec")
    try:
        exec(code, names)
    except Exception as error:
        at, found = error.__traceback__, line
        while at is not None:
            # The last of the page's own: what is below it is pyarrow's.
            found = at.tb_lineno if at.tb_frame.f_code.co_filename == str(PAGE) else found
            at = at.tb_next
        raise Difference(f"{PAGE.name}, line {found}: {type(error).__name__}: {error}") from error
