"""Secrets as people write them, made anew for each test: no file of ours holds anything that a scanner could take for
a live one. `planted(seed)` gives texts, where each would be found, and the secrets in it.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + "234567"


@dataclass(frozen=True)
class Planted:
    place: str
    """`code`, `traceback`, `log`, `exception`, `payload`, `command`, `configuration`, `link`."""
    text: str
    secrets: tuple[str, ...]


class Maker:
    """Random secrets of the forms that people and services make them in."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, letters: str, length: int) -> str:
        return "".join(self.random.choices(letters, k=length))

    def password(self) -> str:
        """What a generator, a manager of passwords or a person at a keyboard comes up with."""
        words = ("falcon", "winter", "Berlin", "rhubarb", "Monday", "copper")
        kinds: list[Callable[[], str]] = [
            lambda: self.of(ALNUM, 12) + str(self.random.randrange(10)),
            lambda: self.random.choice(words) + str(self.random.randrange(10, 10_000)),
            lambda: self.random.choice(words) + "_" + str(self.random.randrange(100)) + self.random.choice("!$#"),
            lambda: self.of(ALNUM + "!%^*-_+.", 20) + "7",
            lambda: "-".join(self.random.sample(words, 3)) + "-" + str(self.random.randrange(10, 99)),
        ]
        return self.random.choice(kinds)()

    def token(self) -> str:
        return self.of(ALNUM + "-_", self.random.choice((24, 32, 43))) + "4kQ"

    def key_of(self, service: str) -> str:
        """By the form that its maker publishes."""
        of = self.of
        forms: dict[str, Callable[[], str]] = {
            "aws": lambda: "AK" + "IA" + of(UPPER, 16),
            "aws-session": lambda: "AS" + "IA" + of(UPPER, 16),
            "github": lambda: "gh" + "p_" + of(ALNUM, 36),
            "github-oauth": lambda: "gh" + "o_" + of(ALNUM, 36),
            "github-fine": lambda: "github" + "_pat_" + of(ALNUM, 22) + "_" + of(ALNUM, 59),
            "gitlab": lambda: "gl" + "pat-" + of(ALNUM + "_-", 20),
            "slack": lambda: "xo" + "xb-" + of(string.digits, 12) + "-" + of(string.digits, 12) + "-" + of(ALNUM, 24),
            "slack-user": lambda: "xo" + "xp-" + of(string.digits, 11) + "-" + of(ALNUM, 32),
            "stripe": lambda: "sk" + "_live_" + of(ALNUM, 24),
            "openai": lambda: "sk" + "-proj-" + of(ALNUM + "_-", 48) + "9Z",
            "anthropic": lambda: "sk" + "-ant-api03-" + of(ALNUM + "_-", 86) + "AA",
            "huggingface": lambda: "h" + "f_" + of(string.ascii_letters, 34),
            "npm": lambda: "np" + "m_" + of(ALNUM, 36),
            "pypi": lambda: "py" + "pi-AgEIcHlwaS5vcmc" + of(ALNUM + "_-", 70),
            "google": lambda: "AI" + "za" + of(ALNUM + "_-", 35),
            "google-oauth": lambda: "ya" + "29." + of(ALNUM + "_-", 60),
            "sendgrid": lambda: "S" + "G." + of(ALNUM + "_-", 22) + "." + of(ALNUM + "_-", 43),
            "databricks": lambda: "da" + "pi" + of(HEX, 32),
            "vault": lambda: "hv" + "s." + of(ALNUM, 24),
            "jwt": self.jwt,
            "card": self.card,
        }
        return forms[service]()

    def aws_secret(self) -> str:
        return self.of(ALNUM + "/+", 37) + "aZ3"

    def azure_key(self) -> str:
        return base64.b64encode(self.random.randbytes(64)).decode()

    def jwt(self) -> str:
        def part(value: object) -> str:
            return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

        head, body = {"alg": "HS256", "typ": "JWT"}, {"sub": self.of(ALNUM, 12), "iat": 1_700_000_000}
        return ".".join((part(head), part(body), self.of(ALNUM + "_-", 43)))

    def card(self) -> str:
        digits = [4, *(self.random.randrange(10) for _ in range(14))]
        total = sum(digits[-2::-2]) + sum(d * 2 - 9 * (d > 4) for d in digits[-1::-2])
        text = "".join(map(str, [*digits, -total % 10]))
        return self.random.choice(" -").join(text[n : n + 4] for n in range(0, 16, 4))

    def block(self) -> tuple[str, tuple[str, ...]]:
        """A private key as PEM, and its lines."""
        lines = [base64.b64encode(self.random.randbytes(48)).decode() for _ in range(6)]
        kind = self.random.choice(("RSA ", "EC ", "OPENSSH ", ""))
        start, end = (f"-----{word} {kind}PRIVATE" + " KEY-----" for word in ("BEGIN", "END"))
        return "\n".join((start, *lines, end)), tuple(lines)


