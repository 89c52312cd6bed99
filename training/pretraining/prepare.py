"""Data: ``python -m pretraining.prepare fetch`` brings what AWS publishes, ``build`` makes shards of plain text.

Exit code 0: the shards are there; 1: it failed, and the same command continues; 2: it cannot work as asked.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from . import files
from .corpus import SUFFIX
from .options import BadInputError, whole_number
from .phases import RECIPES
from .published_data import FetchError, fetch
from .text_corpus import Layout, TextDocument, description, divide, find_documents, load_tokenizer, write_shard

_SHARD_BYTES = 16 * 1024**2
"""Text of a shard, which a process holds in memory with all sequences made of it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks, and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "fetch":
            recipe = RECIPES[options.phase, "adamw"]
            target, shards = fetch(
                options.output, sequence_length=recipe.sequence_length, max_predictions=recipe.max_predictions
            )
            print(f"{target}: {len(shards):,} shards, {sum(shard.rows for shard in shards):,} sequences")
        else:
            _build(options)
    except BadInputError as error:
        print(error, file=sys.stderr)
        return 2
    except (FetchError, OSError, ValueError, BrokenProcessPool) as error:
        print(f"{error}\nNot finished. What is whole is kept for the same command.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped. What is whole is kept for the same command.", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pretraining.prepare", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--phase", type=int, choices=(1, 2), default=1, help="1: 128 tokens, 2: 512 (default: 1)")
    common.add_argument("--output", type=Path, required=True, help="directory on storage that all nodes share")
    commands.add_parser("fetch", parents=[common], help="the Wikipedia that AWS publishes, a directory in --output")
    build = commands.add_parser("build", parents=[common], help="shards in --output, of text of your own")
    build.add_argument("--text", type=Path, nargs="+", required=True, help="files: a sentence per line, blank lines")
    build.add_argument("--tokenizer", type=Path, required=True, help="directory with tokenizer.json or vocab.txt")
    build.add_argument("--sequence-length", type=whole_number(16), help="tokens of a sequence (default: of the phase)")
    build.add_argument(
        "--max-predictions", type=whole_number(1), help="masked tokens of it, at most (default: of the phase)"
    )
    build.add_argument(
        "--dupe-factor", type=whole_number(1), default=5, help="sequences made of each text (default: %(default)s)"
    )
    build.add_argument("--seed", type=int, default=12345, help="of what is hidden (default: %(default)s)")
    build.add_argument("--shards", type=whole_number(1), help="how many files (default: one for each 16 MiB of text)")
    build.add_argument("--processes", type=whole_number(1), default=os.cpu_count(), help="default: one for each core")
    return parser


def _build(options: argparse.Namespace) -> None:
    recipe = RECIPES[options.phase, "adamw"]
    layout = Layout(
        options.sequence_length or recipe.sequence_length,
        options.max_predictions or recipe.max_predictions,
        options.dupe_factor,
        options.seed,
    )
    documents = _check(options, layout)
    wanted = options.shards or -(-sum(document.size for document in documents) // _SHARD_BYTES)
    parts = divide(documents, min(wanted, len(documents) // 2))
    work = options.output.with_name(f".{options.output.name}.building")
    if not _claim_directory(work, options, layout, len(parts)):
        print(f"{options.output} is there, made of the same; nothing to do")
        return
    sequences = 0
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        tasks = [
            pool.submit(write_shard, work / f"shard-{number:05}{SUFFIX}", number, part, options.tokenizer, layout)
            for number, part in enumerate(parts)
        ]
        try:
            for number, task in enumerate(as_completed(tasks), 1):
                sequences += task.result()
                print(f"shard {number} of {len(parts)}: {sequences:,} sequences so far", flush=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    work.rename(options.output)
    files.synchronize(options.output.parent)
    print(f"{options.output}: {len(parts):,} shards, {sequences:,} sequences")


def _check(options: argparse.Namespace, layout: Layout) -> list[TextDocument]:
    """Return the documents of the text, after a look at all that can be wrong."""
    problems = []
    if layout.max_predictions >= layout.sequence_length:
        allowed = f"less than --sequence-length {layout.sequence_length}"
        problems.append(f"--max-predictions: got {layout.max_predictions}; allowed: {allowed}")
    try:
        load_tokenizer(options.tokenizer)
    except ValueError as error:
        problems.append(
            f"--tokenizer: got {options.tokenizer}: {error}; allowed: a directory with a tokenizer for BERT"
        )
    documents = []
    for path in options.text:
        try:
            documents += list(find_documents(path))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"--text: got {path}, which cannot be read ({error}); allowed: files of text in UTF-8")
    shards = options.shards or 1
    if not problems and len(documents) < 2 * shards:
        allowed = f"two documents for each shard, {2 * shards} or more, with a blank line between them"
        problems.append(f"--text: got {len(documents)} documents; allowed: {allowed}")
    if problems:
        raise BadInputError(problems)
    return documents


def _claim_directory(work: Path, options: argparse.Namespace, layout: Layout, shards: int) -> bool:
    """Make the working directory, or take that of an earlier run; return False if the shards are there.

    Raises:
        BadInputError: Other shards are there.
    """
    wanted = description(options.text, options.tokenizer, layout, shards)
    for directory in (options.output, work):
        if directory.is_dir() and any(directory.iterdir()):
            try:
                same = json.loads((directory / "build.json").read_text(encoding="utf-8")) == wanted
            except (OSError, ValueError):
                same = False
            if not same:
                raise BadInputError([f"--output: got {directory}, made of something else; allowed: a new directory"])
            return directory == work
    work.mkdir(parents=True, exist_ok=True)
    files.replace(work / "build.json", json.dumps(wanted).encode())
    return True


if __name__ == "__main__":
    sys.exit(main())
