"""What Datalog adds to the kernel."""

from tidegate.product import CommandEntry, DemoSource, EngineEntry, Product, SurfaceEntry

_DATALEVIN = EngineEntry(
    *("datalevin", "datalog", "tidegate.products.datalog.engine", "DatalevinEngine", "datalog"),
    language="tidegate.products.datalog.language.datalog",
    options=("heap", "java", "journal", "private_copy_mb"),
    plain_options=("private_copy_mb",),
    locator="tidegate.products.datalog.engine.url:locate",
    path_reader="tidegate.products.datalog.engine.url:path_of",
    is_folder=True,
    exclusive_reader="tidegate.products.datalog.engine.url:exclusive_path_of",
    trivial_queries={"datalog": "[:find ?one :where [(ground 1) ?one]]"},
)

PRODUCT = Product(
    "datalog",
    engines={"datalevin": _DATALEVIN, "dtlv": _DATALEVIN},
    surfaces={
        "datalog": SurfaceEntry(
            "tidegate.products.datalog.surface",
            settings="tidegate.products.datalog.surface.settings:DatalogSettings",
            keeps_choices=True,
        )
    },
    extras={"datalog": "datalevin"},
    vocabularies={"datalog": "tidegate.products.datalog.attributes"},
    settings={"datalog": "tidegate.products.datalog.settings:OpeningSettings"},
    demo_source=DemoSource(
        "tidegate.products.datalog.demo_facts:facts_of",
        "have the shop as a Datalog source as well, shop-facts (needs the extra `datalog`)",
        "[:find ?name (count ?c) :where [?c :categories/parent_id ?id]"
        " [?p :categories/id ?id] [?p :categories/name ?name] :order-by [?name :asc]]",
        "Home",
    ),
    commands={
        "datalog": CommandEntry(
            "tidegate.products.datalog.commands.arguments:add_datalog",
            "databases",
            {
                "datalog warm-up": "datalog warm-up --status",
                "datalog copy": "datalog copy facts ~/facts-copy",
                "datalog dump": "datalog dump facts facts.edn",
                "datalog load": "datalog load restored facts.edn",
                "datalog stat": "datalog stat facts",
                "datalog migrate": "datalog migrate old --copy-to ~/facts-new",
                "datalog undo": "datalog undo facts",
                "datalog import": "datalog import facts people.csv --key people/name",
            },
        ),
        "dtlv": CommandEntry(
            "tidegate.products.datalog.commands.arguments:add_dtlv",
            "databases",
            {"dtlv mcp": "dtlv mcp"},
        ),
    },
)
