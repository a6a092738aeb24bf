package tidegate;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What a driver says of tables. Body: {@code catalog}, {@code schema} and {@code table} (exact
 * names, or none), {@code system_schemas} (left out), {@code keys} (read keys and indexes too),
 * {@code catalogs} (what the gate calls a schema is what JDBC calls a catalog).
 */
final class Metadata {
    private static final String ANY = "%";

    private final Connection connection;
    private final boolean transactions;
    private final DatabaseMetaData about;
    private final String catalog;
    private final String schema;
    private final String table;
    private final Set<Object> systemSchemas;
    private final boolean keys;
    private final String schemaColumn;

    Metadata(Connection connection, boolean transactions, Body body) throws SQLException {
        this.connection = connection;
        this.transactions = transactions;
        about = connection.getMetaData();
        String named = body.text("catalog");
        catalog = named == null ? connection.getCatalog() : named;
        schema = body.flag("catalogs") ? null : body.text("schema");
        table = body.text("table");
        systemSchemas = new HashSet<>(body.list("system_schemas"));
        keys = body.flag("keys");
        schemaColumn = body.flag("catalogs") ? "TABLE_CAT" : "TABLE_SCHEM";
    }

    /** All tables, each a map; rolled back, so that no transaction stays open. */
    Object tables() throws SQLException {
        try {
            Map<List<String>, Map<String, Object>> found = new LinkedHashMap<>();
            readTables(found);
            readColumns(found);
            found.values().removeIf(Metadata::isIndex);
            if (keys) {
                for (Map.Entry<List<String>, Map<String, Object>> entry : found.entrySet()) {
                    readKeys(entry.getKey(), entry.getValue());
                }
            }
            return List.copyOf(found.values());
        } finally {
            end();
        }
    }

