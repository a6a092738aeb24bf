"""Acolyte's classes by their documented signatures, as sources of Java and Scala, and programs that
print what a generated handler answers.

Acolyte itself is not to be had where these tests run. The sources here are our own and hold what a
handler of queries uses: columns, row lists, results, parameters, handlers.
"""

from __future__ import annotations

import base64
import datetime
import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tidegate.results.json_values import text

_EPOCH = datetime.date(1970, 1, 1)

_JAVA = {
    "Row": """public interface Row { java.util.List<Object> cells(); }""",
    "Column": """
public final class Column<T> {
    public final Class<T> columnClass;
    public final String name;
    public final boolean nullable;
    Column(Class<T> columnClass, String name, boolean nullable) {
        if (columnClass == null || name == null || name.length() == 0) {
            throw new IllegalArgumentException("Invalid column name: " + name);
        }
        this.columnClass = columnClass;
        this.name = name;
        this.nullable = nullable;
    }
    @SuppressWarnings({"rawtypes", "unchecked"})
    public Column withNullable(boolean nullable) {
        return new Column(columnClass, name, nullable);
    }
}""",
    "RowList": """
import java.util.List;
import java.util.Map;
public abstract class RowList<R extends Row> {
    public abstract List<R> getRows();
    protected abstract RowList<R> append(R row);
    public abstract RowList<R> withNullable(int columnIndex, boolean nullable);
    public abstract List<Class<?>> getColumnClasses();
    public abstract Map<String, Integer> getColumnLabels();
    public abstract Map<Integer, Boolean> getColumnNullables();
    public QueryResult asResult() { return new QueryResult.Default(this); }
    public static <T> Column<T> Column(Class<T> columnClass, String name) {
        return new Column<T>(columnClass, name, false);
    }
}""",
    "QueryResult": """
public interface QueryResult {
    RowList<?> getRowList();
    final class Default implements QueryResult {
        private final RowList<?> rows;
        Default(RowList<?> rows) { this.rows = rows; }
        public RowList<?> getRowList() { return rows; }
    }
}""",
    "UpdateResult": "public final class UpdateResult {}",
    "ParameterMetaData": """
public final class ParameterMetaData { public static final class ParameterDef {} }""",
    "StatementHandler": """
import java.sql.SQLException;
import java.util.List;
public interface StatementHandler {
    QueryResult whenSQLQuery(String sql, List<Parameter> parameters) throws SQLException;
    boolean isQuery(String sql);
    final class Parameter {
        public final ParameterMetaData.ParameterDef left;
        public final Object right;
        private Parameter(ParameterMetaData.ParameterDef left, Object right) {
            this.left = left;
            this.right = right;
        }
        public static Parameter of(ParameterMetaData.ParameterDef left, Object right) {
            return new Parameter(left, right);
        }
    }
}""",
    "AbstractCompositeHandler": """
import acolyte.jdbc.StatementHandler.Parameter;
import java.sql.SQLException;
import java.util.List;
import java.util.regex.Pattern;
public abstract class AbstractCompositeHandler<T extends AbstractCompositeHandler<?>>
    implements StatementHandler {
    protected final Pattern[] queryDetection;
    protected final QueryHandler queryHandler;
    protected AbstractCompositeHandler(Pattern[] queryDetection, QueryHandler queryHandler) {
        this.queryDetection = queryDetection == null ? new Pattern[0] : queryDetection;
        this.queryHandler = queryHandler;
    }
    public QueryResult whenSQLQuery(String sql, List<Parameter> parameters) throws SQLException {
        return queryHandler.apply(sql, parameters);
    }
    public boolean isQuery(String sql) {
        for (Pattern each : queryDetection) if (each.matcher(sql).lookingAt()) return true;
        return false;
    }
    public T withQueryDetection(String... pattern) {
        Pattern[] patterns = new Pattern[pattern.length];
        for (int i = 0; i < patterns.length; i++) patterns[i] = Pattern.compile(pattern[i]);
        return withQueryDetection(patterns);
    }
    public abstract T withQueryDetection(Pattern[] pattern);
    public interface QueryHandler {
        QueryResult apply(String sql, List<Parameter> parameters) throws SQLException;
    }
}""",
    "CompositeHandler": """
import java.util.regex.Pattern;
public class CompositeHandler extends AbstractCompositeHandler<CompositeHandler> {
    public CompositeHandler() { super(null, null); }
    private CompositeHandler(Pattern[] queryDetection, QueryHandler queryHandler) {
        super(queryDetection, queryHandler);
    }
    public CompositeHandler withQueryHandler(QueryHandler handler) {
        return new CompositeHandler(queryDetection, handler);
    }
    public CompositeHandler withQueryDetection(Pattern... pattern) {
        return new CompositeHandler(pattern, queryHandler);
    }
}""",
}

