"""Surfaces by name, and the settings that each one owns."""

from __future__ import annotations

import pytest

from tidegate.config.loading import load
from tidegate.errors import Code, TidegateError
from tidegate.surfaces.registry import SURFACES, check_surface, check_surfaces, read_settings


def refusal(settings: str) -> TidegateError:
    with pytest.raises(TidegateError) as caught:
        check_surfaces(load(settings))
    assert caught.value.code is Code.CONFIG_INVALID
    return caught.value


@pytest.mark.needs("workbench")
def test_a_section_is_read_by_the_surface_that_owns_it() -> None:
    config = load('{"surface": {"workbench": {"http_error_status": "seed"}}}')
    check_surfaces(config)
    settings = read_settings("workbench", config)
    assert (settings.http_error_status, settings.extended) == ("seed", False)


@pytest.mark.needs("workbench")
@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ('{"surface": {"workbench": {"extendd": true}}}', "`surface.workbench.extendd`",
         "Did you mean `extended`?"),
        ('{"surface": {"workbench": {"http_error_status": "sede"}}}',
         "`surface.workbench.http_error_status`", "Did you mean `seed`?"),
        ('{"surface": {"workbench": {"extended": 1}}}', "`surface.workbench.extended`", None),
        ('{"surface": {"core": {"extended": true}}}', "core has no settings", None),
        ('{"surface": {"workbnch": {}}}', "no surface 'workbnch'", "Did you mean workbench?"),
        ('{"surfaces": ["cor"]}', "no surface 'cor'", "Did you mean core?"),
    ],
)  # fmt: skip
def test_a_wrong_section_is_refused_with_its_place(
    settings: str, message: str, hint: str | None
) -> None:
    error = refusal(settings)
    assert message in error.message
    assert hint is None or hint in error.hint


def test_every_surface_of_the_registry_can_be_named() -> None:
    for name in SURFACES:
        check_surface(name)
