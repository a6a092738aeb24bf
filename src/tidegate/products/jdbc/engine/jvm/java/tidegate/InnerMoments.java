package tidegate;

import java.sql.Array;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Dates and times within arrays and structures, as those of whole columns are shown. */
final class InnerMoments {
    private InnerMoments() {}

    /**
     * The elements of an array whose driver has dates and times of the Java process's own time zone,
     * in which some do not exist; null if it is none of these.
     */
    static List<Object> elements(Array array, Object content) {
        Class<?> kind = null;
        for (int i = 0; content instanceof Object[] all && i < all.length; i++) {
            if (all[i] != null && !(all[i] instanceof java.util.Date)) {
                return null;
            }
            kind = all[i] == null ? kind : ZONELESS.get(all[i].getClass());
        }
        if (kind == null) {
            return null;
        }
        kind = ZONED.getOrDefault(baseType(array), kind);
        List<Object> values = new ArrayList<>();
        try (ResultSet rows = array.getResultSet()) {
            while (rows.next()) {
                Object value = rows.getObject(2, kind);
                if (value == null) {
                    values.add(null);
                } else {
                    values.add(Values.isBeyond(value) ? rows.getString(2) : text(value));
                }
            }
        } catch (SQLException | RuntimeException unsupported) {
            return null;
        }
        return values;
    }

    private static String baseType(Array array) {
        try {
            return array.getBaseTypeName().toLowerCase(java.util.Locale.ROOT);
        } catch (SQLException | RuntimeException unknown) {
            return "";
        }
    }

    private static final Map<String, Class<?>> ZONED =
            Map.of("timestamptz", OffsetDateTime.class, "timetz", OffsetTime.class);

    private static final Map<Class<?>, Class<?>> ZONELESS =
            Map.of(
                    java.sql.Timestamp.class, LocalDateTime.class,
                    java.sql.Date.class, LocalDate.class,
                    java.sql.Time.class, LocalTime.class);

    /** The text of a value; of one that is no date and no time, what it says of itself. */
    static String text(Object value) {
        if (value instanceof java.sql.Timestamp moment) {
            return text(moment.toLocalDateTime());
        } else if (value instanceof java.sql.Date date) {
            return text(date.toLocalDate());
        } else if (value instanceof java.sql.Time time) {
            return text(time.toLocalTime());
        } else if (value instanceof LocalDate date) {
            return day(date, "");
        } else if (value instanceof LocalTime time) {
            return clock(time);
        } else if (value instanceof OffsetTime time) {
            return clock(time.toLocalTime()) + time.getOffset().getId();
        } else if (value instanceof LocalDateTime moment) {
            return day(moment.toLocalDate(), clock(moment.toLocalTime()));
        } else if (value instanceof OffsetDateTime moment) {
            String time = clock(moment.toLocalTime()) + moment.getOffset().getId();
            return day(moment.toLocalDate(), time);
        }
        return String.valueOf(value);
    }

    private static String day(LocalDate date, String time) {
        int year = date.getYear();
        int shown = year > 0 ? year : 1 - year;
        String day = String.format("%04d-%02d-%02d", shown, date.getMonthValue(), date.getDayOfMonth());
        if (year > 0) {
            return time.isEmpty() ? day : day + "T" + time;
        }
        return time.isEmpty() ? day + " BC" : day + " " + time.replace("Z", "+00") + " BC";
    }

    /** Six digits or none after the second, nine if they are needed. */
    private static String clock(LocalTime time) {
        int nanos = time.getNano();
        String seconds =
                String.format("%02d:%02d:%02d", time.getHour(), time.getMinute(), time.getSecond());
        if (nanos == 0) {
            return seconds;
        }
        return seconds
                + (nanos % 1_000 == 0
                        ? String.format(".%06d", nanos / 1_000)
                        : String.format(".%09d", nanos));
    }
}
