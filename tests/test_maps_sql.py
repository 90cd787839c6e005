"""A map as SQL gives what it gives in Python: random maps, random and awkward scores, in every engine at hand."""

from __future__ import annotations

import glob
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

import calibrant as ca
from calibrant.errors import InputError
from calibrant.maps import (
    AffineLogitMap,
    IdentityMap,
    LineMap,
    Map,
    MixtureMap,
    OneVsRestMap,
    PlattMap,
    StepMap,
    TemperatureMap,
)
from calibrant.maps._sql import sql_expression, sql_of

LARGEST = sys.float_info.max
PAIR = (0, 1)
AWKWARD_P = [0.0, 1.0, 5e-324, 1e-300, 1e-40, 1e-38, 1.1754943508222875e-38, 1e-17, 0.5, 1 - 2**-53, 1 + 5e-7, -5e-7]
AWKWARD = [*AWKWARD_P, -0.0, -5e-324, 1e-308, 17.0, -745.0, -1e5, 1e18, -1e200, LARGEST, -LARGEST]


def _platts() -> list[Map]:
    pairs = [
        (1.3, -0.2),
        (-3.0, 2.0),
        (0.0, 0.7),
        (1e-320, 0.0),
        (1e300, -1.0),
        (1e-300, 1e4),
        (2.0, 1e300),
        (0.3, 0.0),
    ]
    return [PlattMap(PAIR, slope, intercept) for slope, intercept in pairs]


def _affines() -> list[Map]:
    pairs = [(0.4, 0.1), (1.0, 0.0), (30.0, -3.0), (-2.0, 0.0), (1e300, 1.0), (0.0, -900.0), (1e-310, 0.0)]
    return [AffineLogitMap(PAIR, *pair, logits) for pair in pairs for logits in (False, True)]


def _temperatures() -> list[Map]:
    cells = [(0.7, 0.0), (1e9, 0.0), (1e-9, 0.01), (1.0, 0.5), (0.0, 0.0)]
    return [TemperatureMap(PAIR, beta, mix, logits) for beta, mix in cells for logits in (False, True)]


def _rising(rng: np.random.Generator, size: int, scale: float) -> np.ndarray:
    return np.unique(rng.normal(0, scale, size))


def _pieces() -> list[Map]:
    rng = np.random.default_rng(5)
    made: list[Map] = [StepMap(PAIR, [], [0.25]), StepMap(PAIR, [0.5], [0.0, 1.0]), LineMap(PAIR, [0.5], [0.25])]
    for size, scale in ((3, 1.0), (40, 0.3), (200, 1e100)):
        cuts = _rising(rng, size, scale)
        values = np.sort(rng.random(len(cuts) + 1))
        made += [StepMap(PAIR, cuts, values), LineMap(PAIR, cuts, values[1:])]
    close = np.array([0.3, np.nextafter(0.3, 1), 0.3 + 1e-15, 0.4])
    tiny = np.array([0.0, 5e-324, 1e-310, 1e-20, 0.5])
    wide = np.array([-LARGEST, -1.0, LARGEST])
    for knots in (close, tiny, wide, np.array([-LARGEST, LARGEST])):
        values = np.linspace(0, 1, len(knots))
        made += [LineMap(PAIR, knots, values), LineMap(PAIR, knots, values[::-1]), StepMap(PAIR, knots[1:], values)]
    return made


def _mixtures() -> list[Map]:
    steps, lines = StepMap(PAIR, [0.2, 0.7], [0.0, 0.3, 1.0]), LineMap(PAIR, [0.1, 0.9], [0.0, 0.8])
    parts = (AffineLogitMap(PAIR, 0.5, 0.1), IdentityMap(PAIR, 1e-3), steps, lines, PlattMap(PAIR, 4.0, -2.0))
    inner = MixtureMap(PAIR, [0.5, 0.5], (steps, lines))
    nested = MixtureMap(PAIR, [1 - 1e-20, 1e-20], (inner, IdentityMap(PAIR)))
    return [MixtureMap(PAIR, [0.3, 0.2, 0.1, 0.15, 0.25], parts), inner, nested]


def _fitted() -> list[Map]:
    """Maps of every smooth calibrator and of Venn-Abers, as fits leave them."""
    rng = np.random.default_rng(11)
    z = rng.normal(-0.3, 2.0, 3000)
    y = rng.random(3000) < 1 / (1 + np.exp(-(0.6 * z + 0.1 * z**2 / (1 + np.abs(z)))))
    p = 1 / (1 + np.exp(-z))
    p[:30], p[30:50] = 0.0, 1.0
    of_p = [ca.AffineLogit(), ca.TemperatureScaling(mix=True), ca.QuadraticLogit(), ca.BetaCalibration()]
    of_p += [ca.SplineCalibration(), ca.VennAbers(), ca.AutoCalibrator()]
    of_z = [ca.AffineLogit(True), ca.QuadraticLogit(True), ca.SplineCalibration(from_logits=True), ca.VennAbers()]
    return [one.fit(p, y).map_ for one in of_p] + [one.fit(z, y).map_ for one in of_z]


