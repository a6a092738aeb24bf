"""What Datalog adds to the kernel."""

from tidegate.product import EngineEntry, Product, SurfaceEntry

_DATALEVIN = EngineEntry(
    *("datalevin", "datalog", "tidegate.engines.datalevin", "DatalevinEngine", "datalog"),
    language="tidegate.datalog.language",
    options=("heap", "java", "journal", "private_copy_mb"),
    locator="tidegate.engines.datalevin.url:locate",
    path_reader="tidegate.engines.datalevin.url:path_of",
)

PRODUCT = Product(
    "datalog",
    engines={"datalevin": _DATALEVIN, "dtlv": _DATALEVIN},
    surfaces={
        "datalog": SurfaceEntry(
            "tidegate.surfaces.datalog",
            settings="tidegate.surfaces.datalog.settings:DatalogSettings",
        )
    },
    commands={"datalog": "tidegate.cli.arguments.datalog:add_datalog"},
)