_SCALA = """package acolyte.jdbc

import acolyte.jdbc.AbstractCompositeHandler.QueryHandler
import acolyte.jdbc.ParameterMetaData.ParameterDef
import acolyte.jdbc.StatementHandler.Parameter
import java.util.regex.Pattern

object AcolyteDSL {
  def handleQuery(h: QueryExecution => QueryResult): ScalaCompositeHandler =
    new ScalaCompositeHandler(Array(Pattern.compile(".*")), new QueryHandler {
      def apply(sql: String, given_ : java.util.List[Parameter]): QueryResult = {
        var parameters: List[ExecutedParameter] = Nil
        given_.forEach(each => parameters = parameters :+ DefinedParameter(each.right, each.left))
        h(QueryExecution(sql, parameters))
      }
    })
}

final class ScalaCompositeHandler(qd: Array[Pattern], qh: QueryHandler)
    extends AbstractCompositeHandler[ScalaCompositeHandler](qd, qh) {
  def withQueryDetection(pattern: Array[Pattern]) = new ScalaCompositeHandler(pattern, qh)
}

case class QueryExecution(sql: String, parameters: List[ExecutedParameter] = Nil)

sealed trait ExecutedParameter { def value: Any }

object ExecutedParameter {
  def unapply(p: ExecutedParameter): Option[Any] = Some(p.value)
}

case class DefinedParameter(value: Any, definition: ParameterDef) extends ExecutedParameter
"""

_PRINTER = """
import acolyte.jdbc.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.sql.Timestamp;
import java.time.*;
import java.util.*;

public final class Printer {
    public static void main(String[] names) throws Exception {
        for (String name : names) {
            Object handler = Class.forName(name).getMethod("handler").invoke(null);
            String sql = new String(Files.readAllBytes(Paths.get(name + ".sql")),
                StandardCharsets.UTF_8);
            List<StatementHandler.Parameter> none = new ArrayList<>();
            if (Files.exists(Paths.get(name + ".number"))) {
                none.add(StatementHandler.Parameter.of(null, Long.valueOf(7)));
            }
            StatementHandler known = (StatementHandler) handler;
            if (!known.isQuery(sql)) throw new AssertionError(sql);
            try {
                known.whenSQLQuery(sql + " ", none);
                throw new AssertionError("answered another query");
            } catch (java.sql.SQLException other) {
                if (!other.getMessage().contains("confirmed")) throw other;
            }
            RowList<?> rows = known.whenSQLQuery(sql, none).getRowList();
            StringBuilder out = new StringBuilder();
            out.append(labels(rows)).append('\\n');
            for (Row row : rows.getRows()) {
                for (Object cell : row.cells()) out.append(shown(cell)).append('\\t');
                out.append('\\n');
            }
            Files.write(Paths.get(name + ".out"), out.toString().getBytes(StandardCharsets.UTF_8));
        }
    }

    static String labels(RowList<?> rows) {
        String[] found = new String[rows.getColumnClasses().size()];
        rows.getColumnLabels().forEach((label, index) -> found[index - 1] = label
            + " " + rows.getColumnClasses().get(index - 1).getSimpleName()
            + " " + rows.getColumnNullables().getOrDefault(index, false));
        return String.join("\\t", found);
    }

    static String shown(Object cell) {
        if (cell == null) return "null";
        if (cell instanceof String) {
            byte[] units = ((String) cell).getBytes(StandardCharsets.UTF_16BE);
            return "text " + Base64.getEncoder().encodeToString(units);
        }
        if (cell instanceof byte[]) {
            return "bytes " + Base64.getEncoder().encodeToString((byte[]) cell);
        }
        if (cell instanceof Double) return "double " + Double.doubleToRawLongBits((Double) cell);
        if (cell instanceof Float) return "float " + Float.floatToRawIntBits((Float) cell);
        if (cell instanceof Timestamp) {
            Timestamp at = (Timestamp) cell;
            return "timestamp " + at.toLocalDateTime().toEpochSecond(ZoneOffset.UTC) + " "
                + at.toInstant().getEpochSecond() + " " + at.getNanos();
        }
        if (cell instanceof OffsetDateTime) {
            OffsetDateTime at = (OffsetDateTime) cell;
            return "zoned " + at.toEpochSecond() + " " + at.getNano() + " "
                + at.getOffset().getTotalSeconds();
        }
        if (cell instanceof LocalTime) return "nanos " + ((LocalTime) cell).toNanoOfDay();
        if (cell instanceof java.sql.Time) {
            return "time " + cell + " " + ((java.sql.Time) cell).getTime();
        }
        return cell.getClass().getSimpleName() + " " + cell;
    }
}
"""