IDENTITIES: list[Map] = [IdentityMap(PAIR, mix, logits) for mix in (0.0, 0.01, 1.0) for logits in (False, True)]
MAPS = [*IDENTITIES, *_platts(), *_affines(), *_temperatures(), *_pieces(), *_mixtures(), *_fitted()]


def scores_for(record: Map) -> np.ndarray:
    """Random and awkward scores that the map accepts, and its own thresholds with their neighbours."""
    rng = np.random.default_rng(7)
    own = np.concatenate([*_knots(record), [0.0]])
    around = np.concatenate([own, np.nextafter(own, LARGEST), np.nextafter(own, -LARGEST), own / 2, own * 0.999])
    drawn = np.concatenate([rng.random(200), rng.random(100) ** 20, 1 - rng.random(50) ** 20])
    if record.reads == "probability":
        every = np.concatenate([AWKWARD_P, around, drawn])
        return every[(every >= -1e-6) & (every <= 1 + 1e-6)]
    every = np.concatenate([AWKWARD, around, drawn, rng.normal(0, 3, 200), rng.normal(0, 1e4, 100)])
    return every[np.isfinite(every)]


def _knots(record: Map) -> list[np.ndarray]:
    if isinstance(record, MixtureMap):
        return [cuts for part in record.maps for cuts in _knots(part)]
    return [np.asarray(getattr(record, name)) for name in ("thresholds", "knots") if hasattr(record, name)]


