"""What catalogs and clients install from: the description of the server, the bundle, the plugin.

A bundle and a plugin are ZIP archives with fixed dates and modes, so that two builds are the same.
"""

from __future__ import annotations

import shutil
import time
import zipfile
from pathlib import Path

from release import Commit

BUNDLE = "tidegate.mcpb"
PLUGIN = "tidegate-plugin.zip"
SERVER = "server.json"
ICON = "icon.png"
_FILE_MODE = 0o100644
_UNIX = 3


def write_server_description(channels: Path, results: Path) -> None:
    """`server.json`, which a registry of MCP servers takes."""
    shutil.copyfile(channels / SERVER, results / SERVER)


def write_bundle(channels: Path, results: Path, commit: Commit) -> None:
    """The bundle (MCPB), which a desktop client installs with a click."""
    pack(channels / "bundle", results / BUNDLE, commit)


def write_plugin(channels: Path, results: Path, commit: Commit) -> None:
    """The plugin of Claude Code: an entry and a skill."""
    pack(channels / "plugin", results / PLUGIN, commit)


def pack(folder: Path, archive: Path, commit: Commit) -> None:
    """Write the files below a folder, and the icon, into an archive, by their names in order."""
    date = time.gmtime(commit.epoch)[:6]
    files = {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }
    files[ICON] = folder.parent / ICON
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, path in sorted(files.items()):
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = _UNIX
            entry.external_attr = _FILE_MODE << 16
            packed.writestr(entry, path.read_bytes())