SERVICES = ("aws", "aws-session", "github", "github-oauth", "github-fine", "gitlab", "slack", "slack-user", "stripe",
            "openai", "anthropic", "huggingface", "npm", "pypi", "google", "google-oauth", "sendgrid", "databricks",
            "vault", "jwt", "card")  # fmt: skip
BARE = (
    ("log", "could not log in with {}"),
    ("exception", "PermissionError: 403 for {}: expired"),
    ("code", 'client = connect("db-1", {!r}, retries=3)'),
)
"""For what is known by its form alone."""

# {p}: a password, {w}: one that is a word, {c}: digits of a card,
# {t}: a token, {k}: a key of AWS, {s}: its secret, {a}: a key of Azure.
TEMPLATES: tuple[tuple[str, str], ...] = (
    ("code", 's3 = boto3.client("s3", aws_access_key_id="{k}", aws_secret_access_key="{s}")'),
    ("code", 'session = boto3.Session("{k}", "{s}", region_name="eu-west-1")'),
    ("code", 'df = dd.read_parquet("s3://b/x", storage_options={{"key": "{t}", "secret": "{p}"}})'),
    ("code", "fs = s3fs.S3FileSystem(key='{t}', secret='{p}', client_kwargs={{'endpoint_url': 'http://minio:9000'}})"),
    ("code", 'options = dict(account_name="lake", account_key="{a}")'),
    ("code", 'engine = create_engine("postgresql+psycopg2://etl:{p}@db.example.com:5432/prod", pool_size=3)'),
    ("code", 'conn = psycopg2.connect(host="db", user="etl", password="{p}")'),
    ("code", "conn = psycopg2.connect(\"host=db user=etl password={p} dbname=prod\")"),
    ("code", 'con = snowflake.connector.connect(user="me",\n    password="{p}",\n    account="xy1")'),
    ("code", 'headers = {{"Authorization": "Bearer {t}", "Accept": "application/json"}}'),
    ("code", 'r = requests.get(url, headers={{"X-Api-Key": "{t}"}}, timeout=3)'),
    ("code", 'r = requests.post(url, auth=("etl", "{p}"))'),
    ("code", 'os.environ["WANDB_API_KEY"] = "{t}"'),
    ("code", "os.environ.setdefault('MLFLOW_TRACKING_PASSWORD', '{p}')"),
    ("code", 'password = os.getenv("DB_PASSWORD", "{p}")'),
    ("code", "class Settings(BaseSettings):\n    api_token: str = \"{t}\"\n    retries: int = 3"),
    ("code", 'password: SecretStr = SecretStr("{p}")'),
    ("code", 'dbPassword = "{p}"  # TODO: vault'),
    ("code", '# the password is {p}, ask Ada\nx = 1'),
    ("code", 'config = """\n[database]\nuser = etl\npassword = {p}\n"""'),
    ("code", 'secret_key = (\n    "{t}"\n)'),
    ("code", 'fernet = Fernet(b"{t}")'),
    ("code", 'client = Minio("minio:9000", access_key="{t}", secret_key="{p}", secure=False)'),
    ("code", 'smtp.login("etl@example.com", "{p}")'),
    ("code", 'spark.conf.set("fs.s3a.secret.key", "{s}")'),
    ("code", "%env HF_TOKEN={t}"),
    ("traceback", '  File "/home/ada/etl.py", line 12, in load\n    return connect(user="etl", password="{p}")\n'
                  '           ^^^^^^^^^^^^^^^^^^\nConnectionError: refused'),
    ("traceback", '  File "job.py", line 3, in <module>\n    api = Api(token=\'{t}\', retries=2)\nValueError: no'),
    ("exception", 'OperationalError: connection to "postgresql://etl:{p}@10.0.0.7/prod" failed'),
    ("exception", "ValueError: bad option {{'user': 'etl', 'password': '{p}', 'port': 5432}}"),
    ("exception", "ClientError: Config(user='etl', api_key='{t}', region='eu') is not usable"),
    ("exception", "HTTPError: 401 for url: https://api.example.com/v1/x?access_token={t}&page=2"),
    ("exception", "RuntimeError('redis://:{p}@cache:6379/0 timed out')"),
    ("log", "login failed for user=etl password={p} host=db-1"),
    ("log", 'request {{"user": "etl", "password": "{p}", "retry": 2}} rejected'),
    ("log", "sending headers: {{'Authorization': 'Basic {b}', 'Accept': '*/*'}}"),
    ("log", "> Authorization: Bearer {t}"),
    ("log", "Set-Cookie: session={t}; Path=/; HttpOnly"),
    ("log", "GET /blob?sv=2022-11-02&sr=b&sig={u}&se=2026-01-01 200"),
    ("log", "GET https://b.s3.amazonaws.com/k?X-Amz-Credential={k}%2F20261121&X-Amz-Signature={x}&X-Amz-Expires=60"),
    ("log", "using DefaultEndpointsProtocol=https;AccountName=lake;AccountKey={a};EndpointSuffix=core.windows.net"),
    ("log", "refresh_token={t}, expires_in=3600"),
    ("log", "connecting with Server=tcp:db,1433;Database=prod;User ID=etl;Password={p};Encrypt=yes"),
    ("log", "slack webhook https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/{h} answered 404"),
    ("log", "client_secret: {t}"),
    ("payload", '{{"connection": {{"user": "etl", "password": "{p}"}}, "n": 3}}'),
    ("payload", '{{"env": [{{"name": "DB_PASSWORD", "value": "{p}"}}, {{"name": "HOME", "value": "/root"}}]}}'),
    ("payload", '{{"message": "{{\\"api_key\\": \\"{t}\\"}}"}}'),
    ("payload", '{{"auths": {{"ghcr.io": {{"auth": "{b}"}}}}}}'),
    ("payload", '{{"url": "mongodb+srv://etl:{p}@cluster0.example.net/db?w=majority"}}'),
    ("payload", '{{"headers": {{"cookie": "sid={t}"}}}}'),
    ("command", "docker run -e POSTGRES_PASSWORD={p} -p 5432:5432 postgres:16"),
    ("command", "docker login -u ada --password {p} registry.example.com"),
    ("command", "curl -u ada:{p} https://example.com/x"),
    ("command", "curl -H 'Authorization: Bearer {t}' https://example.com/x"),
    ("command", "mysql -h db -u etl -p{q} prod"),
    ("command", "python job.py --api-key={t} --workers 4"),
    ("command", "export AWS_SECRET_ACCESS_KEY={s}"),
    ("command", "PGPASSWORD={p} psql -h db -U etl -c 'select 1'"),
    ("command", "git clone https://oauth2:{t}@gitlab.example.com/team/repo.git"),
    ("command", "git clone https://{t}@github.com/team/repo.git"),
    ("configuration", "DEBUG=1\nDB_PASSWORD={p}\nDB_HOST=db\n"),
    ("configuration", 'export SNOWFLAKE_PASSWORD="{p}"'),
    ("configuration", "database:\n  user: etl\n  password: {p}\n  port: 5432\n"),
    ("configuration", "apiVersion: v1\nkind: Secret\ndata:\n  api-key: {b}\n  user: ZXRs\n"),
    ("configuration", "  env:\n  - name: API_TOKEN\n    value: {t}\n  - name: HOME\n    value: /root\n"),
    ("configuration", "[default]\naws_access_key_id = {k}\naws_secret_access_key = {s}\nregion = eu-west-1\n"),
    ("configuration", "machine github.com login ada password {t}"),
    ("configuration", "ENV API_TOKEN {t}"),
    ("configuration", "<property><name>x</name><password>{p}</password></property>"),
    ("configuration", "CREATE USER etl WITH PASSWORD '{p}';"),
    ("configuration", "ALTER USER etl IDENTIFIED BY '{p}';"),
    ("configuration", '"dsn": "Driver=ODBC;Uid=etl;Pwd={p};"'),
    ("link", "amqp://etl:{q}@rabbit:5672/vhost"),
    ("link", "smb://WORK;ada:{q}@nas/share"),
    ("link", "ftp://ada:{q}@files.example.com/in.csv"),
    ("link", "snowflake://etl:{q}@xy1/db?warehouse=w"),
    ("code", 'if password == "{p}":\n    pass'),
    ("code", 'user.set_password("{p}")'),
    ("code", "d['db']['password'] = '{p}'"),
    ("code", 'SECRETS = {{"db": "{p}", "mail": "{t}"}}'),
    ("code", 'user, password = "ada", "{p}"'),
    ("code", 'run(["job", "--password", "{p}"])'),
    ("code", 'const apiKey = "{t}";'),
    ("code", 'wandb.login(key="{t}")'),
    ("code", 'monkeypatch.setenv("API_TOKEN", "{t}")'),
    ("code", 'password = "".join(["{p}"])'),
    ("code", 'pw, user = "{p}", "ada"'),
    ("code", 'password = os.environ.get("PW") or "{p}"'),
    ("code", 'session.headers.update({{"PRIVATE-TOKEN": "{t}"}})'),
    ("code", "openai.api_key = '{t}'"),
    ("code", 'dbutils.secrets.put("scope", "{t}")'),
    ("log", "invalid password '{t}' for user ada"),
    ("log", "Password for ada: {p}"),
    ("log", "token {t} was refused"),
    ("log", "&quot;password&quot;: &quot;{p}&quot;"),
    ("log", "callback#access_token={t}&state=x"),
    ("log", "client_id=x&client_secret={t}&grant_type=code"),
    ("log", "signed in as ada with api key {t}"),
    ("exception", "KeyError: ('Authorization', 'Bearer {t}')"),
    ("exception", "OSError: jdbc:oracle:thin:etl/{t}@db:1521/x"),
    ("exception", "LoginError(user='ada', passwd='{p}')"),
    ("payload", '{{"kaggle": {{"username": "ada", "key": "{t}"}}}}'),
    ("payload", '{{"Env": ["PATH=/bin", "DB_PASSWORD={q}"]}}'),
    ("command", "kubectl create secret generic db --from-literal=password={p}"),
    ("command", "helm upgrade x --set auth.password={p}"),
    ("command", "docker build --build-arg TOKEN={t} ."),
    ("command", "redis-cli -h cache -a {q} ping"),
    ("command", 'terraform apply -var "db_password={q}"'),
    ("configuration", "//registry.npmjs.org/:_authToken={t}"),
    ("configuration", "password: |\n  {p}\nuser: ada\n"),
    ("configuration", '<add key="Password" value="{p}"/>'),
    ("configuration", "spring.datasource.password={p}"),
    ("configuration", "user,password\nada,{p}\n"),
    ("code", "setattr(options, 'db_password', '{p}')"),
    ("code", "parser.set('mail', 'password', '{p}')"),
    ("code", 'keyring.set_password("mail", "ada", "{p}")'),
    ("code", "password: 'str' = '{p}'"),
    ("code", 'secret: Annotated[str, Field(max_length=40)] = "{p}"'),
    ("code", 'password: str = Field("{p}")'),
    ("code", "db_password = field(default='{p}')"),
    ("code", "@click.option('--password', '-P', default='{p}')"),
    ("code", 'parser.add_argument("--api-token", "-t", help="of the lab", default="{t}")'),
    ("code", "password = from_vault() if production else '{p}'"),
    ("code", "password = (\n    os.getenv('DB_PASSWORD') or\n    '{p}'\n)"),
    ("code", 'password = "begin" \\\n    "{p}"'),
    ("code", "password = 'begin' + \\\n    '{p}'"),
    ("code", "password = ''.join(['begin', '{p}'])"),
    ("code", 'if "{p}" == given.password:\n    pass'),
    ("code", "logger.warning('tried password %s', '{p}')"),
    ("code", "print('the password:', '{p}')"),
    ("code", "password_ada = '{t}'"),
    ("code", "TOKEN_FORGE = '{t}'"),
    ("code", "db_pw1 = '{p}'"),
    ("code", "secrets['mail'] = '{p}'"),
    ("code", "password_by_host = {{'db-1': '{t}'}}"),
    ("code", 'licence_key = "{t}"'),
    ("code", "spark.conf.set('fs.azure.account.key.lake1.dfs.core.windows.net', '{a}')"),
    ("code", "df.to_sql('x', 'sqlite+pysqlcipher://:{q}@/data/x.db')"),
    ("code", "charge(card='{c}')"),
    ("log", "card number {c} was declined"),
    ("log", "signed in with password={w}, retries=3"),
    ("log", "Account(name=ada, password={w}, port=5432)"),
    ("log", "retry with password={w}!"),
    ("log", "Password: {w}"),
    ("log", "\x1b[33mpassword\x1b[0m=\x1b[1m{p}\x1b[0m"),
    ("log", "posting to https://discord.com/api/webhooks/123456789012345/{t}"),
    ("configuration", "mail:\n  user: ada\n  password:\n    {w}\n"),
    ("configuration", "{{password: {w}, port: 5432}}"),
    ("command", "docker login -u ada -p {p} registry.example.com"),
    ("link", "redis://{h}@cache:6379/0"),
    ("payload", '{{"passwords": ["{w}"], "n": 1}}'),
    ("payload", '{{"argv": ["--db-password", "{w}"], "pairs": [["secret", "{t}"]]}}'),
    ("configuration", "SENTRY_DSN=https://{h}@o1.ingest.sentry.io/2"),
)  # fmt: skip


