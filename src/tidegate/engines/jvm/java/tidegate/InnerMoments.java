package tidegate;

import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.OffsetTime;

/** Dates and times within arrays and structures, as those of whole columns are shown. */
final class InnerMoments {
    private InnerMoments() {}

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
        return time.isEmpty() ? day + " BC" : day + " " + time + " BC";
    }

    /** Six digits or none behind the second, nine if they are needed. */
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
