package tidegate;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Writes MessagePack into a buffer that grows. Follows the format of msgpack.org. */
final class Packer {
    private byte[] buffer;
    private int size;

    Packer(int capacity) {
        buffer = new byte[capacity];
    }

    int size() {
        return size;
    }

    byte[] bytes() {
        return Arrays.copyOf(buffer, size);
    }

    void clear() {
        size = 0;
    }

    /** Append what another one holds. */
    void append(Packer other) {
        room(other.size);
        System.arraycopy(other.buffer, 0, buffer, size, other.size);
        size += other.size;
    }

    void writeTo(java.io.OutputStream target) throws java.io.IOException {
        target.write(buffer, 0, size);
    }

    void nil() {
        one(0xc0);
    }

    void bool(boolean value) {
        one(value ? 0xc3 : 0xc2);
    }

    void integer(long value) {
        if (value >= -32 && value <= 127) {
            one((int) value);
        } else if (value >= Integer.MIN_VALUE && value <= Integer.MAX_VALUE) {
            one(0xd2);
            big(value, 4);
        } else {
            one(0xd3);
            big(value, 8);
        }
    }

    void real(double value) {
        one(0xcb);
        big(Double.doubleToRawLongBits(value), 8);
    }

    void text(String value) {
        byte[] encoded = value.getBytes(StandardCharsets.UTF_8);
        int length = encoded.length;
        if (length < 32) {
            one(0xa0 | length);
        } else if (length < 65_536) {
            one(0xda);
            big(length, 2);
        } else {
            one(0xdb);
            big(length, 4);
        }
        raw(encoded);
    }

    void binary(byte[] value) {
        one(0xc6);
        big(value.length, 4);
        raw(value);
    }

    void array(int length) {
        if (length < 16) {
            one(0x90 | length);
        } else {
            one(0xdd);
            big(length, 4);
        }
    }

    void map(int length) {
        one(0xdf);
        big(length, 4);
    }

    /** A null, Boolean, whole number, Double, String, byte[], List, Map or Packer. */
    void value(Object value) {
        if (value == null) {
            nil();
        } else if (value instanceof Packer packed) {
            append(packed);
        } else if (value instanceof Boolean flag) {
            bool(flag);
        } else if (value instanceof Double || value instanceof Float) {
            real(((Number) value).doubleValue());
        } else if (value instanceof Number number) {
            integer(number.longValue());
        } else if (value instanceof byte[] content) {
            binary(content);
        } else if (value instanceof List<?> list) {
            array(list.size());
            for (Object inner : list) {
                value(inner);
            }
        } else if (value instanceof Map<?, ?> map) {
            map(map.size());
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                text(String.valueOf(entry.getKey()));
                value(entry.getValue());
            }
        } else {
            text(value.toString());
        }
    }

    private void one(int value) {
        room(1);
        buffer[size++] = (byte) value;
    }

    private void big(long value, int bytes) {
        room(bytes);
        for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
            buffer[size++] = (byte) (value >>> shift);
        }
    }

    private void raw(byte[] content) {
        room(content.length);
        System.arraycopy(content, 0, buffer, size, content.length);
        size += content.length;
    }

    private void room(int more) {
        long needed = (long) size + more;
        if (needed > Main.MOST_BYTES) {
            throw new Fault("limit.bytes", "A value or a row is larger than can be sent.");
        }
        if (needed > buffer.length) {
            long doubled = Math.min(Main.MOST_BYTES, 2L * buffer.length);
            buffer = Arrays.copyOf(buffer, (int) Math.max(needed, doubled));
        }
    }
}