def assert_agree(record: Map, scores: np.ndarray, found: list[float]) -> None:
    expected = record(scores)
    got = np.array(found, dtype=np.float64)
    assert not np.isnan(got).any(), scores[np.isnan(got)][:5]
    gap = np.abs(got - expected)
    worst = int(gap.argmax())
    assert gap[worst] <= 1e-12, (scores[worst], expected[worst], got[worst])
    assert got.min() >= 0
    assert got.max() <= 1
    ends = (scores == 0) | (scores == 1)
    assert np.allclose(got[ends], expected[ends], rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("record", MAPS, ids=lambda record: record.kind)
def test_duckdb_agrees_with_python(record: Map) -> None:
    scores = scores_for(record)
    sql = record.to_sql('the "score"')
    with duckdb.connect(config={"threads": 1}) as engine:
        engine.execute('CREATE TABLE t AS SELECT unnest(?::DOUBLE[]) AS "the ""score"""', [scores.tolist()])
        found = engine.execute(f"SELECT {sql} FROM t").fetchall()
    assert_agree(record, scores, [row[0] for row in found])


@pytest.fixture(scope="module")
def sqlite() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("SELECT ln(exp(1.0))")
    except sqlite3.OperationalError:
        connection.close()
        pytest.skip("this SQLite has no mathematical functions")
    yield connection
    connection.close()


@pytest.mark.parametrize("record", MAPS, ids=lambda record: record.kind)
def test_sqlite_agrees_with_python(record: Map, sqlite: sqlite3.Connection) -> None:
    assert_sqlite_agrees(record, sqlite)


def assert_sqlite_agrees(record: Map, sqlite: sqlite3.Connection) -> None:
    scores = scores_for(record)
    scores = scores[(np.abs(scores) > 1e-280) | (scores == 0)]  # SQLite reads smaller constants to an ulp or two
    sqlite.execute('CREATE TABLE t ("s" REAL)')
    sqlite.executemany("INSERT INTO t VALUES (?)", [(score,) for score in scores.tolist()])
    found = sqlite.execute(f"SELECT {record.to_sql('s', 'sqlite')} FROM t").fetchall()
    sqlite.execute("DROP TABLE t")
    assert_agree(record, scores, [row[0] for row in found])


# ---------------------------------------------------------------- PostgreSQL, where it is installed


class Postgres:
    """A server of its own in a temporary folder, without network."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.folder, self.binaries = folder, binaries
        self.user = "nobody" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(folder, self.user)
        self.run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", "tester", "--no-sync")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        self.run("pg_ctl", "-D", str(folder / "data"), "-w", "-l", str(folder / "log"), "-o", options, "start")

    def run(self, name: str, *arguments: str, given: str = "") -> str:
        command = [str(self.binaries / name), *arguments]
        done = subprocess.run(
            command, input=given, text=True, capture_output=True, user=self.user, cwd=self.folder, timeout=60,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )  # fmt: skip
        if done.returncode:
            raise OSError(done.stderr)
        return done.stdout

    def query(self, sql: str) -> list[str]:
        options = ["-h", str(self.folder), "-U", "tester", "-d", "postgres", "-AtqX", "-v", "ON_ERROR_STOP=1"]
        return self.run("psql", *options, given=sql).splitlines()

    def stop(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    folders = [Path(found).parent for found in sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))]
    if not folders:
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="calibrant-"))  # short, because the name of a socket must be
    try:
        server = Postgres(folder, folders[-1])
    except (OSError, KeyError, subprocess.SubprocessError) as reason:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"PostgreSQL does not start here: {reason}")
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def test_postgres_agrees_with_python(postgres: Postgres) -> None:
    assert_postgres_agrees(MAPS, postgres)


def assert_postgres_agrees(records: list[Map], postgres: Postgres) -> None:
    for record in records:
        scores = scores_for(record)
        rows = ", ".join(f"({place}, '{score!r}'::float8)" for place, score in enumerate(scores.tolist()))
        sql = f"SELECT {record.to_sql('s', 'postgres')} FROM (VALUES {rows}) AS t(place, s) ORDER BY place;"
        assert_agree(record, scores, [float(text) if text else math.nan for text in postgres.query(sql)])


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("record", [MAPS[0], PlattMap(PAIR, 1.0, 0.0), StepMap(PAIR, [0.5], [0.1, 0.9])])
def test_what_is_no_score_gives_null(record: Map) -> None:
    sql = sql_of(record, "s")
    wrong = ["NULL", "'nan'", "'inf'", "'-inf'", *(["1.1", "-0.2"] if record.reads == "probability" else [])]
    for value in wrong:
        assert duckdb.execute(f"SELECT {sql} FROM (SELECT {value}::DOUBLE AS s)").fetchall() == [(None,)]


def test_sqlite_gives_null_for_text(sqlite: sqlite3.Connection) -> None:
    sql = sql_expression(StepMap(PAIR, [0.5], [0.1, 0.9]), "s", "sqlite")
    rows = sqlite.execute(f"SELECT {sql} FROM (SELECT '0.7' AS s UNION ALL SELECT NULL UNION ALL SELECT 1)").fetchall()
    assert rows == [(None,), (None,), (0.9,)]


def test_names_are_quoted() -> None:
    record = IdentityMap(PAIR)
    assert '"a"";DROP"' in record.to_sql('a";DROP')
    assert "`a``b`" in record.to_sql("a`b", "spark")


def test_constants_are_doubles() -> None:
    record = StepMap(PAIR, [0.1], [0.25, 0.75])
    assert duckdb.execute(f"SELECT typeof({sql_of(record, '0.3e0')})").fetchall() == [("DOUBLE",)]
    assert "0.1D" in sql_of(record, "s", "spark")
    assert "'0.1'::float8" in sql_of(record, "s", "postgres")


def test_an_everyday_map_reads_well() -> None:
    sql = AffineLogitMap(PAIR, 0.5, 0.25).to_sql("p")
    assert sql == (
        'CASE WHEN "p" >= (-1e-06) AND "p" <= 1.000001e0 THEN 1.0e0 / (1.0e0 + exp(-(0.25e0 + (0.5e0 * '
        '(CASE WHEN "p" >= 1.0e0 THEN 87.3365447505531e0 WHEN "p" <= 1.1754943508222875e-38 THEN '
        '(-87.3365447505531e0) ELSE ln("p" / (1.0e0 - "p")) END))))) END'
    )


def test_a_map_of_many_classes_needs_its_columns() -> None:
    part = IdentityMap(PAIR)
    with pytest.raises(InputError, match=r"maps of two classes, but this map 'one_vs_rest' has 3 .*list of columns"):
        OneVsRestMap(("a", "b", "c"), (part, part, part)).to_sql("p")
    with pytest.raises(InputError, match="dialect must be one of 'duckdb'"):
        part.to_sql("p", "oracle")  # type: ignore[arg-type]


def test_a_map_without_sql_says_so() -> None:
    assert "There is no SQL" in str(_refusal())


def _refusal() -> InputError:
    from calibrant.maps._records import _BinaryTemperature

    class Unknown(_BinaryTemperature):
        kind = "unknown"

    try:
        with pytest.raises(InputError) as caught:
            sql_of(Unknown(PAIR, TemperatureMap(PAIR, 1.0)), "p")
        return caught.value
    finally:
        Map.kinds.pop("unknown")
