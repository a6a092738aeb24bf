import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

/**
 * Uses each source through PostgreSQL's JDBC driver, and prints what it found: one line for each
 * step, `source, step, value` with tabs between them. An error is the value `! SQLSTATE message`.
 */
public class JdbcClient {
    private interface Step {
        Object run() throws Exception;
    }

    private final String address;
    private final String secret;
    private final String source;
    private final String schema;
    private final String table;
    private final String query;
    private final String endless;

    private JdbcClient(String address, String secret, String[] words) {
        this.address = address;
        this.secret = secret;
        source = words[0];
        schema = words[1].isEmpty() ? null : words[1];
        table = words[2];
        query = words[3];
        endless = words[4];
    }

    /** Arguments: address, token; of each source its name, schema, table, query, endless query. */
    public static void main(String[] arguments) throws Exception {
        for (int at = 2; at + 4 < arguments.length; at += 5) {
            new JdbcClient(arguments[0], arguments[1], Arrays.copyOfRange(arguments, at, at + 5)).run();
        }
    }

    private Connection connect(String... options) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", "writer");
        properties.setProperty("password", secret);
        for (int at = 0; at < options.length; at += 2) {
            properties.setProperty(options[at], options[at + 1]);
        }
        return DriverManager.getConnection("jdbc:postgresql://" + address + "/" + source, properties);
    }

    private void show(String step, Step body) {
        String value;
        try {
            value = String.valueOf(body.run());
        } catch (SQLException error) {
            value = "! " + error.getSQLState() + " " + error.getMessage();
        } catch (Exception error) {
            value = "! " + error;
        }
        System.out.println(source + "\t" + step + "\t" + value.replace('\n', ' ').replace('\t', ' '));
    }

    private void run() throws Exception {
        show("simple", () -> {
            try (Connection gate = connect("preferQueryMode", "simple")) {
                return rows(gate.createStatement().executeQuery(query));
            }
        });
        try (Connection gate = connect("prepareThreshold", "1")) {
            queries(gate);
            DatabaseMetaData meta = gate.getMetaData();
            show("product", () -> meta.getDatabaseProductName() + " " + meta.getDatabaseMajorVersion());
            show("schemas", () -> rows(meta.getSchemas(), "TABLE_SCHEM"));
            show("catalogs", () -> rows(meta.getCatalogs()));
            show("tables", () -> rows(meta.getTables(null, schema, "%", new String[] {"TABLE", "VIEW"}),
                "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE", "REMARKS"));
            show("columns", () -> rows(meta.getColumns(null, schema, table, "%"),
                "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE", "IS_NULLABLE", "REMARKS"));
            show("primary keys", () -> rows(meta.getPrimaryKeys(null, schema, table),
                "COLUMN_NAME", "KEY_SEQ"));
            show("imported keys", () -> rows(meta.getImportedKeys(null, schema, "sale"),
                "PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ"));
            show("exported keys", () -> rows(meta.getExportedKeys(null, schema, table),
                "FKTABLE_NAME", "FKCOLUMN_NAME"));
            show("indexes", () -> rows(meta.getIndexInfo(null, schema, "sale", false, true),
                "INDEX_NAME", "COLUMN_NAME", "NON_UNIQUE"));
            show("types", () -> rows(meta.getTypeInfo(), "TYPE_NAME").contains("numeric"));
            show("procedures", () -> rows(meta.getProcedures(null, schema, "%")));
            show("keywords", () -> meta.getSQLKeywords().length() > 0);
            show("name length", meta::getMaxTableNameLength);
        }
    }

    private void queries(Connection gate) {
        show("extended", () -> {
            String found = "";
            // From the second time on it is a statement of the server, with values in binary format.
            for (int times = 0; times < 4; times++) {
                try (PreparedStatement statement = gate.prepareStatement(query)) {
                    found = rows(statement.executeQuery());
                }
            }
            return found;
        });
        show("kinds", () -> {
            ResultSet found = gate.createStatement().executeQuery(query);
            ResultSetMetaData about = found.getMetaData();
            List<String> kinds = new ArrayList<>();
            for (int at = 1; at <= about.getColumnCount(); at++) {
                kinds.add(about.getColumnName(at) + " " + about.getColumnTypeName(at));
            }
            return kinds;
        });
        show("error", () -> rows(gate.createStatement().executeQuery("SELECT nope FROM " + table)));
        if (source.equals("cloud")) {
            return;
        }
        show("parameters", () -> {
            try (PreparedStatement statement = gate.prepareStatement(
                    "SELECT name FROM item WHERE id = ? OR name = ? ORDER BY id")) {
                statement.setInt(1, 1);
                statement.setString(2, "hat");
                return rows(statement.executeQuery());
            }
        });
        show("fetch size", () -> {
            gate.setAutoCommit(false);
            try (Statement statement = gate.createStatement()) {
                statement.setFetchSize(2);
                return rows(statement.executeQuery("SELECT id FROM item ORDER BY id"));
            } finally {
                gate.rollback();
                gate.setAutoCommit(true);
            }
        });
        show("batch", () -> {
            try (PreparedStatement statement = gate.prepareStatement(
                    "INSERT INTO sale (id, item, amount) VALUES (?, ?, ?)")) {
                for (int id = 101; id <= 103; id++) {
                    statement.setInt(1, id);
                    statement.setInt(2, 1);
                    statement.setInt(3, id);
                    statement.addBatch();
                }
                return Arrays.toString(statement.executeBatch());
            }
        });
        show("deleted", () -> gate.createStatement().executeUpdate("DELETE FROM sale WHERE id > 100"));
        show("cancelled", () -> {
            try (Statement statement = gate.createStatement()) {
                Thread canceller = new Thread(() -> {
                    try {
                        Thread.sleep(300);
                        statement.cancel();
                    } catch (Exception error) {
                        System.err.println(error);
                    }
                });
                canceller.start();
                try {
                    return rows(statement.executeQuery(endless));
                } finally {
                    canceller.join();
                }
            }
        });
    }

    private static String rows(ResultSet found, String... names) throws SQLException {
        List<String> rows = new ArrayList<>();
        int count = names.length > 0 ? names.length : found.getMetaData().getColumnCount();
        while (found.next()) {
            List<String> row = new ArrayList<>();
            for (int at = 1; at <= count; at++) {
                Object value = names.length > 0 ? found.getObject(names[at - 1]) : found.getObject(at);
                row.add(String.valueOf(value));
            }
            rows.add(String.join("|", row));
        }
        return String.join("; ", rows);
    }
}
