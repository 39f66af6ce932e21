"""Measures commands by the CPU time of their processes and their peak memory."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

RUNS, AMBIT, WORK = int(sys.argv[1]), os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3])


def once(command, folder=None):
    """Returns CPU seconds, wall seconds and peak RSS in KiB of one run."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{command} ended with {status}")
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss


def least(commands, folder=None):
    """Runs the commands in turn, so that a busy moment hits all of them; returns the least of each."""
    results = [[] for _ in commands]
    for _ in range(RUNS):
        for index, command in enumerate(commands):
            results[index].append(once(command, folder))
    return [tuple(min(run[part] for run in runs) for part in range(3)) for runs in results]


def main():
    print("| file | MB | wasm-tools validate | ambit check | ratio | peak RSS above `--version`, of file |")
    print("| --- | --- | --- | --- | --- | --- |")
    names = ["python-hello.wasm"]
    files = [WORK / name for name in names] + [pathlib.Path("testdata/components/hello-js-quickjs.wasm")]
    for file in files:
        if not file.exists():
            continue
        size = file.stat().st_size
        peer, mine, empty = least([
            ["wasm-tools", "validate", str(file)],
            [AMBIT, "check", str(file)],
            [AMBIT, "--version"],
        ])
        small = least([[AMBIT, "check", "testdata/components/dns-only.wasm"]])[0]
        analysis = mine[0] - small[0]
        print(
            f"| {file.name} | {size / 1e6:.1f} | {peer[0] * 1000:.0f} ms | "
            f"{mine[0] * 1000:.0f} ms whole, {analysis * 1000:.0f} ms for the file | "
            f"{analysis / peer[0]:.2f} | {(mine[2] - empty[2]) * 1024 / size:.2f} |"
        )
    with tempfile.TemporaryDirectory() as folder:
        for name in ["http-client", "file-writer", "env-reader", "dns-only", "http-handler"]:
            shutil.copy(f"testdata/components/{name}.wasm", folder)
        components = "".join(
            f"  - {{name: {name}, image: 'file:{name}.wasm'}}\n"
            for name in ["http-client", "file-writer", "env-reader", "dns-only", "http-handler"]
        )
        pathlib.Path(folder, "workload.yaml").write_text(
            "apiVersion: runtime.wasmcloud.dev/v1alpha1\nkind: Workload\nmetadata: {name: five}\n"
            f"spec:\n  components:\n{components}"
        )
        cpu, wall, _ = least([[AMBIT, "check", "workload.yaml"]], folder)[0]
        print(f"\n`ambit check` on a local workload of five components, cold process: {wall * 1000:.0f} ms wall, {cpu * 1000:.0f} ms CPU")


if __name__ == "__main__":
    main()
