"""What Datalog adds to the kernel."""

from tidegate.product import CommandEntry, EngineEntry, Product, SurfaceEntry

_DATALEVIN = EngineEntry(
    *("datalevin", "datalog", "tidegate.products.datalog.engine", "DatalevinEngine", "datalog"),
    language="tidegate.products.datalog.language.datalog",
    options=("heap", "java", "journal", "private_copy_mb"),
    locator="tidegate.products.datalog.engine.url:locate",
    path_reader="tidegate.products.datalog.engine.url:path_of",
)

PRODUCT = Product(
    "datalog",
    engines={"datalevin": _DATALEVIN, "dtlv": _DATALEVIN},
    surfaces={
        "datalog": SurfaceEntry(
            "tidegate.products.datalog.surface",
            settings="tidegate.products.datalog.surface.settings:DatalogSettings",
        )
    },
    vocabularies={"datalog": "tidegate.products.datalog.attributes"},
    settings={"datalog": "tidegate.products.datalog.settings:OpeningSettings"},
    demo_source="tidegate.products.datalog.demo_facts:facts_of",
    commands={
        "datalog": CommandEntry(
            "tidegate.products.datalog.commands.arguments:add_datalog", "databases"
        ),
        "dtlv": CommandEntry("tidegate.products.datalog.commands.arguments:add_dtlv", "databases"),
    },
)
