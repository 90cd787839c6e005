"""Queries of the engine end when they are asked to, whether or not anyone watches them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

GROUPS = "SELECT hash(range), count(*) FROM range(40_000_000_000) GROUP BY ALL"
TERMS = ", ".join(f"sqrt(range + {k}) * CASE WHEN range % {k + 2} = 0 THEN {k} ELSE range END" for k in range(6000))
PLANNED_LONG = f"SELECT sum(list_sum([{TERMS}])) FROM range(40_000_000_000)"


@pytest.mark.skipif(os.name != "posix", reason="signals of another kind")
@pytest.mark.parametrize("progress", ["None", "lambda share: None"], ids=["unwatched", "watched"])
@pytest.mark.parametrize("sql", [GROUPS, PLANNED_LONG], ids=["while rows are grouped", "while the query is planned"])
def test_an_interrupted_query_ends_soon_and_leaves_no_folder(tmp_path, progress, sql):
    program = (
        "import sys\nfrom calibrant.data._engine import Engine\n"
        f"with Engine(progress={progress}) as engine:\n    engine.rows('SELECT 1')\n"
        "    print('begun', flush=True)\n    engine.rows(sys.stdin.read())"
    )
    command = [sys.executable, "-c", program]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)}, text=True, **pipes) as process:
        try:
            assert process.stdout.readline() == "begun\n"
            process.stdin.write(sql)
            process.stdin.close()
            time.sleep(0.1)  # sooner than the second query can be planned
            assert process.poll() is None
            assert list(tmp_path.iterdir())
            process.send_signal(signal.SIGINT)
            process.wait(20)
        finally:
            process.kill()
        assert "KeyboardInterrupt" in process.stderr.read()
    assert list(tmp_path.iterdir()) == []
