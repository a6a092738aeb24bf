"""`python -m release.unit [FOLDER]`: what a machine with systemd needs to run a gate as a service:
the wheel of the last commit with its pins, the unit, its drop-in for Java, the account, settings.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from release import Refusal
from release.building import build, check_out, read_commit, run
from release.command import ROOT, run_command

MOST_EXPOSURE = 1.5
"""As `systemd-analyze security` counts it: 0 is none, 10 all."""
_OVERALL = re.compile(r"Overall exposure level for \S+: ([\d.]+)")


def main() -> int:
    """Write into the folder that is named; returns an exit status."""
    return run_command(
        "unit", __doc__, "build/unit", lambda folder: map(str, make_unit(ROOT, folder))
    )


def make_unit(repository: Path, folder: Path) -> list[Path]:
    """Write the files of the commit that is checked out in `repository` to `folder`, in the place
    of older ones. Raises: Refusal."""
    commit = read_commit(repository)
    with tempfile.TemporaryDirectory(prefix="unit-") as place:
        tree = check_out(repository, commit, Path(place), 0o022)
        results = Path(place) / "results"
        results.mkdir()
        build(tree, "wheel", results, commit, 0o022)
        files = [
            *results.glob("*.whl"),
            tree / "requirements" / "service.txt",
            *sorted((tree / "deploy" / "systemd").iterdir()),
        ]
        unit = tree / "deploy" / "systemd" / "tidegate.service"
        if shutil.which("systemd-analyze"):
            exposure = read_exposure(unit)
            if exposure > MOST_EXPOSURE:
                raise Refusal(f"The unit is exposed by {exposure}; {MOST_EXPOSURE} is the most.")
            print(f"systemd-analyze security: {exposure}")
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("tidegate-*.whl"):
            old.unlink()
        return [Path(shutil.copyfile(file, folder / file.name)) for file in files]


def read_exposure(unit: Path) -> float:
    """How exposed a unit is by itself, without what this machine adds. Raises: Refusal."""
    words = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]
    found = _OVERALL.search(run(words, unit.parent, 0o022))
    if found is None:
        raise Refusal("systemd-analyze says nothing of the unit's exposure.")
    return float(found[1])


if __name__ == "__main__":
    sys.exit(main())
