package tidegate;

import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.TemporalAccessor;

/**
 * Writes dates and times as texts of ISO 8601, as the formatters of {@code java.time} do. Those take
 * several times as long as all else that is done with such a value.
 */
final class Moments {
    private static final int LONGEST = 40;

    private final byte[] text = new byte[LONGEST];
    private int size;

    /** Append the text of a value of the kind that {@code otherwise} formats. */
    void write(TemporalAccessor value, DateTimeFormatter otherwise, Packer target) {
        size = 0;
        boolean plain;
        if (value instanceof LocalDateTime moment) {
            plain = dateTime(moment);
        } else if (value instanceof LocalDate date) {
            plain = date(date);
        } else if (value instanceof OffsetDateTime moment) {
            plain = dateTime(moment.toLocalDateTime()) && offset(moment.getOffset());
        } else if (value instanceof LocalTime time) {
            plain = time(time);
        } else if (value instanceof OffsetTime time) {
            plain = time(time.toLocalTime()) && offset(time.getOffset());
        } else {
            plain = false;
        }
        if (plain) {
            target.utf8(text, size);
        } else {
            target.text(otherwise.format(value));
        }
    }

    private boolean dateTime(LocalDateTime value) {
        if (!date(value.toLocalDate())) {
            return false;
        }
        text[size++] = 'T';
        return time(value.toLocalTime());
    }

    /** Whether the year has four digits; others have a sign. */
    private boolean date(LocalDate value) {
        int year = value.getYear();
        if (year < 0 || year > 9_999) {
            return false;
        }
        two(year / 100);
        two(year % 100);
        text[size++] = '-';
        two(value.getMonthValue());
        text[size++] = '-';
        two(value.getDayOfMonth());
        return true;
    }

    private boolean time(LocalTime value) {
        two(value.getHour());
        text[size++] = ':';
        two(value.getMinute());
        text[size++] = ':';
        two(value.getSecond());
        int nanos = value.getNano();
        if (nanos != 0) {
            text[size++] = '.';
            for (int unit = 100_000_000; nanos > 0; unit /= 10) {
                text[size++] = (byte) ('0' + nanos / unit);
                nanos %= unit;
            }
        }
        return true;
    }

    private boolean offset(ZoneOffset value) {
        String id = value.getId();
        for (int i = 0; i < id.length(); i++) {
            text[size++] = (byte) id.charAt(i);
        }
        return true;
    }

    private void two(int number) {
        text[size++] = (byte) ('0' + number / 10);
        text[size++] = (byte) ('0' + number % 10);
    }
}
