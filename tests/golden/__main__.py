"""`python -m tests.golden`: run every case and compare it with the expected files."""

import argparse
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from tests.golden.cases import CASES
from tests.golden.command import shared_ray
from tests.golden.compare import check_case, write_expected
from tests.golden.record import record_answers
from tests.golden.servers import serve
from tests.without_ray import without_ray


def main() -> int:
    """Run the command.

    Returns:
        Exit code: 1 if a case differs or fails.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--update", action="store_true", help="rewrite the expected files")
    parser.add_argument("-k", dest="name", default="", help="only cases whose name contains this")
    parser.add_argument("--keep", metavar="FOLDER", help="work in this folder and keep the files of the cases")
    parser.add_argument("--without-ray", action="store_true", help="run without Ray, as `make test` does (faster)")
    parser.add_argument("--record", action="store_true", help="record the bundled verifier's answers again (needs vLLM)")
    options = parser.parse_args()
    if options.record:
        with tempfile.TemporaryDirectory() as scratch:
            print(f"{record_answers(Path(scratch))} prompts recorded")
        return 0
    selected = [case for case in CASES if options.name in case.name]
    failed = []
    with tempfile.TemporaryDirectory() as scratch, serve() as servers, shared_ray():
        for case in selected:
            folder = Path(options.keep or scratch) / case.name
            folder.mkdir(parents=True)
            started = time.monotonic()
            with without_ray() if options.without_ray and not case.needs_ray else nullcontext():
                outcome = check_case(case, folder, servers)
            if options.update and not outcome.fault and outcome.diff:
                write_expected(case.name, outcome.texts)
            differs = "updated" if options.update else "differs"
            state = "fault" if outcome.fault else differs if outcome.diff else "same"
            print(f"{case.name}: {state} ({time.monotonic() - started:.1f} s)", flush=True)
            if state in {"fault", "differs"}:
                failed.append(case.name)
                print(outcome.fault or outcome.diff, flush=True)
    names = f"; failed: {', '.join(failed)}" if failed else ""
    print(f"{len(selected) - len(failed)} of {len(selected)} cases as expected{names}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
