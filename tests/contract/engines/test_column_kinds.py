"""Each engine says of what kind its columns are, in the same words."""

from tidegate.model.statements import Effect

TYPED = {
    "sqlite": (
        "CREATE TABLE typed (i INTEGER, d DECIMAL(10,2), f REAL, t VARCHAR(80), b BLOB,"
        " day DATE, moment TIMESTAMP, yes BOOLEAN)"
    ),
    "duckdb": (
        "CREATE TABLE typed (i INTEGER, d DECIMAL(10,2), f DOUBLE, t VARCHAR, b BLOB,"
        " day DATE, moment TIMESTAMP, yes BOOLEAN)"
    ),
    "postgres": (
        "CREATE TABLE typed (i integer, d numeric(10,2), f float8, t varchar(80), b bytea,"
        " day date, moment timestamp, yes boolean)"
    ),
    "mysql": (
        "CREATE TABLE typed (i INT, d DECIMAL(10,2), f DOUBLE, t VARCHAR(80), b BLOB,"
        " day DATE, moment DATETIME, yes BOOLEAN)"
    ),
}
EXPECTED = ["integer", "decimal", "float", "text", "bytes", "date", "timestamp", "boolean"]


async def test_columns_have_neutral_kinds(case):
    make = TYPED.get(case.name.partition("-")[0])
    if make is None:
        return
    async with case.opened() as engine:
        await case.ask(engine, make, effect=Effect.ADMIN)
        cursor = await case.start(engine, "SELECT * FROM typed")
        await cursor.close()
    kinds = [column.kind for column in cursor.columns]
    # MySQL's BOOLEAN is another name of TINYINT(1), whose values are numbers.
    assert kinds == ([*EXPECTED[:-1], "integer"] if case.name == "mysql" else EXPECTED)
    amount = cursor.columns[1]
    assert (amount.precision, amount.scale) == (10, 2)
