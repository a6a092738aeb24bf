package tidegate;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.time.format.DateTimeFormatter.ISO_LOCAL_DATE;
import static java.time.format.DateTimeFormatter.ISO_LOCAL_DATE_TIME;
import static java.time.format.DateTimeFormatter.ISO_LOCAL_TIME;
import static java.time.format.DateTimeFormatter.ISO_OFFSET_DATE_TIME;
import static java.time.format.DateTimeFormatter.ISO_OFFSET_TIME;

import java.io.IOException;
import java.io.InputStream;
import java.io.Reader;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.Array;
import java.sql.Blob;
import java.sql.Clob;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.SQLXML;
import java.sql.Struct;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.time.format.DateTimeFormatter;
import java.time.temporal.TemporalAccessor;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/**
 * The columns of a result, and how the values of each travel.
 *
 * <p>A column has a form: {@code plain} values are what MessagePack has; {@code integer}, {@code
 * decimal}, {@code date}, {@code time}, {@code timestamp}, {@code timestamp_tz}, {@code time_tz} and
 * {@code uuid} are texts of such values, as ISO 8601 has them; {@code json} is JSON text. A text that
 * is not one of these (an infinite date) is as the database writes it.
 */
final class Values {
    /** The most characters or bytes of one value. */
    static final int MOST_IN_VALUE = 67_108_864;

    private interface Reads {
        Object read(ResultSet row, int place) throws SQLException, IOException;
    }

    /** Appends the value of one column of the current row of a result. */
    private interface Writes {
        void write(ResultSet row, int place, Packer target) throws SQLException, IOException;
    }

    private final List<Object> columns = new ArrayList<>();
    private final Writes[] writers;
    private final Moments moments = new Moments();

    /** {@code loose}: values decide what they are, not their columns, as in SQLite. */
    Values(ResultSetMetaData about, boolean loose) throws SQLException {
        int count = about.getColumnCount();
        writers = new Writes[count];
        for (int place = 1; place <= count; place++) {
            int type = about.getColumnType(place);
            String name = text(about.getColumnTypeName(place));
            String kind = className(about, place);
            String form = loose ? "plain" : form(type, name, kind);
            writers[place - 1] = loose ? written(Values::any) : writer(form, type, kind);
            List<Object> column = new ArrayList<>(8);
            column.add(text(about.getColumnLabel(place)));
            column.add(name);
            column.add(type);
            column.add(kind);
            column.add(about.getPrecision(place));
            column.add(about.getScale(place));
            column.add(about.isNullable(place) != ResultSetMetaData.columnNoNulls);
            column.add(form);
            columns.add(column);
        }
    }

    /** For each column label, type name, type code, class, precision, scale, nullable, form. */
    List<Object> columns() {
        return columns;
    }

    int count() {
        return writers.length;
    }

    /** Append the result's current row, each value to the packer of its column. */
    int write(ResultSet row, Packer[] targets) throws SQLException, IOException {
        int size = 0;
        for (int place = 0; place < writers.length; place++) {
            Packer target = targets[place];
            int before = target.size();
            writers[place].write(row, place + 1, target);
            size += target.size() - before;
        }
        return size;
    }

    private static String className(ResultSetMetaData about, int place) {
        try {
            return text(about.getColumnClassName(place));
        } catch (SQLException unknown) {
            return "java.lang.Object";
        }
    }

    private static String text(String value) {
        return value == null ? "" : value;
    }

    private static String form(int type, String name, String kind) {
        String lower = name.toLowerCase(java.util.Locale.ROOT);
        if (kind.equals("java.util.UUID") || lower.equals("uuid")) {
            return "uuid";
        }
        if (lower.equals("json") || lower.equals("jsonb")) {
            return "json";
        }
        return switch (type) {
            case Types.BIGINT -> kind.equals("java.math.BigInteger") ? "integer" : "plain";
            case Types.NUMERIC, Types.DECIMAL -> "decimal";
            case Types.DATE -> lower.equals("year") ? "plain" : "date";
            case Types.TIME -> lower.equals("timetz") ? "time_tz" : "time";
            case Types.TIMESTAMP -> lower.equals("timestamptz") ? "timestamp_tz" : "timestamp";
            case Types.TIMESTAMP_WITH_TIMEZONE -> "timestamp_tz";
            case Types.TIME_WITH_TIMEZONE -> "time_tz";
            default -> "plain";
        };
    }

