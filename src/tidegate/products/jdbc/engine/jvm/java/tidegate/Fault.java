package tidegate;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/**
 * An error on its way to the server: a code, the words for it, and what the database said.
 *
 * <p>Codes: {@code sql} for errors of the driver or database, which have a SQLSTATE and perhaps a
 * number; {@code driver.missing}, {@code driver.url}; others as the server names its own.
 */
final class Fault extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private static final int MOST_CHARACTERS = 4_000;

    private final String code;
    private final String state;
    private final int number;

    Fault(String code, String message) {
        this(code, message, null, 0);
    }

    private Fault(String code, String message, String state, int number) {
        super(message, null, false, false);
        this.code = code;
        this.state = state;
        this.number = number;
    }

    /** The fault for anything that was thrown. Errors of the JVM itself are not caught here. */
    static Fault of(Throwable thrown) {
        if (thrown instanceof Fault fault) {
            return fault;
        }
        if (thrown instanceof SQLException failure) {
            return new Fault("sql", words(failure), state(failure), failure.getErrorCode());
        }
        return new Fault("driver.failed", words(thrown));
    }

    List<Object> packed() {
        List<Object> fields = new ArrayList<>(4);
        fields.add(code);
        fields.add(getMessage());
        fields.add(state);
        fields.add(number);
        return fields;
    }

    private static String state(SQLException failure) {
        for (Throwable each = failure; each != null; each = each.getCause()) {
            if (each instanceof SQLException inner && inner.getSQLState() != null) {
                return inner.getSQLState();
            }
        }
        return null;
    }

    /** The message, with those of its causes that say more; some drivers say only there why. */
    private static String words(Throwable thrown) {
        StringBuilder text = new StringBuilder(sentence(thrown));
        int depth = 0;
        for (Throwable each = thrown.getCause(); each != null && depth < 4; each = each.getCause()) {
            String more = sentence(each);
            if (text.indexOf(more) < 0) {
                text.append(": ").append(more);
            }
            depth++;
        }
        return text.substring(0, Math.min(text.length(), MOST_CHARACTERS));
    }

    private static String sentence(Throwable thrown) {
        String message = thrown.getMessage();
        return message == null || message.isBlank() ? thrown.getClass().getName() : message.strip();
    }
}
