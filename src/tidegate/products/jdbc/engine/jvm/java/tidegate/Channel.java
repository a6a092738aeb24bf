package tidegate;

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** One connection of a driver, and the statement on it. Its requests run on one thread. */
final class Channel {
    private static final int FIRST_ROWS = 512;
    private static final int FIRST_BYTES = 131_072;
    private static final int PORTION_BYTES = 1_048_576;
    private static final int FETCH_ROWS = 2_048;

    private final ExecutorService thread = Executors.newSingleThreadExecutor(Main::daemon);
    private final Drivers drivers;
    private Connection connection;
    private boolean transactions;
    private boolean loose;

    private Statement statement;
    private ResultSet rows;
    private Values values;
    private Packer[] columns = {};
    private boolean writes;
    private long affected;

    private volatile Statement cancellable;
    private volatile long answering;

    Channel(Drivers drivers) {
        this.drivers = drivers;
    }

    void submit(Runnable task) {
        thread.execute(task);
    }

    /** Run the last task: a statement that runs is given up, whatever the driver does. */
    void leave(Runnable last) {
        Connection open = connection;
        if (answering != 0 && open != null) {
            Thread abort = Main.daemon(() -> abort(open));
            abort.start();
        }
        thread.execute(last);
        thread.shutdown();
    }

    private static void abort(Connection open) {
        try {
            open.abort(Runnable::run);
        } catch (SQLException | RuntimeException | AbstractMethodError closed) {
            return; // nothing is left to end
        }
    }

    void begin(long number) {
        answering = number;
    }

    void end() {
        answering = 0;
    }

    /** Have the driver end what the request of this number runs. Called on another thread. */
    void interrupt(long number) {
        Statement running = cancellable;
        if (answering != number || running == null) {
            return;
        }
        try {
            running.cancel();
        } catch (SQLException | RuntimeException ended) {
            return; // it had ended, or cannot be cancelled: the process will be ended then
        }
    }

    /**
     * Open the connection. Body: {@code driver} (its class, see {@link Drivers}), {@code url}, {@code
     * properties}, {@code read_only} (ask the driver for it now), {@code loose} (see {@link Values}),
     * {@code statements} to run first. Some databases have no transactions: then nothing is
     * committed or rolled back.
     */
    Object connect(Body body) throws SQLException {
        Properties properties = new Properties();
        for (Map.Entry<?, ?> entry : body.map("properties").entrySet()) {
            properties.setProperty((String) entry.getKey(), (String) entry.getValue());
        }
        loose = body.flag("loose");
        connection = drivers.connect(body.text("driver"), body.text("url"), properties);
        if (body.flag("read_only")) {
            connection.setReadOnly(true);
        }
        DatabaseMetaData about = connection.getMetaData();
        transactions = about.supportsTransactions();
        if (transactions) {
            connection.setAutoCommit(false);
        }
        for (Object each : body.list("statements")) {
            try (Statement first = connection.createStatement()) {
                first.execute((String) each);
            }
        }
        Map<String, Object> greeting = new LinkedHashMap<>();
        greeting.put("product", about.getDatabaseProductName());
        greeting.put("version", about.getDatabaseProductVersion());
        greeting.put("driver_version", about.getDriverVersion());
        greeting.put("catalog", connection.getCatalog());
        greeting.put("schema", schema());
        rollback();
        return greeting;
    }

    private void rollback() throws SQLException {
        if (transactions) {
            connection.rollback();
        }
    }

    Object disconnect() throws SQLException {
        if (connection != null) {
            connection.close();
        }
        return null;
    }

    Object answer(String verb, Body body) throws Exception {
        try {
            return switch (verb) {
                case "run" -> run(body);
                case "fetch" -> portion(body.number("rows", FETCH_ROWS), PORTION_BYTES);
                case "close" -> close();
                case "prepare" -> prepare(body);
                case "dry_run" -> tryOut(body);
                case "catalog" -> new Metadata(connection, transactions, body).tables();
                case "version" -> new Metadata(connection, transactions, body).digest();
                case "alive" -> connection.isValid(body.number("seconds", 2));
                default -> throw new Fault("internal", "The JVM knows no request " + verb + ".");
            };
        } catch (Exception | LinkageError | StackOverflowError failure) {
            abandon();
            throw failure;
        } finally {
            if (statement == null) {
                cancellable = null;
            }
        }
    }

    /**
     * Begin a statement. Body: {@code text}, {@code parameters}, {@code exact} (refuse fractions
     * that the database would cut), {@code writes}, {@code mark} (tell the driver whether it only
     * reads), {@code begin} (statements that open the transaction), {@code schema}, {@code
     * catalog}, {@code seconds}.
     */
    private Object run(Body body) throws Exception {
        close();
        start(body);
        writes = body.flag("writes");
        affected = 0;
        boolean returnsRows = execute(body);
        Map<String, Object> started = new LinkedHashMap<>();
        if (returnsRows) {
            rows = statement.getResultSet();
            values = new Values(rows.getMetaData(), loose);
            columns = packers(values.count());
            started.put("columns", values.columns());
            started.put("portion", portion(writes ? 0 : FIRST_ROWS, FIRST_BYTES));
        } else {
            affected = Math.max(0, count());
            finish();
            started.put("columns", List.of());
            started.put("portion", List.of(List.of(), 0, true, affected));
        }
        return started;
    }

