package tidegate;

import java.math.BigDecimal;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * Gives a statement its parameters. A value that MessagePack has no type for comes as a map of one
 * entry, from the name of its type to its text.
 */
final class Parameters {
    private Parameters() {}

    static void bind(PreparedStatement prepared, int place, Object value) throws SQLException {
        if (value == null) {
            bindNull(prepared, place);
        } else if (value instanceof Long number) {
            if (number == number.intValue()) {
                prepared.setInt(place, number.intValue());
            } else {
                prepared.setLong(place, number);
            }
        } else if (value instanceof byte[] content) {
            prepared.setBytes(place, content);
        } else if (value instanceof List<?>) {
            throw new Fault("argument", "A list cannot be a parameter of a JDBC statement.");
        } else if (value instanceof Map<?, ?> typed) {
            Map.Entry<?, ?> only = typed.entrySet().iterator().next();
            bindTyped(prepared, place, (String) only.getKey(), (String) only.getValue());
        } else {
            prepared.setObject(place, value);
        }
    }

    /** Refuse a number with a fraction for a parameter that the database takes as an integer. */
    static void checkFraction(PreparedStatement prepared, int place, Object value)
            throws SQLException {
        BigDecimal number;
        if (value instanceof Double given && Double.isFinite(given)) {
            number = BigDecimal.valueOf(given);
        } else if (value instanceof Map<?, ?> typed && typed.get("decimal") instanceof String text) {
            number = new BigDecimal(text);
        } else {
            return;
        }
        if (number.stripTrailingZeros().scale() <= 0) {
            return;
        }
        int type = prepared.getParameterMetaData().getParameterType(place);
        switch (type) {
            case Types.TINYINT, Types.SMALLINT, Types.INTEGER, Types.BIGINT ->
                    throw new Fault(
                            "argument",
                            "Parameter " + place + " has a fraction, and the database takes it as"
                                    + " an integer: it would cut it.");
            default -> {}
        }
    }

    private static void bindTyped(PreparedStatement prepared, int place, String type, String text)
            throws SQLException {
        switch (type) {
            case "decimal" -> prepared.setBigDecimal(place, new BigDecimal(text));
            case "uuid" -> bindFirst(prepared, place, UUID.fromString(text), text);
            case "date" -> {
                LocalDate date = LocalDate.parse(text);
                bindFirst(prepared, place, date, java.sql.Date.valueOf(date), text);
            }
            case "time" -> {
                LocalTime time = LocalTime.parse(text);
                bindFirst(prepared, place, time, java.sql.Time.valueOf(time), text);
            }
            case "timestamp" -> {
                LocalDateTime moment = LocalDateTime.parse(text);
                bindFirst(prepared, place, moment, java.sql.Timestamp.valueOf(moment), text);
            }
            case "timestamp_tz" -> {
                OffsetDateTime moment = OffsetDateTime.parse(text);
                Instant instant = moment.toInstant();
                bindFirst(prepared, place, moment, java.sql.Timestamp.from(instant), text);
            }
            default -> throw new Fault("argument", "A parameter has a type that cannot be sent.");
        }
    }

    /** Give the first of these values that the driver takes: older ones know no java.time. */
    private static void bindFirst(PreparedStatement prepared, int place, Object... values)
            throws SQLException {
        for (int i = 0; i < values.length - 1; i++) {
            try {
                prepared.setObject(place, values[i]);
                return;
            } catch (SQLException | IllegalArgumentException unknown) {
                continue;
            }
        }
        prepared.setObject(place, values[values.length - 1]);
    }

    /** Some drivers know no NULL without a type: then it has that of the parameter. */
    private static void bindNull(PreparedStatement prepared, int place) throws SQLException {
        try {
            prepared.setNull(place, Types.NULL);
        } catch (SQLException untyped) {
            prepared.setNull(place, prepared.getParameterMetaData().getParameterType(place));
        }
    }
}