def _row_list(count: int) -> dict[str, str]:
    """The classes of rows and lists with so many columns, and the factory."""
    letters = [f"T{n}" for n in range(count)]
    types = ", ".join(letters)
    arguments = ", ".join([f"final {t} v{n}" for n, t in enumerate(letters)])
    values = ", ".join([f"v{n}" for n in range(count)])
    columns = ", ".join([f"final Column<{t}> c{n}" for n, t in enumerate(letters)])
    given = ", ".join([f"c{n}" for n in range(count)])
    row = f"""
public final class Row{count}<{types}> implements Row {{
    private final java.util.List<Object> cells;
    Row{count}({arguments}) {{
        cells = java.util.Collections.unmodifiableList(
            new java.util.ArrayList<>(java.util.Arrays.asList(new Object[] {{{values}}})));
    }}
    public java.util.List<Object> cells() {{ return cells; }}
}}"""
    whole = f"""
import java.util.*;
public abstract class RowList{count}<{types}, UPDATED extends RowList{count}<{types}, ?>>
    extends RowList<Row{count}<{types}>> {{
    public UPDATED append({arguments}) {{
        return append(new Row{count}<{types}>({values}));
    }}
    protected abstract UPDATED append(Row{count}<{types}> row);
    public abstract UPDATED withNullable(int columnIndex, boolean nullable);
    public static final class Impl<{types}> extends RowList{count}<{types}, Impl<{types}>> {{
        private final List<Row{count}<{types}>> rows;
        private final List<Column<?>> columns;
        private final Map<Integer, Boolean> nullables;
        Impl(List<Column<?>> columns, List<Row{count}<{types}>> rows,
            Map<Integer, Boolean> nullables) {{
            this.columns = columns;
            this.rows = rows;
            this.nullables = nullables;
        }}
        protected Impl<{types}> append(Row{count}<{types}> row) {{
            List<Row{count}<{types}>> copy = new ArrayList<>(rows);
            copy.add(row);
            return new Impl<>(columns, copy, nullables);
        }}
        public Impl<{types}> withNullable(int columnIndex, boolean nullable) {{
            Map<Integer, Boolean> copy = new HashMap<>(nullables);
            copy.put(columnIndex, nullable);
            return new Impl<>(columns, rows, copy);
        }}
        public List<Row{count}<{types}>> getRows() {{ return rows; }}
        public List<Class<?>> getColumnClasses() {{
            List<Class<?>> found = new ArrayList<>();
            for (Column<?> each : columns) found.add(each.columnClass);
            return found;
        }}
        public Map<String, Integer> getColumnLabels() {{
            Map<String, Integer> found = new HashMap<>();
            for (int i = 0; i < columns.size(); i++) found.put(columns.get(i).name, i + 1);
            return found;
        }}
        public Map<Integer, Boolean> getColumnNullables() {{ return nullables; }}
    }}
}}"""
    factory = f"""
    public static <{types}> RowList{count}.Impl<{types}> rowList{count}({columns}) {{
        List<Column<?>> all = Arrays.asList(new Column<?>[] {{{given}}});
        return new RowList{count}.Impl<{types}>(all, new ArrayList<>(), new HashMap<>());
    }}"""
    return {f"Row{count}": row, f"RowList{count}": whole, "": factory}


def write_sources(folder: Path, widths: Sequence[int], *, scala: bool = False) -> list[Path]:
    """Write the signatures for row lists of these widths, and the printer; returns the files of
    Java."""
    home = folder / "acolyte" / "jdbc"
    home.mkdir(parents=True)
    sources = dict(_JAVA)
    factories = []
    for width in widths:
        made = _row_list(width)
        factories.append(made.pop(""))
        sources |= made
    sources["RowLists"] = (
        f"import java.util.*;\npublic final class RowLists {{{''.join(factories)}\n}}"
    )
    files = []
    for name, text_ in sources.items():
        files.append(home / f"{name}.java")
        files[-1].write_text(f"package acolyte.jdbc;\n{text_}\n")
    files.append(folder / "Printer.java")
    files[-1].write_text(_PRINTER)
    if scala:
        (folder / "AcolyteDSL.scala").write_text(_SCALA)
    return files


