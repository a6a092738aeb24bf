package tidegate;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Writes MessagePack into a buffer that grows. Follows the format of msgpack.org. */
final class Packer {
    private static final int MANY = 65_536;
    private static final int MOST_KEPT = 4_194_304;

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
        } else if (value == (int) value) {
            one(0xd2);
            four((int) value);
        } else {
            one(0xd3);
            eight(value);
        }
    }

    void real(double value) {
        one(0xcb);
        eight(Double.doubleToRawLongBits(value));
    }

    void text(String value) {
        byte[] encoded = value.getBytes(StandardCharsets.UTF_8);
        utf8(encoded, encoded.length);
    }

    /** A text whose UTF-8 are the first so many bytes. */
    void utf8(byte[] encoded, int length) {
        if (length < 32) {
            one(0xa0 | length);
        } else if (length < 65_536) {
            room(3);
            buffer[size++] = (byte) 0xda;
            buffer[size++] = (byte) (length >>> 8);
            buffer[size++] = (byte) length;
        } else {
            one(0xdb);
            four(length);
        }
        raw(encoded, length);
    }

    void binary(byte[] value) {
        one(0xc6);
        four(value.length);
        raw(value, value.length);
    }

    void array(int length) {
        if (length < 16) {
            one(0x90 | length);
        } else {
            one(0xdd);
            four(length);
        }
    }

    /** Hold nothing but the beginning of an array, whose length {@link #endArray} writes. */
    void beginArray() {
        size = 0;
        if (buffer.length > MOST_KEPT) {
            buffer = new byte[MANY];
        }
        array(MANY);
    }

    void endArray(int length) {
        int end = size;
        size = 1;
        four(length);
        size = end;
    }

    void map(int length) {
        one(0xdf);
        four(length);
    }

    /** A null, Boolean, whole number, Double, String, byte[], List, Map or Packer. */
    void value(Object value) {
        if (value == null) {
            nil();
        } else if (value instanceof String text) {
            text(text);
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

    private void four(int value) {
        room(4);
        byte[] target = buffer;
        int at = size;
        target[at] = (byte) (value >>> 24);
        target[at + 1] = (byte) (value >>> 16);
        target[at + 2] = (byte) (value >>> 8);
        target[at + 3] = (byte) value;
        size = at + 4;
    }

    private void eight(long value) {
        four((int) (value >>> 32));
        four((int) value);
    }

    private void raw(byte[] content, int length) {
        room(length);
        System.arraycopy(content, 0, buffer, size, length);
        size += length;
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
