"""What `doctor` calls needed and entries of clients carry: the extras of sources and settings."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli.checks.sources import needed_extras
from tidegate.config.loading import convert_settings


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({}, {}),
        ({"metrics": {"token": "${ENV:TOKEN}"}, "otel": {"sample_ratio": 0.5}}, {}),
        (
            {"metrics": {"listen": "127.0.0.1:9464"}, "otel": {"endpoint": "http://127.0.0.1:1"}},
            {"metrics": ["the setting `metrics`"], "otel": ["the setting `otel`"]},
        ),
        (
            {"metrics": {"listen": "127.0.0.1:9464", "token": "${VAULT:secret/data/gate#token}"}},
            {"metrics": ["the setting `metrics`"], "vault": ["the setting `metrics`"]},
        ),
        (
            {"embeddings": {"provider": "openai", "api_key": "${AWS:model#key}"}},
            {"aws": ["the setting `embeddings`"]},
        ),
        (
            {"state_url": "postgresql://gate:${VAULT:secret/data/gate#state}@db/gate"},
            {"postgres": ["the state in PostgreSQL"], "vault": ["the setting `state_url`"]},
        ),
    ],
)
@pytest.mark.needs("every product")
def test_settings_need_what_the_server_does_not_start_without(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], needed: Mapping[str, list[str]]
) -> None:
    monkeypatch.delenv("TIDEGATE_STATE_URL", raising=False)
    assert needed_extras(convert_settings(settings), ()) == needed


OF_A_FOLDER = """
import sys
sys.modules["duckdb"] = None
from tidegate.cli.checks.sources import needed_extras
from tidegate.config.model import Config
from tidegate.engines.registry import engine_of
from tidegate.model.sources import Source
for url in sys.argv[1:]:
    print(sorted(needed_extras(Config(), [Source("s", "shop", url, *engine_of(url))])))
"""


@pytest.mark.needs("duckdb")
def test_a_folder_needs_what_reads_its_files_also_where_nothing_is_installed(
    tmp_path: Path,
) -> None:
    for name in ("rows", "books/north"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "rows" / "people.csv").write_text("name\nAda\n")
    (tmp_path / "books" / "north" / "towns.xlsx").touch()
    urls = [f"files://{tmp_path}/{name}" for name in ("rows", "books", "gone")]
    words = [sys.executable, "-c", OF_A_FOLDER, *urls]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['duckdb']", "['duckdb', 'excel']", "['duckdb']"]
