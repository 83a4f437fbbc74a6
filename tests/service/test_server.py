"""A server: what it answers is in the log, and nothing that is sent to it harms the log."""

import asyncio
import json
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesbandit as bb

pytest.importorskip("fastapi")

from bayesbandit.service.messages import Asked
from bayesbandit.service.server import Server
from tests.cases import in_gate
from tests.commands import run
from tests.service.servers import KEY, client_of, command, httpx, serving
from tests.service.test_service import FRAME
from tests.store.databases import fresh

HOSTILE = [
    "'); DROP TABLE bandit_decisions; --", '"><script>alert(1)</script>', "𝓊nicode ünd ‮ back",
    "a\0b", "", " ", "x" * 10_000, "../../etc/passwd", "%s%n{0}${x}", "\ud800",
]  # fmt: skip
ARMS = ["mail", "call'; --", "<b>wait</b>"]


def begun(folder, *words, arms=ARMS, name="bandit"):
    bandit = folder / f"{name}.npz"
    bb.LinTS(arms, 2, seed=0).save(bandit)
    return f"sqlite:///{folder}/{name}.db", ("--bandit", bandit, *words)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A server that all tests share, and its log."""
    url, words = begun(tmp_path_factory.mktemp("server"), "--wait", "1d", "--default-reward", "0")
    with serving(url, *words, "--deadline", "10") as client, bb.DecisionLog(url) as log:
        yield client, log


def decided(client, **asked):
    answer = client.post("/decide", json={"context": [0.5, -1.0]} | asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def post(client, path, body):
    """Send a body as Python writes it: its texts may be no UTF-8."""
    return client.post(path, content=json.dumps(body))


def test_what_is_answered_is_in_the_log(shared):
    client, log = shared
    said = decided(client)
    row = log.frame().set_index("decision_id").loc[said["id"]]
    assert (row["arm"], row["propensity"]) == (said["variant"], said["propensity"])
    assert said["probabilities"] == dict(zip(row["arms"], row["probabilities"], strict=True))
    assert said["reason"] == "split"
    assert str(row["version"]) == said["version"]
    assert row["decided_at"].isoformat().replace("+00:00", "Z") == said["time"]


NO_KEYS = ["", "Bearer wrong", "é", "Bearer", KEY, f"Basic {KEY}", f"Bearer {KEY} more"]


@pytest.mark.parametrize("value", NO_KEYS)
def test_without_the_key_nothing_is_decided(shared, value):
    """The scheme of a key is in any case."""
    client, log = shared
    for scheme in ("bearer", "BEARER"):
        answer = client.get("/metrics", headers={"Authorization": f"{scheme} {KEY}"})
        assert answer.status_code == 200
    before = log.counts()["decisions"]
    bare = {"Authorization": value.encode("latin-1")}
    for path, method in (("/decide", "POST"), ("/metrics", "GET"), ("/nothing", "GET")):
        answer = client.request(method, path, headers=bare, content=b"{" * 10)
        assert answer.status_code == 401
        assert "Bearer KEY" in answer.json()["detail"]
    assert client.get("/healthz", headers=bare).status_code == 200
    assert log.counts()["decisions"] == before


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain"])
def test_a_body_without_the_header_of_json_is_told_the_header(shared, kind):
    client, _ = shared
    answer = client.post("/decide", content=b'{"context": [0, 0]}', headers={"Content-Type": kind})
    assert answer.status_code == 422
    assert "with the header Content-Type: application/json" in answer.json()["detail"]


def test_a_body_that_is_too_large(shared):
    client, _ = shared
    for content in (b"[" + b" " * 2_000_000, (b" " * 50_000 for _ in range(40))):
        assert client.post("/decide", content=content).status_code == 413


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 400), (b"", 422), (b'{"context": [NaN, 0]}', 422),
        (b'{"context": [Infinity, 0]}', 422),
        (b'{"context": [1e999, 0]}', 422), (b"\xff\xfe", 400), (b"[" * 100_000, 400),
        (b'{"context": [' + b"9" * 5000 + b", 0]}", 400), (b"null", 422), (b"[]", 422), (b"7", 422),
        (b'{"context": [1]}', 422), (b'{"context": {"a": 1}}', 422), (b'{"context": "ab"}', 422),
        (b'{"context": [0, 0], "arms": ["fax"]}', 422), (b'{"context": [0, 0], "arms": []}', 422),
        (b'{"context": [0, 0], "arms": [true]}', 422), (b'{"context": [[0, 0], [0, 0]]}', 422),
        (b'{"context": [0, [0]]}', 422), (b'{"context": [0, {}]}', 422),
        (b'{"context": [0, null]}', 422),
        (b'{"context": [0, "a"]}', 422), (b'{"context": [0, 0], "nonsense": 1}', 422),
        (b'{"context": [0, 0], "id": 7}', 422),
        (b'[{"context": [0, 0], "id": "q"}, {"context": [0, 0]}]', 422),
        (b'[{"context": [0, 0], "arms": ["mail"]}, {"context": [0, 0]}]', 422),
        (b'[{"context": [0, 0], "id": "q"}, {"context": [0, 0], "id": "q"}]', 422),
    ],
)  # fmt: skip
def test_what_is_no_question_is_a_sentence(shared, content, status):
    client, log = shared
    before = log.counts()["decisions"]
    answer = client.post("/decide", content=content)
    assert answer.status_code == status, answer.text
    assert answer.json()["detail"]
    assert log.counts()["decisions"] == before


NO_REWARDS = [  # parts of a body, and what is said
    *(({"value": value}, "") for value in ("1", None, True, 1e60, [])),
    ({}, ""),
    ({"value": 1, "key": "a"}, ""),
    ({"value": 1, "extra": 1}, ""),
    ({"value": 1, "time": "yesterday"}, "as 2026-11-22T18:00:00Z; got "),
    ({"value": 1, "time": "2026-11-22T18:00:00"}, "should have timezone info"),
    ({"value": 1, "time": 1e300}, "as 2026-11-22T18:00:00Z; got "),
    ({"value": 1, "time": 1_764_000_000}, "as 2026-11-22T18:00:00Z; got "),  # or milliseconds?
    ({"value": 1, "time": 1_764_000_000_000}, "as 2026-11-22T18:00:00Z; got "),
    ({"value": 1, "time": "1764000000"}, "as 2026-11-22T18:00:00Z; got "),
    ({"value": 1, "time": "1970-01-01T00:00:00Z"}, "before its decision"),
    ({"value": 1, "time": "0001-01-01T00:00:00Z"}, "before its decision"),
    ({"value": 1, "time": "9999-12-31T23:59:59Z"}, "in the future"),
]


@pytest.mark.parametrize(("wrong", "said"), NO_REWARDS)
@in_gate(20)
def test_what_is_no_reward_is_a_sentence_and_takes_nothing(shared, wrong, said):
    client, _ = shared
    one = decided(client)["id"]
    answer = client.post("/reward", json={"id": one} | wrong)
    assert answer.status_code == 422, answer.text
    assert said in answer.json()["detail"]
    now = datetime.now(timezone(timedelta(hours=2))).isoformat()
    told = client.post("/reward", json={"id": one, "value": 1.0, "time": now})
    assert told.json() == {"id": one, "status": "timely"}


@pytest.mark.slow
def test_no_id_makes_postgresql_fail(tmp_path):
    """Its texts hold no NUL: each id, in each request, is checked before it is asked for."""
    service = bb.Service(bb.LinTS(ARMS, 2, seed=0), bb.DecisionLog(fresh("postgresql", tmp_path)))
    client = client_of(service)
    for id_ in HOSTILE:
        for path, body in (
            ("/decide", {"context": [0.0, 0.0], "id": id_}),
            ("/decide", {"context": [0.0, 0.0], "arms": [id_]}),
            ("/reward", {"id": id_, "value": 1.0}),
            ("/activate", {"id": id_}),
        ):
            for sent in (body, [body]):
                answer = post(client, path, sent)
                assert answer.status_code in (200, 204, 404, 409, 422), (path, body, answer.text)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_ids_and_arms_are_text(shared, hostile):
    client, log = shared
    kept = 0 < len(hostile) <= 200 and hostile.isprintable()
    answer = post(client, "/decide", {"context": [0.0, 0.0], "id": hostile})
    assert answer.status_code == (200 if kept else 422), answer.text
    if kept:
        assert answer.json()["id"] == hostile
        assert client.post("/reward", json={"id": hostile, "value": 1.0}).status_code == 200
        assert client.post("/activate", json={"id": hostile}).status_code == 204
        assert hostile in set(log.frame()["decision_id"])
    for body in ({"context": [0.0, 0.0], "arms": [hostile]}, {"context": {hostile: hostile}}):
        answer = post(client, "/decide", body)
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/json"
        assert len(answer.json()["detail"]) <= 501


def test_a_reward_counts_once(shared):
    client, _ = shared
    one = decided(client)["id"]
    tell = {"id": one, "value": 0.7}
    assert client.post("/reward", json=tell).json() == {"id": one, "status": "timely"}
    assert client.post("/reward", json=tell).json() == {"id": one, "status": "again"}
    answer = client.post("/reward", json={"id": one, "value": 0.9})
    assert answer.status_code == 409
    assert "has the reward 0.7" in answer.json()["detail"]
    for path, body in (("/reward", {"id": "who?", "value": 1.0}), ("/activate", {"id": "who?"})):
        answer = client.post(path, json=body)
        assert answer.status_code == 404
        assert "no decision 'who?'" in answer.json()["detail"]


def test_tables_are_asked_by_name(tmp_path):
    """And what no table is gets a sentence."""
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(FRAME), seed=0)
    service = bb.Service(bandit, bb.DecisionLog(f"sqlite:///{tmp_path}/log.db"))
    client = client_of(service)
    for context in ([20, "DE"], [[20, "DE"]], {"age": [20]}):
        answer = post(client, "/decide", {"context": context})
        assert answer.status_code == 422, answer.text
    assert service.log.frame().empty
    one = decided(client, context={"age": 20, "country": "DE"}, id="order-1")
    assert decided(client, context={"country": "DE", "age": 20}, id="order-1") == one
    level = {"age": 20, "country": "\ud800"}  # as any other
    answer = post(client, "/decide", {"context": level})
    assert answer.status_code == 200, answer.text
    assert service.log.verify().empty


@pytest.mark.slow
def test_a_server_goes_on_with_its_version_if_it_cannot_follow(tmp_path, monkeypatch, caplog):
    """As where a newer release learns, by a change that this one does not know."""
    service = bb.Service(bb.LinTS(ARMS, 2), bb.DecisionLog(f"sqlite:///{tmp_path}/log.db"))
    looks = [ValueError("there is no change 'x'"), OSError("no server"), ZeroDivisionError("odd")]
    seen = []

    def sync():
        seen.append(1)
        if looks:
            raise looks.pop(0)

    monkeypatch.setattr(service, "sync", sync)

    async def followed():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Server(service).poll_versions(0.0), 0.5)

    asyncio.run(followed())
    assert len(seen) > 3
    assert "ZeroDivisionError: odd" in caplog.text
    assert "no change 'x'" in caplog.text


@pytest.mark.slow
def test_arms_with_features_are_decided_by_name(tmp_path):
    frame = pd.DataFrame({"price": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]})
    model, encoder = bb.Shared(bb.Ridge()), bb.Encoder.fit(frame)
    bandit = bb.Bandit(["a", "b"], model, bb.Thompson(), encoder=encoder, seed=0)
    rows = [{"price": 1.5, "colour": "red"}, {"price": 2.5, "colour": "blue"}]
    x = [rows, rows[::-1], rows]
    found = bandit.copy().choose(x)
    numbers = np.stack([encoder.transform(pd.DataFrame(one)) for one in x])
    plain = bb.Bandit(["a", "b"], model, bb.Thompson(), n_features=numbers.shape[2], seed=0)
    by_number = plain.choose(numbers)
    np.testing.assert_array_equal(found.probabilities, by_number.probabilities)
    with pytest.raises(ValueError, match="as many rows"):
        bandit.choose([rows, rows[:1]])
    service = bb.Service(bandit, bb.DecisionLog(f"sqlite:///{tmp_path}/log.db"))
    server = Server(service)
    told = [server.decide(Asked(context=one)) for one in x]
    assert [set(one.probabilities) for one in told] == [{"a", "b"}] * 3


@pytest.mark.slow
def test_a_life(tmp_path):
    """Decide, reward, learn, end, begin again: the log is whole, and the server has learned."""
    url, words = begun(tmp_path)
    with serving(url, *words) as client:
        ids = [decided(client)["id"] for _ in range(3)]
        for one in ids[:2]:
            client.post("/reward", json={"id": one, "value": 1.0})
        learner = command("learn", "--log", url, "--once")
        assert "2 rewards learned" in learner.communicate(timeout=60)[0]
        end = time.monotonic() + 10
        while client.get("/healthz").json()["version"] == "0" and time.monotonic() < end:
            time.sleep(0.05)
        assert decided(client)["version"] == "1"
        assert "bayesbandit_newest_version 1.0" in client.get("/metrics").text
    assert client.process.returncode == -signal.SIGTERM
    assert client.process.said.count("\n") <= 3, client.process.said
    with serving(url) as client:  # with the bandit of the log
        assert decided(client)["version"] == "1"
        assert (
            client.post("/reward", json={"id": ids[2], "value": 0.5}).json()["status"] == "timely"
        )
    with bb.DecisionLog(url) as log:
        assert log.verify().empty
        assert len(log.frame()) == 5


@pytest.mark.slow
def test_asked_to_end_it_answers_what_it_has_begun(tmp_path):
    url, words = begun(tmp_path)
    answered = []

    def ask(i):
        try:
            answer = client.post("/decide", json={"context": [float(i), 0.0], "id": f"r{i}"})
            if answer.status_code == 200:
                answered.append(answer.json()["id"])
        except (httpx.HTTPError, RuntimeError):  # the server, or the client, has ended
            return

    with serving(url, *words) as client, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, i) for i in range(400)]
        while len(answered) < 50:
            time.sleep(0.01)
        client.process.send_signal(signal.SIGTERM)
        for one in asked:
            one.result()
    with bb.DecisionLog(url) as log:
        assert set(answered) <= set(log.frame()["decision_id"])
        assert 50 <= len(answered) < 400
        assert log.verify().empty


@pytest.mark.slow
def test_a_server_that_answers_has_compiled_all(tmp_path):
    """With no kernel on the disk: else the first requests, and those after the learner's first
    version, would be answered by 503."""
    url, begin = begun(tmp_path)
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    ask = {"context": [0.5, -1.0]}
    with serving(url, *begin, "--deadline", "1", NUMBA_CACHE_DIR=str(kernels)) as client:
        compiled = {*kernels.rglob("*.nbi")}
        assert compiled
        for version in range(3):
            bodies = [ask, ask | {"arms": ["mail", "<b>wait</b>"]}, *[ask] * 3]
            for body in bodies:
                answer = client.post("/decide", json=body)
                assert answer.status_code == 200, answer.text
                told = {"id": answer.json()["id"], "value": 1.0}
                assert client.post("/reward", json=told).is_success
            with bb.DecisionLog(url) as log:
                assert bb.Service.open(log).learn() == 5
            while client.get("/healthz").json()["version"] != str(version + 1):
                time.sleep(0.05)
        assert {*kernels.rglob("*.nbi")} == compiled


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "key", "said"),
    [
        ((), "", "a server needs a key"),
        ((), "short", "16 ASCII characters"),
        (("--wait", "1d"), "k" * 20, "need --bandit"),
        (("--bandit", "none.npz"), "k" * 20, "none.npz"),
        (("--bandit", "LinTS"), "k" * 20, "no saved bandit at LinTS"),
        (("--bandit", "b.npz", "--deadline", "0"), "k" * 20, "--deadline must be a finite number"),
    ],
)
@in_gate(6)
def test_it_does_not_begin_without_what_it_needs(tmp_path, words, key, said, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAYESBANDIT_API_KEY", key)
    bb.LinTS(ARMS, 2).save("b.npz")
    found = run("serve", "--log", "sqlite:///l.db", *words)
    assert found.exit_code == 2
    assert said in found.said
    assert [file.name for file in tmp_path.iterdir()] == ["b.npz"]


def test_a_bandit_without_features_decides(tmp_path):
    bandit = bb.Bandit(ARMS, bb.load_model("beta_bernoulli"), bb.Thompson(), n_features=0, seed=0)
    log = bb.DecisionLog(f"sqlite:///{tmp_path}/log.db")
    server = Server(bb.Service(bandit, log))
    asked = Asked(id="a")
    told = server.decide(asked)
    assert told.id == "a"
    assert server.decide(asked) == told
    assert log.frame()["context"].isna().all()
    other = bb.DecisionLog(f"sqlite:///{tmp_path}/other.db")
    server = Server(bb.Service(bb.LinTS(ARMS, 2, seed=0), other))
    with pytest.raises(ValueError, match="contexts must have shape"):
        server.decide(asked)


@pytest.mark.slow
def test_a_server_says_where_it_decides_once_it_does(tmp_path):
    """Not before its port is bound; a port that is taken ends it, and it has not said a word."""
    url, words = begun(tmp_path)
    process = command("serve", "--log", url, *words, "--port", 0)
    try:
        said = process.stdout.readline().strip()
        found = re.search(r" INFO version .* decides at (http://127\.0\.0\.1:(\d+))$", said)
        assert httpx.get(f"{found[1]}/healthz", timeout=20).status_code == 200  # at once
        second = command("serve", "--log", url, *words, "--port", found[2])
        output = second.communicate(timeout=60)[0]
        assert second.returncode != 0
        assert "decides at" not in output
        assert "address already in use" in output
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=40)


POSTS = ["/decide", "/reward", "/activate"]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)  # fmt: skip
LIKELY = {  # values that are often right, since random ones hardly ever are
    "context": st.just([0.5, -1.0]) | ANYTHING,
    "arms": st.lists(st.sampled_from(["mail", "call", "fax"]), max_size=3),
    "id": st.sampled_from(["order-1", "order-2", "order-3"]),
    "time": st.sampled_from(["2026-01-01T00:00:00Z", "1969-12-31T23:00:00-05:00", "soon"]),
}


@pytest.fixture(scope="module")
def asked_of(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schema")
    bandit = bb.LinTS(["mail", "call", "wait"], 2, seed=0)
    service = bb.Service(bandit, bb.DecisionLog(f"sqlite:///{folder}/log.db"))
    with client_of(service, deadline=10) as client:
        for order in ("order-1", "order-2"):
            client.post("/decide", json={"context": [0.5, -1.0], "id": order}).raise_for_status()
        yield client
    service.log.close()


def bodies(schema, whole, name=""):
    """Values of a JSON schema, with parts of `whole`."""
    if "$ref" in schema:
        return bodies(whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]], whole)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        own = st.one_of([bodies(one, whole, name) for one in choices])
        return LIKELY[name] | own if name in LIKELY else own
    if name in LIKELY:
        return LIKELY[name]
    match schema.get("type"):
        case "object" if "properties" in schema:
            fields = {k: bodies(v, whole, k) for k, v in schema["properties"].items()}
            must = {k: v for k, v in fields.items() if k in schema.get("required", [])}
            may = {k: v for k, v in fields.items() if k not in must}
            return st.fixed_dictionaries(must, optional=may)
        case "object":
            return st.dictionaries(st.text(max_size=5), ANYTHING, max_size=3)
        case "array":
            return st.lists(bodies(schema["items"], whole), min_size=1, max_size=3)
        case "string":
            return st.text(min_size=1, max_size=schema.get("maxLength", 20) + 1)
        case "number":
            return st.floats(allow_nan=False, allow_infinity=False)
        case "null":
            return st.none()
    return ANYTHING


@pytest.mark.slow
@pytest.mark.parametrize("path", POSTS)
def test_answers_follow_the_schema(asked_of, path):
    """Whatever is sent."""
    jsonschema, client = pytest.importorskip("jsonschema"), asked_of
    whole = client.get("/openapi.json").json()
    post = whole["paths"][path]["post"]
    asked = bodies(post["requestBody"]["content"]["application/json"]["schema"], whole)
    seen = set()

    @settings(max_examples=150)
    @given(body=asked | ANYTHING)
    def holds(body):
        answer = client.post(path, content=json.dumps(body).encode())
        assert answer.status_code < 500 or (
            answer.status_code == 503 and "Retry-After" in answer.headers
        )
        seen.add(answer.status_code)
        said = post["responses"][str(answer.status_code)]
        if answer.status_code == 204:
            assert answer.content == b""
            return
        assert answer.headers["content-type"] == "application/json"
        schema = said["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json(), schema | {"components": whole["components"]})

    holds()
    assert {200, 204} & seen, seen
    assert 422 in seen