    private Writes writer(String form, int type, String kind) {
        switch (form) {
            case "uuid":
                return written(Values::uuid);
            case "json":
                return written(Values::json);
            case "integer", "decimal":
                return written(Values::decimal);
            case "date":
                return temporal(LocalDate.class, ISO_LOCAL_DATE);
            case "time":
                return temporal(LocalTime.class, ISO_LOCAL_TIME);
            case "time_tz":
                return temporal(OffsetTime.class, ISO_OFFSET_TIME);
            case "timestamp":
                return temporal(LocalDateTime.class, ISO_LOCAL_DATE_TIME);
            case "timestamp_tz":
                return temporal(OffsetDateTime.class, ISO_OFFSET_DATE_TIME);
            default:
                return plain(type, kind);
        }
    }

    private static Writes plain(int type, String kind) {
        switch (type) {
            case Types.BIT, Types.BOOLEAN:
                return written(kind.equals("[B") ? Values::bytes : Values::flag);
            case Types.TINYINT, Types.SMALLINT, Types.INTEGER, Types.BIGINT:
                return Values::whole;
            case Types.REAL, Types.FLOAT, Types.DOUBLE:
                return written(kind.startsWith("java.lang.") ? Values::real : ResultSet::getString);
            case Types.CHAR, Types.VARCHAR, Types.LONGVARCHAR, Types.NCHAR, Types.NVARCHAR,
                    Types.LONGNVARCHAR:
                return written(ResultSet::getString);
            case Types.DATE: // MariaDB's YEAR
                return Values::whole;
            case Types.CLOB, Types.NCLOB:
                return written(Values::clob);
            case Types.BINARY, Types.VARBINARY, Types.LONGVARBINARY:
                return written(Values::bytes);
            case Types.BLOB:
                return written(Values::blob);
            case Types.SQLXML:
                return written(Values::xml);
            default:
                return written(Values::any);
        }
    }

    private static Writes written(Reads reads) {
        return (row, place, target) -> target.value(reads.read(row, place));
    }

    private static Object flag(ResultSet row, int place) throws SQLException {
        boolean value = row.getBoolean(place);
        return row.wasNull() ? null : value;
    }

    private static void whole(ResultSet row, int place, Packer target) throws SQLException {
        long value = row.getLong(place);
        if (value == 0 && row.wasNull()) {
            target.nil();
        } else {
            target.integer(value);
        }
    }

    private static Object real(ResultSet row, int place) throws SQLException {
        Object value = row.getObject(place);
        // The shortest decimal that is this float: 0.1 and not 0.10000000149011612.
        return value instanceof Float single ? (Object) Double.valueOf(single.toString()) : value;
    }

    private static Object decimal(ResultSet row, int place) throws SQLException {
        try {
            BigDecimal value = row.getBigDecimal(place);
            return value == null ? null : value.toString();
        } catch (SQLException | NumberFormatException notFinite) {
            return row.getString(place);
        }
    }

    private static Object bytes(ResultSet row, int place) throws SQLException {
        byte[] value;
        try {
            value = row.getBytes(place);
        } catch (SQLFeatureNotSupportedException unsupported) {
            value = (byte[]) row.getObject(place);
        }
        if (value != null && value.length > MOST_IN_VALUE) {
            throw tooLarge();
        }
        return value;
    }

    private static Object uuid(ResultSet row, int place) throws SQLException {
        Object value = row.getObject(place);
        return value == null || value instanceof UUID ? string(value) : row.getString(place);
    }

    private static Object json(ResultSet row, int place) throws SQLException {
        Object value = row.getObject(place);
        if (value instanceof byte[] content) {
            return new String(content, java.nio.charset.StandardCharsets.UTF_8);
        }
        return value == null ? null : row.getString(place);
    }

    private Writes temporal(Class<? extends TemporalAccessor> kind, DateTimeFormatter form) {
        return new Temporal(kind, form);
    }

    /** A column of dates or times. Some drivers have them as texts only. */
    private final class Temporal implements Writes {
        private final Class<? extends TemporalAccessor> kind;
        private final DateTimeFormatter form;
        private boolean lacking;

        Temporal(Class<? extends TemporalAccessor> kind, DateTimeFormatter form) {
            this.kind = kind;
            this.form = form;
        }

        @Override
        public void write(ResultSet row, int place, Packer target) throws SQLException {
            TemporalAccessor value = null;
            boolean asText = lacking;
            if (!asText) {
                try {
                    value = row.getObject(place, kind);
                    asText = isBeyond(value);
                } catch (SQLFeatureNotSupportedException | AbstractMethodError unsupported) {
                    lacking = true;
                    asText = true;
                } catch (SQLException | RuntimeException unreadable) {
                    asText = true;
                }
            }
            if (asText && !lacking && kind == LocalDate.class && value == null) {
                String written = writtenDate(row, place);
                target.value(written != null ? written : row.getString(place));
            } else if (asText || value == null) {
                target.value(row.getString(place)); // not NULL where it is MariaDB's 0000-00-00
            } else {
                moments.write(value, form, target);
            }
        }
    }

