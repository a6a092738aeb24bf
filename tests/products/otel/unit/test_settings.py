"""What the section `otel` may hold, and what a server without the library says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tidegate.app import App
from tidegate.config.loading import load
from tidegate.config.model import Config
from tidegate.errors import Code, TidegateError
from tidegate.products.otel import conventions
from tidegate.products.otel.service import make_service
from tidegate.products.otel.settings import OtelSettings

HERE = "http://127.0.0.1:4318"


def check(**given: Any) -> None:
    settings = msgspec.convert(given, OtelSettings)
    settings.check(Config())
    settings.check_files(Config())


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"endpoint": HERE},
        {"endpoint": "https://otel.example.com/some/path/"},
        {"endpoint": HERE, "headers": {"Authorization": "Bearer ${FILE:/run/secrets/otel}"}},
        {"endpoint": HERE, "headers": {"X-Tenant": "acme"}, "sample_ratio": 0, "traces_per_s": 0},
    ],
)
def test_a_collector_is_on_this_machine_or_reached_encrypted(given: dict[str, Any]) -> None:
    check(**given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"endpoint": "http://otel.example.com:4318"}, "without encryption"),
        ({"endpoint": "ftp://127.0.0.1"}, "not one of HTTP"),
        ({"endpoint": "https://ann:hunter2@otel.example.com"}, "login"),
        ({"endpoint": "https://otel.example.com/?key=hunter2"}, "query"),
        ({"endpoint": HERE, "headers": {"Authorization": "Bearer hunter2"}}, "literal secret"),
        ({"endpoint": HERE, "headers": {"a b": "c"}}, "not the name of a header"),
        ({"endpoint": HERE, "ca_file": "/no/such/file"}, "https alone"),
        ({"endpoint": "https://otel.example.com", "ca_file": "/no/such/file"}, "cannot be read"),
        ({"endpoint": HERE, "service_name": "a\nb"}, "service_name"),
        ({"endpoint": HERE, "service_name": ""}, "service_name"),
    ],
)
def test_what_cannot_be_is_said_without_the_secret(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TidegateError) as caught:
        check(**given)
    assert caught.value.code is Code.CONFIG_INVALID
    assert said in str(caught.value)
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ({"endpoint": "https://otel.example.com/hunter2"}, "otel.endpoint"),
        ({"endpoint": "https://otel.example.com/${FILE:/run/secrets/otel}"}, "otel.endpoint"),
        ({"endpoint": HERE, "headers": {"X-Team": "hunter2"}}, "otel.headers"),
    ],
)
def test_what_may_be_a_secret_is_read_from_a_file_alone(
    tmp_path: Path, given: dict[str, Any], setting: str
) -> None:
    text = json.dumps({"otel": given})
    with pytest.raises(TidegateError, match=f"`{setting}` is not taken from inline") as caught:
        load(text)
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"
    file = tmp_path / "tidegate.json"
    file.write_text(text)
    file.chmod(0o600)
    assert load(str(file)).section(OtelSettings).endpoint == given["endpoint"]
    headers = {"Authorization": "Bearer ${FILE:/run/secrets/otel}"}
    assert load(json.dumps({"otel": {"endpoint": f"{HERE}/", "headers": headers}}))


@pytest.mark.parametrize(
    "given",
    [{"sample_ratio": 1.1}, {"sample_ratio": -0.1}, {"traces_per_s": -1}, {"max_queue": 0}],
)
def test_limits_have_bounds(given: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, OtelSettings)


def test_without_a_collector_there_is_no_service(tmp_path: Path) -> None:
    app = App.open(Config(state=str(tmp_path), sections={"otel": OtelSettings()}))
    assert make_service(app) is None
    assert app.tracing.tracer is None


CODE = """
import sys
{before}
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.errors import TidegateError
from tidegate.product import built_in
from tidegate.products.otel import conventions
from tidegate.products.otel.service import make_service
from tidegate.products.otel.settings import OtelSettings
built_in()
app = App.open(Config(state={state!r}, sections={{"otel": OtelSettings(endpoint={endpoint!r})}}))
try:
    make_service(app)
except TidegateError as error:
    print(error.code.value, error, error.hint)
print([name for name in sys.modules if name.startswith(("opentelemetry", "google.protobuf"))])
"""


def ran(state: Path, endpoint: str | None, before: str = "") -> str:
    code = CODE.format(before=before, state=str(state), endpoint=endpoint)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_without_the_setting_the_library_is_not_loaded(tmp_path: Path) -> None:
    assert ran(tmp_path, None) == "[]"


def test_without_the_library_it_is_said_how_to_install_it(tmp_path: Path) -> None:
    hide = "import sys\nsys.path = [each for each in sys.path if 'site-packages' not in each]"
    # What else is needed is found before the library is hidden.
    before = f"import tidegate.app, tidegate.products.otel.service, tidegate.config.model\n{hide}"
    said = ran(tmp_path, HERE, before)
    assert said.startswith("source.engine_missing `otel.endpoint` needs OpenTelemetry's SDK")
    assert "tidegate[otel]" in said
    assert said.endswith("[]")


def test_every_name_that_is_sent_is_on_the_page_about_traces() -> None:
    page = Path(__file__).parents[4] / "docs" / "howto" / "trace-calls.md"
    sent = [
        value
        for name, value in vars(conventions).items()
        if name.isupper() and isinstance(value, str) and "." in value
    ]
    text = page.read_text("utf-8")
    missing = [each for each in sent if f"`{each}`" not in text]
    assert (len(sent) > 20, missing) == (True, [conventions.OVERFLOW])
