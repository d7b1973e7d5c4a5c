"""What a device in another process costs: runs by a device server on the loopback beside runs here, in turns, and the
same bytes by a bare gRPC call.

The bound: 300 us and 1 GB/s over the run here. `python benchmarks/devices/remote.py [--json FILE]`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any

import numpy as np

import hetnn

SIZES = [1 << 10, 1 << 14, 1 << 18, 1 << 22]  # elements of f32
ROUNDS, RUNS = 7, 40
TEXT = """graph @g {{stage = imported}} (%x: f32[1,4,{rows},16]) -> (%y) {{
  %y = relu(%x) : f32[1,4,{rows},16]
}}"""


def median_us(call: Callable[[], Any], runs: int) -> float:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1e6)
    return statistics.median(times)


def echo() -> tuple[Any, Callable[[bytes], bytes]]:
    """A gRPC server that gives back what it is sent, and a call of it."""
    import grpc

    limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(2), options=limits)
    method = grpc.unary_unary_rpc_method_handler(lambda request, _: request)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("echo", {"run": method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=limits)
    return server, channel.unary_unary("/echo/run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_text("bench")
        serve = [sys.executable, "-m", "hetnn", "device", "serve", "--device", "relu-only", "--token-file", str(token)]
        server = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        port = json.loads(server.stdout.readline())["port"]
        grpc_server, grpc_run = echo()
        for elements in SIZES:
            path = Path(folder) / f"{elements}.hetnn"
            hetnn.compile(TEXT.format(rows=elements // 64), "cpu+relu-only", strategy="take-all").save(path)
            here = hetnn.load(path)
            there = hetnn.load(path, devices={"relu-only": {"at": f"127.0.0.1:{port}", "token_file": token}})
            x = np.ones((1, 4, elements // 64, 16), np.float32)
            assert np.array_equal(here.run([x])[0], there.run([x])[0])
            raw = x.tobytes()
            runs = max(3, RUNS * SIZES[0] // elements) if elements > SIZES[1] else RUNS
            figures: dict[str, list[float]] = {"here": [], "there": [], "grpc": []}
            for _ in range(ROUNDS):
                figures["here"].append(median_us(lambda here=here, x=x: here.run([x]), runs))
                figures["there"].append(median_us(lambda there=there, x=x: there.run([x]), runs))
                figures["grpc"].append(median_us(lambda raw=raw: grpc_run(raw), runs))
            local, remote, bare = (statistics.median(figures[name]) for name in ("here", "there", "grpc"))
            bytes = 2 * x.nbytes  # in and out
            bound = 300 + bytes / 1e3
            rows.append(
                {"bytes": bytes, "here_us": local, "there_us": remote, "over_us": remote - local, "bound_us": bound}
            )
            rows[-1]["grpc_echo_us"] = bare
            print(
                f"{bytes:>10,} bytes: here {local:9.0f} us, there {remote:9.0f}, over {remote - local:8.0f} "
                f"(bound {bound:8.0f}); a bare gRPC call of these bytes {bare:8.0f}"
            )
        grpc_server.stop(0)
        server.terminate()
        server.wait()
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