    /** The bytes of a date that there is not, which MariaDB's driver shows as another one. */
    private static String writtenDate(ResultSet row, int place) {
        try {
            byte[] content = row.getBytes(place);
            String text = content == null ? "" : new String(content, ISO_8859_1);
            return text.matches("\\d{4}-\\d\\d-\\d\\d") ? text : null;
        } catch (SQLException | RuntimeException unsupported) {
            return null;
        }
    }

    /** Whether it is what drivers give for infinite dates and moments, and for 24:00:00. */
    static boolean isBeyond(Object value) {
        if (value instanceof OffsetTime time) {
            return LocalTime.MAX.equals(time.toLocalTime());
        }
        return value != null && BEYOND.contains(value);
    }

    private static final java.util.Set<Object> BEYOND =
            java.util.Set.of(
                    LocalDate.MAX, LocalDate.MIN, LocalDateTime.MAX, LocalDateTime.MIN,
                    OffsetDateTime.MAX, OffsetDateTime.MIN, LocalTime.MAX);

    private static String string(Object value) {
        return value == null ? null : value.toString();
    }

    private static Object clob(ResultSet row, int place) throws SQLException, IOException {
        Clob value;
        try {
            value = row.getClob(place);
        } catch (SQLException plainText) {
            return row.getString(place);
        }
        return value == null ? null : characters(value);
    }

    private static String characters(Clob value) throws SQLException, IOException {
        try (Reader reader = value.getCharacterStream()) {
            StringBuilder text = new StringBuilder();
            char[] part = new char[8_192];
            for (int read; (read = reader.read(part)) >= 0; ) {
                text.append(part, 0, read);
                if (text.length() > MOST_IN_VALUE) {
                    throw tooLarge();
                }
            }
            return text.toString();
        }
    }

    private static Object blob(ResultSet row, int place) throws SQLException, IOException {
        Blob value;
        try {
            value = row.getBlob(place);
        } catch (SQLException plainBytes) {
            return bytes(row, place);
        }
        return value == null ? null : content(value);
    }

    private static byte[] content(Blob value) throws SQLException, IOException {
        try (InputStream stream = value.getBinaryStream()) {
            byte[] content = stream.readNBytes(MOST_IN_VALUE + 1);
            if (content.length > MOST_IN_VALUE) {
                throw tooLarge();
            }
            return content;
        }
    }

    private static Object xml(ResultSet row, int place) throws SQLException {
        SQLXML value = row.getSQLXML(place);
        return value == null ? null : value.getString();
    }

    private static Object any(ResultSet row, int place) throws SQLException, IOException {
        Object value = row.getObject(place);
        Object known = portable(value);
        return known == UNKNOWN ? row.getString(place) : known;
    }

    private static final Object UNKNOWN = new Object();

    /** The value as MessagePack has it; UNKNOWN if only the driver can write it as text. */
    private static Object portable(Object value) throws SQLException, IOException {
        if (value == null
                || value instanceof String
                || value instanceof Boolean
                || value instanceof Integer
                || value instanceof Long
                || value instanceof Double
                || value instanceof Short
                || value instanceof Byte) {
            return value;
        }
        if (value instanceof Float single) {
            return Double.valueOf(single.toString());
        }
        if (value instanceof BigDecimal || value instanceof BigInteger || value instanceof UUID) {
            return value.toString();
        }
        if (value instanceof byte[] content) {
            return content;
        }
        if (value instanceof Blob blob) {
            return content(blob);
        }
        if (value instanceof Clob clob) {
            return characters(clob);
        }
        if (value instanceof Array array) {
            Object content = array.getArray();
            Object moments = InnerMoments.elements(array, content);
            return moments != null ? moments : elements(content, isJson(array));
        }
        if (value instanceof Struct struct) {
            return elements(struct.getAttributes(), false);
        }
        return value instanceof Object[] ? elements(value, false) : UNKNOWN;
    }

    private static boolean isJson(Array array) {
        try {
            return "JSON".equalsIgnoreCase(array.getBaseTypeName());
        } catch (SQLException | RuntimeException unknown) {
            return false;
        }
    }

    private static Object elements(Object array, boolean json) throws SQLException, IOException {
        if (array == null) {
            return null;
        }
        int length = java.lang.reflect.Array.getLength(array);
        List<Object> values = new ArrayList<>(length);
        for (int i = 0; i < length; i++) {
            Object element = java.lang.reflect.Array.get(array, i);
            if (json && element instanceof byte[] content) {
                values.add(new String(content, java.nio.charset.StandardCharsets.UTF_8));
                continue;
            }
            Object known = portable(element);
            values.add(known == UNKNOWN ? InnerMoments.text(element) : known);
        }
        return values;
    }

    private static Fault tooLarge() {
        return new Fault("limit.bytes", "A value is larger than 64 MiB.");
    }
}
