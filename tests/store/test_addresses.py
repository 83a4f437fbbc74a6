"""No output has a secret of a database's address: it is shown as its kind, host and name."""

import traceback
from urllib.parse import quote

import pytest

import bayesbandit as bb

pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")

from bayesbandit.runtime.addresses import hidden, shown
from tests.cases import all_quick
from tests.commands import run

SECRET = "s3cr3t"
PLACES = {  # by what goes wrong
    "nobody listens": "127.0.0.1:1/offers",
    "a port that is too large": "127.0.0.1:99999/offers",
    "a port that is no number": "127.0.0.1:port/offers",
    "no database": "127.0.0.1:1",
    "a socket that is not there": "/offers?host=/nowhere",
    "a wrong option": "127.0.0.1:1/offers?sslmode=sometimes",
    "an unknown option": "127.0.0.1:1/offers?nonsense=1",
}
SCHEMES = "postgres", "POSTGRES", "postgresql+psycopg", "postgresql+asyncpg", "mysql"
USERS = {
    "a password": f"admin:{SECRET}@",
    "a password alone": f":{SECRET}@",
    "a user that is the secret": f"{SECRET}@",
    "a quoted password": f"admin:{quote('@/?:' + SECRET, safe='')}@",
    "a password with @": f"admin:x@{SECRET}@",
    "a password with /": f"admin:x/{SECRET}@",
    "a password with @ and /": f"admin:x@{SECRET}/{SECRET}@",
    "a password with ?": f"admin:x?{SECRET}@",
    "a password with #": f"admin:x#{SECRET}@",
    "a password with a blank": f"admin:x {SECRET}@",
    "a password in quotes": f"admin:'{SECRET}'@",
}
QUERIES = (
    *(f"password={SECRET}", f"PASSWORD={SECRET}", f"sslpassword={SECRET}", f"pass={SECRET}"),
    *(f"options=-c%20{SECRET}", f"password=a@{SECRET}", f"user={SECRET}"),
)
ADDRESSES = [
    *(f"{scheme}://{user}127.0.0.1:1/offers" for scheme in SCHEMES for user in USERS.values()),
    *(f"postgres://{USERS['a password']}{place}" for place in PLACES.values()),
    *(f"postgresql+psycopg://127.0.0.1:1/offers?{query}" for query in QUERIES),
    *(f"postgresql+psycopg:///offers?host=/nowhere&{query}" for query in QUERIES),
    *(f"sqlite:////nowhere/offers.db?{query}" for query in QUERIES),
    f"sqlite+pysqlcipher://:{SECRET}@/offers.db",
    f"host=127.0.0.1 user=admin password={SECRET}",
    f"postgresql://admin:{SECRET}/offers",
    f"postgresql:/admin:{SECRET}@127.0.0.1/offers",
    f"admin:{SECRET}@127.0.0.1/offers",
]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("DecisionLog('postgresql:///run/pg/log0') decides",) * 2,
        ("see https://a.b/c?d=1 and s3://bucket/key).",) * 2,
        ("password authentication failed",) * 2,
        ("Log('mysql://u:p@ss)w@h/d'), and", "Log('mysql://h/d'), and"),
        ("(user=postgres database=log0)", "(user=*** database=log0)"),
        ('FATAL: role "a b" does not exist', "FATAL: role *** does not exist"),
        ('failed for user "admin", role of a user', "failed for user ***, role of a user"),
    ],
)
@all_quick()
def test_what_stands_about_an_address_stays(text, seen):
    assert hidden(text) == seen


def chain(error):
    """An error and all those behind it, also those that Python keeps and does not print."""
    found, rest = [], [error]
    while rest:
        one = rest.pop()
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            rest += [one.__cause__, one.__context__, getattr(one, "orig", None)]
    return found


def test_no_error_has_the_secret_of_an_address():
    told = []
    for url in ADDRESSES:
        with pytest.raises((ValueError, OSError, ImportError)) as caught:
            bb.DecisionLog(url)
        texts = [text for one in chain(caught.value) for text in (str(one), repr(one))]
        texts += traceback.format_exception_only(caught.value)
        told += [(url, text) for text in texts if SECRET in text]
    assert not told


@pytest.mark.parametrize("url", [*ADDRESSES[::9], f"sqlite+pysqlcipher://:{SECRET}@/offers.db"])
@pytest.mark.parametrize(
    "words", [["learn", "--once", "--log"], ["report", "--log"], ["evaluate"], ["learn"]]
)
def test_no_command_prints_the_secret_of_an_address(words, url, tmp_path, monkeypatch):
    """Also where it is no option's value, but a word too many."""
    monkeypatch.chdir(tmp_path)
    found = run(*words, url)
    assert found.exit_code == 2
    assert SECRET not in found.said
    assert SECRET not in "".join(found.output.split())  # over the ends of lines
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgres://u:p@db.example.org:5432/offers", "postgres://db.example.org:5432/offers"),
        ("postgresql+psycopg://u:p@[::1]:5/a", "postgresql://[::1]:5/a"),
        ("postgresql:///offers?host=/run/pg&user=u", "postgresql:///run/pg/offers"),
        ("sqlite:///offers.db?mode=rw", "sqlite:///offers.db"),
        ("sqlite:////data/a@b/offers.db", "sqlite:////data/a@b/offers.db"),
        ("postgresql://u:p@h/d?password=a@b", "postgresql://…"),
        ("postgresql://h:secret/d", "postgresql://…"),
    ],
)
def test_an_address_is_shown_as_host_and_name(url, said):
    assert shown(url) == said
    assert hidden(f"at {url} there") == f"at {said} there"


def test_postgres_is_postgresql_by_psycopg():
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        with pytest.raises(ConnectionError, match=r"postgresql://127\.0\.0\.1:1/d cannot be read"):
            bb.DecisionLog(f"{scheme}://u:p@127.0.0.1:1/d")


def test_a_log_and_its_parts_do_not_print_what_stands_in_a_query(tmp_path):
    from bayesbandit.store.database import Database

    with pytest.warns(RuntimeWarning, match="password") as told:
        log = bb.DecisionLog(f"sqlite:///{tmp_path}/offers.db?password={SECRET}")
    with log:
        assert isinstance(log.ledger.database, Database)
        for part in (log, log.ledger, log.ledger.database):
            assert SECRET not in f"{part!r} {part}"
    assert SECRET not in str([str(one.message) for one in told])