    private void start(Body body) throws SQLException {
        if (body.flag("mark")) {
            connection.setReadOnly(!body.flag("writes"));
        }
        if (body.text("catalog") != null) {
            connection.setCatalog(body.text("catalog"));
        }
        if (body.text("schema") != null) {
            connection.setSchema(body.text("schema"));
        }
        for (Object each : body.list("begin")) {
            try (Statement first = connection.createStatement()) {
                first.execute((String) each);
            }
        }
    }

    private boolean execute(Body body) throws SQLException {
        List<?> parameters = body.list("parameters");
        String text = body.text("text");
        if (parameters.isEmpty()) {
            statement = connection.createStatement();
            // The text runs as it was judged, not as the driver would rewrite `{...}` in it.
            quietly(() -> statement.setEscapeProcessing(false));
            limit(body);
            return statement.execute(text);
        }
        PreparedStatement prepared = connection.prepareStatement(text);
        statement = prepared;
        limit(body);
        for (int i = 0; i < parameters.size(); i++) {
            if (body.flag("exact")) {
                Parameters.checkFraction(prepared, i + 1, parameters.get(i));
            }
            Parameters.bind(prepared, i + 1, parameters.get(i));
        }
        return prepared.execute();
    }

    private void limit(Body body) throws SQLException {
        cancellable = statement;
        int seconds = body.number("seconds", 0);
        quietly(() -> statement.setQueryTimeout(seconds));
        quietly(() -> statement.setFetchSize(FETCH_ROWS));
    }

    private interface Setting {
        void apply() throws SQLException;
    }

    /** Apply what a driver may lack: the server enforces the same itself. */
    private static void quietly(Setting setting) {
        try {
            setting.apply();
        } catch (SQLException | AbstractMethodError unsupported) {
            return;
        }
    }

    private long count() throws SQLException {
        try {
            return statement.getLargeUpdateCount();
        } catch (UnsupportedOperationException | SQLException | AbstractMethodError older) {
            return statement.getUpdateCount();
        }
    }

    /** Up to so many rows: their columns, how many they are, whether they end, what changed. */
    private Object portion(int most, int mostBytes) throws Exception {
        if (rows == null) {
            return List.of(List.of(), 0, true, affected);
        }
        Packer[] filled = columns;
        for (Packer column : filled) {
            column.beginArray();
        }
        int read = 0;
        long size = 0;
        boolean ended = false;
        while (read < most && size < mostBytes) {
            if (!rows.next()) {
                ended = true;
                break;
            }
            size += values.write(rows, filled);
            read++;
        }
        if (writes) {
            affected += read;
        }
        if (ended) {
            finish();
        }
        for (Packer column : filled) {
            column.endArray(read);
        }
        return List.of(List.of(filled), read, ended, affected);
    }

    /** One for each column; they are filled again for each portion of the statement's rows. */
    private static Packer[] packers(int count) {
        Packer[] columns = new Packer[count];
        for (int i = 0; i < count; i++) {
            columns[i] = new Packer(1_024);
        }
        return columns;
    }

    /** The statement has come to its end: keep what it changed, or end the read. */
    private void finish() throws SQLException {
        closeStatement();
        if (!writes) {
            rollback();
        } else if (transactions) {
            connection.commit();
        }
        writes = false;
    }

    private Object close() throws SQLException {
        if (statement != null) {
            closeStatement();
            rollback();
            writes = false;
        }
        return null;
    }

    private void closeStatement() throws SQLException {
        Statement open = statement;
        statement = null;
        rows = null;
        values = null;
        columns = new Packer[0];
        cancellable = null;
        if (open != null) {
            open.close();
        }
    }

    /** Leave nothing of a statement that failed. A connection that cannot is found out later. */
    private void abandon() {
        quietly(this::closeStatement);
        writes = false;
        quietly(this::rollback);
    }

    /** Describe a statement without running it. Body: as for a run. */
    private Object prepare(Body body) throws SQLException {
        close();
        start(body);
        Map<String, Object> description = new LinkedHashMap<>();
        try (PreparedStatement prepared = connection.prepareStatement(body.text("text"))) {
            ResultSetMetaData about = prepared.getMetaData();
            description.put("columns", about == null ? List.of() : new Values(about, false).columns());
            description.put("parameters", parameterTypes(prepared));
        } finally {
            quietly(this::rollback);
        }
        return description;
    }

    private static List<Object> parameterTypes(PreparedStatement prepared) throws SQLException {
        var about = prepared.getParameterMetaData();
        List<Object> types = new ArrayList<>();
        for (int place = 1; place <= about.getParameterCount(); place++) {
            String name = "";
            try {
                name = about.getParameterTypeName(place);
            } catch (SQLException unknown) {
                name = "";
            }
            types.add(name == null ? "" : name);
        }
        return types;
    }

    /** Run a change and undo it: how many rows it would change. Body: as for a run. */
    private Object tryOut(Body body) throws Exception {
        close();
        start(body);
        try {
            boolean returnsRows = execute(body);
            return returnsRows ? -1L : count();
        } finally {
            quietly(this::closeStatement);
            rollback();
        }
    }

    private String schema() {
        try {
            return connection.getSchema();
        } catch (SQLException | AbstractMethodError unsupported) {
            return null;
        }
    }
}
