"""What is no secret stays as it is: a false alarm eats the user's code."""

from __future__ import annotations

import importlib
import random
from pathlib import Path

import pytest

from daskscope.privacy.scrubber import Scrubber
from tests.plugin.rig import settings

N_LINES = 10_000
PACKAGES = ("dask", "distributed", "numpy", "pandas", "fsspec", "pyarrow")


def lines_of(package: str) -> list[str]:
    folder = Path(importlib.import_module(package).__file__ or "").parent
    texts = (path.read_text(errors="replace") for path in sorted(folder.rglob("*.py")))
    return [line for text in texts for line in text.splitlines() if line.strip()]


def log_lines(n: int) -> list[str]:
    """As Dask and its neighbours log."""
    of = random.Random(7)
    hashes = [f"{of.getrandbits(128):032x}" for _ in range(50)]
    templates = (
        "Event loop was unresponsive in Worker for {f:.2f}s.  This is often caused by functions that hold the GIL",
        "Register worker addr: tcp://10.0.{a}.{b}:{port} name: {n}",
        "Task ('read-parquet-{h}', {n}) marked as failed because {a} workers died while trying to run it",
        "Removing worker 'tcp://10.0.{a}.{b}:{port}' caused the cluster to lose computed task(s): {{'sum-{h}'}}",
        "Couldn't gather keys: {{('shuffle-transfer-{h}', {n}): 'memory'}}",
        "Sending large graph of size {f:.2f} MiB. This may cause some slowdown. Consider loading it with Dask",
        "Connection to tls://scheduler-{n}.default.svc:8786 has been closed. Token refresh is due in {n} s",
        "Compute Failed Key: getitem-{h} Function: execute_task args: ((subgraph_callable, 'key', {n}))",
        "GET /api/v1/clusters/{h}?page={n}&sort_key=name 200 {f:.1f}ms",
        "Worker process {port}{n} was killed by signal 9; key={h}, n_tokens={n}",
        "{n} tokens, {a} authors, password reset for user {b} done, author=ada keys={n}",
        "2026-11-21 10:{a:02d}:{b:02d},{n:03d} - distributed.nanny - WARNING - Restarting worker",
        "run {h}: epoch {n}, {f} tokens/s, secretary informed, passed {a} of {b} tests, passing dtype=float64",
    )
    return [
        of.choice(templates).format(
            a=of.randrange(60), b=of.randrange(60), n=of.randrange(1000), port=of.randrange(30_000, 60_000),
            f=of.random() * 100, h=of.choice(hashes),
        )
        for _ in range(n)
    ]  # fmt: skip


def touched(lines: list[str]) -> list[str]:
    scrubber = Scrubber(settings(token="t0ken-of-this-cluster"))
    return [line for line in lines if scrubber.text(line) != line]


@pytest.mark.parametrize("package", PACKAGES)
def test_of_10_000_lines_of_code_at_most_one_in_a_hundred_is_touched(package: str) -> None:
    lines = random.Random(0).choices(lines_of(package), k=N_LINES)
    found = touched(lines)
    assert len(found) <= 0.01 * N_LINES, found


def test_of_10_000_log_lines_none_is_touched() -> None:
    assert not touched(log_lines(N_LINES))


def test_a_whole_module_keeps_its_lines() -> None:
    """As pieces of code come: Dask's own modules, which speak of tokens, keys and authors on every page."""
    scrubber = Scrubber(settings())
    folder = Path(importlib.import_module("distributed").__file__ or "").parent
    n_lines = n_touched = 0
    for path in sorted(folder.glob("*.py")):
        text = path.read_text()
        before, after = text.splitlines(), scrubber.text(text).splitlines()
        assert len(before) == len(after)
        n_lines += len(before)
        n_touched += sum(old != new for old, new in zip(before, after, strict=True))
    assert n_lines > 10_000
    assert n_touched <= 0.001 * n_lines


KEPT = [
    "password = get_password()",
    "token: str",
    "def f(token: str | None = None, *, password: Optional[str] = None) -> None:",
    "self.tokens = []",
    "n_tokens=5, max_token=7, token_count=3",
    "tokenize(x), detokenize(y)",
    "key=lambda x: x, sort_key='name', cache_key = 'a1b2c3'",
    "session = Session()",
    "auth=None, token=None, secret=True",
    "token = tokens[i]",
    "connect(password=password, token=self.token, secret=cfg.secret)",
    "token = os.environ['API_TOKEN']",
    "api_key = os.getenv('API_KEY')",
    "password = getpass('Password: ')",
    'url = f"postgresql://{user}:{password}@{host}/db"',
    'headers = {"Authorization": f"Bearer {token}"}',
    "secret = Variable.get('db')",
    "password: SecretStr",
    "print('password:', password, 'ok')",
    'password = ""',
    "token=${TOKEN}, password=<password>, secret=***, api_key=%s",
    "required = ['user', 'password', 'host']",
    "barrier_token = 'barrier-' + tokenize(df)",
    "('sum-0123456789abcdef0123456789abcdef', 4)",
    "5f0c9f2e-1234-4321-8000-000000000001",
    "x = [4220, 3150, 8182, 4034]",
    "1763719200000 1763719200000000000",
    "tcp://10.0.0.1:8786 inproc://10.0.0.1/1234/1 http://host:8787/status",
    "assert token == expected_token",
    "ada@example.com wrote: see @property",
    "PWD=/home/ada OLDPWD=/tmp",
    "if not password: raise ValueError('no password given')",
    "Unexpected token: identifier",
    "the author was asked to authenticate; password is required",
    "map_blocks(f, token='store-map')",
    # Notebooks and SQL: columns, types and names of files.
    "ticks.groupby('token').agg({'key': 'sum'})",
    "ticks.astype({'token': 'float32', 'session_id': 'string[pyarrow]', 'auth': 'int16'})",
    "pl.Schema({'token': pl.Utf8, 'session_id': pl.Int64})",
    "ticks.rename(columns={'token': 'coin2'})",
    "SELECT token, count(*) FROM trades WHERE token = 'DAI2' GROUP BY token",
    "SELECT * FROM visits WHERE session_id = 'v1042' AND auth = 'EPSG3857'",
    "da.from_array(x, token='b2c4d6')",
    "Security(tls_client_key='/etc/dask/client2.pem', private_key='~/.ssh/id_lab3')",
    "dks_total = frame.dks_price.sum() + frame.dks_volume_2024.sum()",
    "conda install sk-image-extras-2024 sk-learn-contrib-py311",
    "order 4012888888881881 of 5500000000000004",
    "ssm.get_parameter(SecretId='prod/db2')",
    "login (user) password reset",
    "password_field = Field(min_length=8), token_url='https://login.example.com/oauth2/token'",
    "with st.form('login'):\n    password = st.text_input('Password', type='password')",
    "connect(user=user, password=db_password, secret=my_secret, pwd=row.pwd)",
    "for password in passwords:\n    try:\n        pass",
    "if password:\n    return",
]


def test_what_only_names_a_secret_stays() -> None:
    assert touched(KEPT) == []
