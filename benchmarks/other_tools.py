"""AIPerf and GuideLLM on the same streams, opt-in: ``python benchmarks/other_tools.py [aiperf] [guidellm]``.

Each is installed into a folder of its own in the user's cache (0.8 and 5 GB). They start many processes that import for
seconds, so each runs twice, with few requests and with many: what counts is the CPU of all its processes for the
difference. Beside them the load process of a run reads as many of the same streams, at the same rate, all in one run.
Exits 77 with the reason where one cannot be installed. ``--install`` does no more than that.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from load import Shape, ours, source

from harness.stack.cache import cache_dir

CANNOT_CODE = 77
UV = Path(sys.executable).parent / "uv"
PYTHON = "3.11"
VERSIONS = {"aiperf": "0.13.0", "guidellm": "0.8.1"}
TOKENS, PACE, RATE = 400, 50.0, 20
FEW, MANY = 20, 620
"""Their start alone takes as much CPU as some hundred thousand tokens, and not always the same: the difference must be
large beside that."""
PR_SET_CHILD_SUBREAPER = 36
SPARE_S = 900.0
"""GuideLLM imports for minutes on a machine that is busy otherwise."""
TOKENIZER = """
import json, pathlib, sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
tokenizer = Tokenizer(models.BPE({chr(n): n - 32 for n in range(32, 127)}, []))
tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="~").save_pretrained(sys.argv[1])
pathlib.Path(sys.argv[1], "config.json").write_text(json.dumps({"model_type": "llama"}))
"""
"""One token for each ASCII character: both tools want a tokenizer, and there is no hub to take one from."""


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    bin_dir: Path
    tokenizer: Path


def installed(name: str) -> Tool:
    folder = cache_dir() / f"{name}-{VERSIONS[name]}"
    venv, tokenizer, done = folder / "venv", folder / "tokenizer", folder / "installed"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for argv in (
            (str(UV), "venv", "--quiet", "--clear", "--python", PYTHON, str(venv)),
            (str(UV), "pip", "install", "--quiet", "--python", f"{venv}/bin/python", f"{name}=={VERSIONS[name]}"),
            (f"{venv}/bin/python", "-c", TOKENIZER, str(tokenizer)),
        ):
            ended = subprocess.run(argv, capture_output=True, text=True, check=False)
            if ended.returncode:
                print(f"{name} cannot be installed here: {' '.join(ended.stderr.split())[-400:]}")
                raise SystemExit(CANNOT_CODE)
        done.touch()
    return Tool(name, venv / "bin", tokenizer)


def argv_of(tool: Tool, url: str, requests: int, folder: Path) -> list[str]:
    if tool.name == "aiperf":
        return [
            str(tool.bin_dir / "aiperf"), "profile", "--model", "m", "--url", url, "--endpoint-type", "chat",
            "--streaming", "--tokenizer", str(tool.tokenizer), "--request-rate", str(RATE),
            "--request-count", str(requests), "--isl", "32", "--osl", str(TOKENS), "--ui", "none",
            "--artifact-dir", str(folder / "out"),
        ]  # fmt: skip
    prompts = folder / "prompts.jsonl"
    prompts.write_text(f'{{"prompt": "hello there", "output_tokens_count": {TOKENS}}}\n' * requests)
    return [
        str(tool.bin_dir / "guidellm"), "run", "--backend", f"kind=openai_http,target={url},model=m",
        "--profile", f"kind=constant,rate={RATE}", "--constraint", f"kind=max_requests,count={requests}",
        "--data", f"kind=json_file,path={prompts}", "--output", f"kind=json,path={folder / 'out.json'}",
        "--disable-console",
    ]  # fmt: skip


def cpu_s(tool: Tool, requests: int) -> tuple[float, int]:
    """Of all its processes, and how many tokens the server sent meanwhile."""
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        sent = folder / "sent"
        with source(Shape(RATE, requests / RATE, TOKENS, PACE), sent, SPARE_S) as port:
            env = os.environ | {"GUIDELLM__MAX_WORKER_PROCESSES": "1"}
            with (folder / "log").open("w") as log:
                before_s = _children_s()
                argv = argv_of(tool, f"http://127.0.0.1:{port}", requests, folder)
                code = subprocess.run(argv, env=env, stdout=log, stderr=log, check=False).returncode
                _bury_orphans()
                used_s = _children_s() - before_s
        if code:
            raise SystemExit(f"{tool.name} ended with {code}: {(folder / 'log').read_text()[-1500:]}")
        tokens = int(sent.read_text().split("tokens ")[1])
        assert tokens == requests * TOKENS, f"{tool.name} read {tokens} tokens of {requests * TOKENS}"
        return used_s, tokens


def _children_s() -> float:
    """CPU of all descendants that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _bury_orphans() -> None:
    """Processes whose parents did not wait for them are ours by now; the server goes on."""
    while os.waitpid(-1, os.WNOHANG)[0]:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", help=f"of {', '.join(VERSIONS)}; default: all")
    parser.add_argument("--install", action="store_true", help="and measure nothing")
    args = parser.parse_args()
    if wrong := set(args.tools) - VERSIONS.keys():
        parser.error(f"no tool {', '.join(sorted(wrong))}; there are {', '.join(VERSIONS)}")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    tools = [installed(name) for name in args.tools or VERSIONS]
    if args.install:
        return
    with tempfile.TemporaryDirectory() as folder:
        own = ours(Shape(RATE, MANY / RATE, TOKENS, PACE), Path(folder) / "ours")[0]
    print(f"{own.name:10} {own.tokens:7} tokens, {own.cpu_s:6.2f} CPU s: {own.per_cpu_s:8,.0f} tokens per CPU s")
    for tool in tools:
        (few_s, few), (many_s, many) = cpu_s(tool, FEW), cpu_s(tool, MANY)
        per_s = (many - few) / (many_s - few_s)
        said = f"{tool.name:10} {many - few:7} tokens, {many_s - few_s:6.2f} CPU s: {per_s:8,.0f} tokens per CPU s"
        print(f"{said} (and {few_s:.1f} CPU s for the first {FEW} requests, its start included)", flush=True)


if __name__ == "__main__":
    main()