def planted(seed: int) -> list[Planted]:
    """Each template, and each form in each way that is written without a name beside it."""
    maker = Maker(seed)
    found = [_filled(maker, place, template) for place, template in TEMPLATES]
    for service in SERVICES:
        for place, template in BARE:
            key = maker.key_of(service)
            found.append(Planted(place, template.format(key), (key,)))
    for place, template in (
        ("code", 'key = """{}"""\nx = 1'),
        ("log", "read {!r} from vault"),
        ("configuration", "tls.key: |\n  {}\n"),
        ("payload", '{{"private_key": "{}"}}'),
    ):
        block, lines = maker.block()
        inner = json.dumps(block)[1:-1] if place == "payload" else block
        found.append(Planted(place, template.format(inner), lines))
    return found


def _filled(maker: Maker, place: str, template: str) -> Planted:
    word = maker.random.choice(("falcon", "winter")) + str(maker.random.randrange(100, 10_000))
    made = {
        "p": maker.password(), "t": maker.token(), "q": word, "k": maker.key_of("aws"), "s": maker.aws_secret(),
        "a": maker.azure_key(), "u": maker.of(ALNUM, 40) + "%3D", "x": maker.of(HEX, 64), "h": maker.of(ALNUM, 24),
        "c": maker.card().replace(" ", "").replace("-", ""),
        "w": maker.random.choice(("swordfish", "rhubarb", "letmein", "butterfly", "trombone")),
        "b": base64.b64encode(f"ada:{maker.password()}".encode()).decode(),
    }  # fmt: skip
    used = [name for name in made if f"{{{name}}}" in template]
    return Planted(place, template.format(**made), tuple(made[name] for name in used))
