package tidegate;

import java.util.List;
import java.util.Map;

/** The named values of a request. */
final class Body {
    private final Map<?, ?> values;

    private Body(Map<?, ?> values) {
        this.values = values;
    }

    static Body of(Object value) {
        return new Body(value instanceof Map<?, ?> map ? map : Map.of());
    }

    /** Null if it is not given. */
    String text(String name) {
        return (String) values.get(name);
    }

    boolean flag(String name) {
        return Boolean.TRUE.equals(values.get(name));
    }

    int number(String name, int otherwise) {
        return values.get(name) instanceof Long number
                ? (int) Math.min(number, Integer.MAX_VALUE)
                : otherwise;
    }

    List<?> list(String name) {
        return values.get(name) instanceof List<?> list ? list : List.of();
    }

    Map<?, ?> map(String name) {
        return values.get(name) instanceof Map<?, ?> map ? map : Map.of();
    }
}