def java_tool(name: str) -> str:
    """The path of `java` or of a compiler. The test that asks is skipped where there is none."""
    found = shutil.which(name) or (shutil.which("ecj") if name == "javac" else None)
    if found is None:
        pytest.skip(f"needs {name} (the package default-jdk-headless)")
    return found


def compile_java(folder: Path, files: Sequence[Path]) -> None:
    """Compile sources beside themselves; any warning of generated code fails."""
    release = (
        ["-source", "8", "-target", "8"] if "ecj" in java_tool("javac") else ["--release", "8"]
    )
    done = subprocess.run(
        [java_tool("javac"), *release, "-encoding", "US-ASCII", "-d", str(folder), "-nowarn",
         *map(str, files)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def scala_jars() -> list[str]:
    """The jars of the Scala compiler in the folder that TIDEGATE_TEST_SCALA names. The test that
    asks is skipped where it names none; `./dev scala` gets them."""
    folder = os.environ.get("TIDEGATE_TEST_SCALA")
    if not folder:
        pytest.skip("needs the Scala compiler: run ./dev scala")
    jars = sorted(map(str, Path(folder).rglob("scala-*.jar")))
    assert any("scala-compiler" in jar for jar in jars), f"no Scala compiler in {folder}"
    return jars


def compile_scala(folder: Path, files: Sequence[Path], jars: Sequence[str]) -> None:
    """Compile sources of Scala into a folder that has the classes of Java."""
    path = os.pathsep.join(jars)
    done = subprocess.run(
        [java_tool("java"), "-Xss8m", "-cp", path, "scala.tools.nsc.Main", "-nowarn", "-cp",
         f"{folder}{os.pathsep}{path}", "-d", str(folder), *map(str, files)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def run_printer(folder: Path, names: Sequence[str], zone: str, *more: str) -> None:
    """Write NAME.out for each class."""
    path = os.pathsep.join([str(folder), *more])
    done = subprocess.run(
        [java_tool("java"), "-XX:TieredStopAtLevel=1", f"-Duser.timezone={zone}", "-cp", path,
         "Printer", *names],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]


def printed(folder: Path, name: str) -> tuple[list[str], list[list[str]]]:
    """The columns, and the rows as texts."""
    first, *rest = (folder / f"{name}.out").read_text().split("\n")[:-1]
    return first.split("\t"), [line.split("\t")[:-1] for line in rest]


def shown(value: Any, type_: str, zone: datetime.tzinfo) -> str:
    """What the printer says of a value of a column with this class."""
    if value is None:
        return "null"
    match type_:
        case "String":
            units = (text(value) or "").encode("utf-16-be", "surrogatepass")
            return f"text {base64.b64encode(units).decode()}"
        case "byte[]":
            return f"bytes {base64.b64encode(value).decode()}"
        case "Double":
            return f"double {struct.unpack('>q', struct.pack('>d', value))[0]}"
        case "Float":
            return f"float {struct.unpack('>i', struct.pack('>f', value))[0]}"
        case "Timestamp":
            aware = value if value.tzinfo else value.replace(tzinfo=zone)
            local = aware.astimezone(zone).replace(tzinfo=datetime.UTC)
            return f"timestamp {_seconds(local)} {_seconds(aware)} {1000 * value.microsecond}"
        case "Time":
            since = datetime.datetime.combine(_EPOCH, value, zone).timestamp()
            return f"time {value:%H:%M:%S} {round(since * 1000)}"
        case "OffsetDateTime":
            offset = int(value.utcoffset().total_seconds())
            return f"zoned {_seconds(value)} {1000 * value.microsecond} {offset}"
        case "LocalTime":
            since = datetime.datetime.combine(_EPOCH, value) - datetime.datetime.combine(
                _EPOCH, datetime.time()
            )
            return f"nanos {since // datetime.timedelta(microseconds=1) * 1000}"
        case "Boolean":
            return f"Boolean {'true' if value else 'false'}"
        case "BigDecimal":
            return f"BigDecimal {value if isinstance(value, Decimal) else int(value)}"
        case _:
            return f"{type_} {value}"


def _seconds(value: datetime.datetime) -> int:
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (value - epoch) // datetime.timedelta(seconds=1)
