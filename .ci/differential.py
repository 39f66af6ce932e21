"""Declared imports, ours against those of `wasm-tools component wit`.

Prints a line for each difference and fails on one that .ci/differential.known doesn't list, and on
a listed one that is gone.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

SAMPLES = pathlib.Path("testdata/components")
KNOWN = pathlib.Path(".ci/differential.known")


def ours(path):
    run = subprocess.run(
        ["target/debug/ambit", "inspect", "--format", "json", str(path)],
        capture_output=True, text=True,
    )
    if run.returncode != 0:
        return None
    return sorted({entry["name"] for entry in json.loads(run.stdout)["imports"]})


def theirs(path):
    run = subprocess.run(["wasm-tools", "component", "wit", str(path)], capture_output=True, text=True)
    if run.returncode != 0:
        return None
    world = re.search(r"^world \S+ \{\n(.*?)^\}", run.stdout, re.S | re.M)
    names = []
    for line in (world.group(1) if world else "").splitlines():
        found = re.match(r"  import ([^;{]+?)(?:: .*)?;?$", line.rstrip(" {"))
        if found:
            name = found.group(1).strip()
            named = re.match(r"  import ([a-z0-9-]+): ", line)
            names.append(named.group(1) if named else name)
    return sorted(set(names))


def main():
    known = {}
    for line in KNOWN.read_text().splitlines():
        if line and not line.startswith("#"):
            name, reason = line.split(": ", 1)
            known[name] = reason
    compared = unanswered = failed = 0
    seen = set()
    with tempfile.TemporaryDirectory() as folder:
        paths = sorted(SAMPLES.glob("*.wasm"))
        for text in sorted(SAMPLES.glob("tricky/*.wat")) + sorted(SAMPLES.glob("wat/*.wat")):
            binary = pathlib.Path(folder) / f"{text.stem}.wasm"
            run = subprocess.run(["wasm-tools", "parse", str(text), "-o", str(binary)], capture_output=True)
            if run.returncode == 0:
                paths.append(binary)
        for path in paths:
            name = path.stem
            mine, other = ours(path), theirs(path)
            if other is None:
                unanswered += 1
                continue
            compared += 1
            if mine == other:
                continue
            seen.add(name)
            if name in known:
                print(f"known: {name}: {known[name]}")
            else:
                failed += 1
                print(f"DIFFERENT: {name}\n  ambit: {mine}\n  wasm-tools: {other}")
    for name in sorted(set(known) - seen):
        failed += 1
        print(f"GONE: {name} is listed as different and is equal")
    print(f"{compared} compared, {unanswered} without an answer of wasm-tools")
    print(f"{compared - failed} passed, {failed} failed")
    if compared < 20:
        print("too few were compared")
        failed += 1
    return 1 if failed else 0


sys.exit(main())
