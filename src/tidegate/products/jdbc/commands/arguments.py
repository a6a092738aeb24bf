"""The arguments of `driver`."""

from __future__ import annotations

from tidegate.cli.arguments.options import (
    Commands,
    consent_option,
    filled,
    home_options,
    json_option,
    seconds,
)

_COORDINATE = "groupId:artifactId:version, several with commas between them, or a database's name"


def add_driver(commands: Commands) -> None:
    driver = commands.add_parser("driver", help="fetch, list, verify and bundle JDBC drivers")
    actions = driver.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    fetch = actions.add_parser(
        "fetch",
        help="download JDBC drivers with all that they need, and lock them",
        description="Download JDBC drivers with all that they need, check them and lock them. "
        "Locked files do not change, and sources use them offline. The name of a database, such as "
        "h2, means the coordinate of its driver. The version RELEASE is the newest one.",
    )
    fetch.add_argument("coordinates", metavar="COORDINATE", nargs="+", help=_COORDINATE)
    fetch.add_argument(
        "--repository",
        type=filled,
        metavar="URL",
        help="the address of a Maven repository (default: the setting drivers.repository, else a "
        "mirror in ~/.m2/settings.xml, else the repository of an installed Maven)",
    )
    listing = actions.add_parser("list", help="list the drivers that were fetched")
    verify = actions.add_parser(
        "verify", help="check that the files of drivers are what was fetched first"
    )
    remove = actions.add_parser("remove", help="remove a driver that was fetched")
    remove.add_argument("coordinate", metavar="COORDINATE", help="as `driver list` shows it")
    bundle = actions.add_parser(
        "bundle",
        help="write drivers to one file, for another machine",
        description="Write drivers with their lock file to one file, for a machine that cannot "
        "download them. `tidegate driver import` reads it there.",
    )
    bundle.add_argument("file", type=filled, metavar="FILE", help="a file that is not there yet")
    bundle.add_argument(
        "coordinates",
        metavar="COORDINATE",
        nargs="*",
        default=[],
        help="as `driver list` shows it (default: all)",
    )
    importing = actions.add_parser("import", help="take the drivers of a bundle over")
    importing.add_argument("file", type=filled, metavar="FILE", help="a bundle")
    doctor = actions.add_parser(
        "doctor",
        help="check all that a JDBC source needs, and say what fails first",
        description="Check what a JDBC source needs, in this order: its URL, Java, the driver, "
        "Java's modules, DNS, TCP, TLS, the login, and what keeps reads from writing. The first "
        "fault ends the checks and says what to do. The exit status is 1 then. The source is "
        "opened through the gate, which records it.",
    )
    doctor.add_argument("target", metavar="URL", help="a JDBC URL, or the name of a source")
    doctor.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option of the source, as for `tidegate source add`; may be repeated",
    )
    doctor.add_argument(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="S",
        help="how long the network may take for each check (default 10)",
    )
    for action in (fetch, listing, verify, remove, bundle, importing, doctor):
        action.set_defaults(module="tidegate.products.jdbc.commands.driver")
        home_options(action)
    for action in (fetch, remove, importing):
        consent_option(action)
    for action in (listing, verify, doctor):
        json_option(action)