    /** A text that changes with the name, type or place of any column. */
    Object digest() throws Exception {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            try (ResultSet row = about.getTables(catalog, null, ANY, null)) {
                while (row.next()) {
                    if (!systemSchemas.contains(text(row.getString(schemaColumn)))) {
                        add(digest, row, schemaColumn, "TABLE_NAME", "TABLE_TYPE");
                    }
                }
            }
            try (ResultSet row = about.getColumns(catalog, null, ANY, ANY)) {
                while (row.next()) {
                    if (!systemSchemas.contains(text(row.getString(schemaColumn)))) {
                        add(digest, row, schemaColumn, "TABLE_NAME", "COLUMN_NAME", "TYPE_NAME");
                    }
                }
            }
            return HexFormat.of().formatHex(digest.digest(), 0, 16);
        } finally {
            end();
        }
    }

    private void end() throws SQLException {
        if (transactions) {
            connection.rollback();
        }
    }

    private static void add(MessageDigest digest, ResultSet row, String... names)
            throws SQLException {
        for (String name : names) {
            digest.update(text(row.getString(name)).getBytes(StandardCharsets.UTF_8));
            digest.update((byte) 0);
        }
    }

    private void readTables(Map<List<String>, Map<String, Object>> found) throws SQLException {
        try (ResultSet row = about.getTables(catalog, pattern(schema), pattern(table), null)) {
            while (row.next()) {
                String place = text(row.getString(schemaColumn));
                String name = text(row.getString("TABLE_NAME"));
                String kind = text(row.getString("TABLE_TYPE"));
                boolean wanted =
                        (schema == null || schema.equals(place))
                                && (table == null || table.equals(name))
                                && !systemSchemas.contains(place)
                                && !kind.contains("INDEX")
                                && !kind.contains("SEQUENCE")
                                && !kind.contains("SYNONYM")
                                && !kind.equals("TYPE");
                if (!wanted) {
                    continue;
                }
                Map<String, Object> entry = new LinkedHashMap<>();
                entry.put("schema", place);
                entry.put("name", name);
                entry.put("kind", kind);
                entry.put("comment", optional(row, "REMARKS"));
                entry.put("columns", new ArrayList<>());
                found.put(List.of(place, name), entry);
            }
        }
    }

    /** SQLite's driver lists an index that SQLite made by itself as a table without columns, and
     * refuses to tell its keys. */
    private static boolean isIndex(Map<String, Object> entry) {
        return entry.get("kind").equals("SYSTEM TABLE")
                && ((List<?>) entry.get("columns")).isEmpty();
    }

    @SuppressWarnings("unchecked")
    private void readColumns(Map<List<String>, Map<String, Object>> found) throws SQLException {
        try (ResultSet row = about.getColumns(catalog, pattern(schema), pattern(table), ANY)) {
            while (row.next()) {
                // Read in the order of the columns: some drivers cannot go back.
                String place = text(row.getString(schemaColumn));
                String name = text(row.getString("TABLE_NAME"));
                Map<String, Object> entry = found.get(List.of(place, name));
                if (entry == null) {
                    continue;
                }
                List<Object> column = new ArrayList<>();
                column.add(row.getString("COLUMN_NAME"));
                column.add(row.getInt("DATA_TYPE"));
                column.add(text(row.getString("TYPE_NAME")));
                column.add(row.getInt("COLUMN_SIZE"));
                column.add(row.getInt("DECIMAL_DIGITS"));
                column.add(row.getInt("NULLABLE") != DatabaseMetaData.columnNoNulls);
                column.add(optional(row, "REMARKS"));
                column.add(optional(row, "COLUMN_DEF"));
                ((List<Object>) entry.get("columns")).add(column);
            }
        }
    }

    private void readKeys(List<String> place, Map<String, Object> entry) throws SQLException {
        boolean named = !place.get(0).isEmpty() && schemaColumn.equals("TABLE_SCHEM");
        String in = named ? place.get(0) : null;
        String name = place.get(1);
        entry.put("primary", ifKnown(() -> primaryKey(in, name)));
        entry.put("foreign", ifKnown(() -> foreignKeys(in, name)));
        String kind = String.valueOf(entry.get("kind"));
        entry.put("indexes", ifKnown(() -> indexes(in, name, kind)));
    }

    private interface Lists {
        List<Object> list() throws SQLException;
    }

    /** Empty where the database has no such thing: those without transactions fail in many ways. */
    private List<Object> ifKnown(Lists lists) throws SQLException {
        try {
            return lists.list();
        } catch (SQLFeatureNotSupportedException
                | UnsupportedOperationException
                | AbstractMethodError unsupported) {
            return List.of();
        } catch (SQLException | RuntimeException failure) {
            if (transactions) {
                throw failure;
            }
            return List.of();
        }
    }

    private List<Object> primaryKey(String in, String name) throws SQLException {
        List<Object> primary = new ArrayList<>();
        try (ResultSet row = about.getPrimaryKeys(catalog, in, name)) {
            while (row.next()) {
                primary.add(List.of(row.getString("COLUMN_NAME"), row.getInt("KEY_SEQ")));
            }
        }
        return primary;
    }

    private List<Object> foreignKeys(String in, String name) throws SQLException {
        List<Object> foreign = new ArrayList<>();
        try (ResultSet row = about.getImportedKeys(catalog, in, name)) {
            while (row.next()) {
                List<Object> part = new ArrayList<>();
                part.add(text(row.getString("PK" + schemaColumn)));
                part.add(text(row.getString("PKTABLE_NAME")));
                part.add(text(row.getString("PKCOLUMN_NAME")));
                part.add(text(row.getString("FKCOLUMN_NAME")));
                part.add(row.getInt("KEY_SEQ"));
                part.add(row.getInt("UPDATE_RULE"));
                part.add(row.getInt("DELETE_RULE"));
                part.add(text(row.getString("FK_NAME")));
                foreign.add(part);
            }
        }
        return foreign;
    }

    private List<Object> indexes(String in, String name, String kind) throws SQLException {
        List<Object> indexes = new ArrayList<>();
        if (kind.contains("VIEW")) {
            return indexes;
        }
        try (ResultSet row = about.getIndexInfo(catalog, in, name, false, true)) {
            while (row.next()) {
                if (row.getShort("TYPE") == DatabaseMetaData.tableIndexStatistic) {
                    continue;
                }
                List<Object> part = new ArrayList<>();
                part.add(text(row.getString("INDEX_NAME")));
                part.add(text(row.getString("COLUMN_NAME")));
                part.add(row.getInt("ORDINAL_POSITION"));
                part.add(!row.getBoolean("NON_UNIQUE"));
                indexes.add(part);
            }
        }
        return indexes;
    }

    /** A name as a pattern that fits it, and perhaps others: what comes is compared again. */
    private String pattern(String name) throws SQLException {
        if (name == null) {
            return ANY;
        }
        String escape = about.getSearchStringEscape();
        if (escape == null || escape.isEmpty()) {
            return name;
        }
        return name.replace(escape, escape + escape)
                .replace("_", escape + "_")
                .replace("%", escape + "%");
    }

    private static String optional(ResultSet row, String name) {
        try {
            return row.getString(name);
        } catch (SQLException missing) {
            return null;
        }
    }

    private static String text(String value) {
        return value == null ? "" : value;
    }
}
