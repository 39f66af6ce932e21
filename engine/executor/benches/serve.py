"""Interleaved rounds of `ambit run` and `wasmtime serve`: CPU per request, memory, second start.

A round starts both servers, measures each at 1, 16 and 64 connections in turn, and stops them. CPU
is user and system time of the server's process, from /proc, so the load generator doesn't count.
The figure of a server is the least of its rounds, since other work can only add; the ratio is that
of the two figures.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

ROUNDS, REQUESTS = int(sys.argv[1]), int(sys.argv[2])
AMBIT, PEER, WORK = sys.argv[3:6]
EXTRA = sys.argv[6:]
COMPONENT = "testdata/components/http-handler.wasm"
CONNECTIONS = (1, 16, 64)
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rss(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * PAGE / 2**20


def peak(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) / 1024


def wait(port, host, process):
    for _ in range(3000):
        if process.poll() is not None:
            raise SystemExit(f"a server ended with {process.returncode}")
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Host": host})
            urllib.request.urlopen(request, timeout=5).read()
            return
        except OSError:
            time.sleep(0.01)
    raise SystemExit("a server doesn't answer")


def servers(component=COMPONENT, cwasm=None):
    record = os.path.join(WORK, "serve-record")
    name = os.path.splitext(os.path.basename(component))[0]
    ours = [AMBIT, "run", component, "--listen", "127.0.0.1:8390", "--record", record, "--quiet",
            *EXTRA]
    theirs = [PEER, "serve", "-Scli", "--addr", "127.0.0.1:8391", component]
    if cwasm:
        theirs = [PEER, "serve", "-Scli", "--allow-precompiled", "--addr", "127.0.0.1:8391", cwasm]
    return {"ambit": (ours, 8390, f"{name}.localhost:8390"), "wasmtime": (theirs, 8391, "127.0.0.1:8391")}


def start(command):
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def load(port, host, connections, seconds):
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-H", f"Host: {host}",
               "--latency", f"http://127.0.0.1:{port}/"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    errors = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    if errors:
        raise SystemExit(f"{errors.group(1)} requests failed")
    count = int(re.search(r"(\d+) requests in", text).group(1))
    return count, re.search(r"50%\s+(\S+)", text).group(1), re.search(r"99%\s+(\S+)", text).group(1)


def main():
    best, memory, seconds = {}, {}, max(1, REQUESTS // 10000)
    for _ in range(ROUNDS):
        running = {}
        for name, (command, port, host) in servers().items():
            running[name] = (start(command), port, host)
        for name, (process, port, host) in running.items():
            wait(port, host, process)
            load(port, host, 4, 1)
            memory.setdefault(name, {})["idle"] = rss(process.pid)
        for connections in CONNECTIONS:
            for name, (process, port, host) in running.items():
                before = cpu(process.pid)
                count, p50, p99 = load(port, host, connections, seconds)
                spent = (cpu(process.pid) - before) / count * 1e6
                key = (name, connections)
                if key not in best or spent < best[key][0]:
                    best[key] = (spent, p50, p99, count / seconds)
        for name, (process, port, host) in running.items():
            memory[name]["peak"] = peak(process.pid)
            process.send_signal(signal.SIGTERM)
            process.wait(20)
    print("| connections | wasmtime serve | ambit run | ratio |")
    print("| --- | --- | --- | --- |")
    for connections in CONNECTIONS:
        theirs, ours = best[("wasmtime", connections)], best[("ambit", connections)]
        print(f"| {connections} | {theirs[0]:.0f} µs CPU, p50 {theirs[1]}, p99 {theirs[2]} "
              f"| {ours[0]:.0f} µs CPU, p50 {ours[1]}, p99 {ours[2]} | {ours[0] / theirs[0]:.2f} |")
    for name, values in memory.items():
        grown = (values["peak"] - values["idle"]) / 64 * 1024
        print(f"{name}: {values['idle']:.1f} MiB after a warm-up, {values['peak']:.1f} MiB at the peak "
              f"of 64 connections ({grown:.0f} KiB for each)")


def second_start(component):
    """The time from the start of a process to its first answer, compiled code at hand."""
    cwasm = os.path.join(WORK, "peer.cwasm")
    subprocess.run([PEER, "compile", component, "-o", cwasm], check=True)
    times = {}
    for turn in range(ROUNDS + 1):
        for name, (command, port, host) in servers(component, cwasm).items():
            before = time.monotonic()
            process = start(command)
            wait(port, host, process)
            took = time.monotonic() - before
            if turn > 0:
                times.setdefault(name, []).append(took * 1000)
            process.send_signal(signal.SIGTERM)
            process.wait(20)
    least = {name: min(values) for name, values in times.items()}
    size = os.path.getsize(component) / 1e6
    print(f"second start of {os.path.basename(component)} ({size:.1f} MB): wasmtime serve "
          f"{least['wasmtime']:.0f} ms, ambit run {least['ambit']:.0f} ms, "
          f"ratio {least['ambit'] / least['wasmtime']:.2f}")


main()
for large in sorted(os.listdir(WORK)):
    if large.startswith("http-") and large.endswith(".wasm"):
        second_start(os.path.join(WORK, large))
print(json.dumps({"rounds": ROUNDS, "cores": os.cpu_count()}))
