"""What a server answers is what its schema says, whatever is sent to it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesbandit as bb

jsonschema = pytest.importorskip("jsonschema")

from tests.service.servers import client_of

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
def client(tmp_path_factory):
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
def test_answers_follow_the_schema(client, path):
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
