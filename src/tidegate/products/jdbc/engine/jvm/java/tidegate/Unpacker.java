package tidegate;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads MessagePack as null, Boolean, Long, Double, String, byte[], List and Map. */
final class Unpacker {
    private final ByteBuffer source;

    Unpacker(byte[] content) {
        source = ByteBuffer.wrap(content);
    }

    Object value() {
        int head = source.get() & 0xff;
        if (head < 0x80) {
            return (long) head;
        }
        if (head >= 0xe0) {
            return (long) (byte) head;
        }
        if (head < 0x90) {
            return map(head & 0x0f);
        }
        if (head < 0xa0) {
            return list(head & 0x0f);
        }
        if (head < 0xc0) {
            return text(head & 0x1f);
        }
        return switch (head) {
            case 0xc0 -> null;
            case 0xc2 -> false;
            case 0xc3 -> true;
            case 0xc4 -> binary(source.get() & 0xff);
            case 0xc5 -> binary(source.getShort() & 0xffff);
            case 0xc6 -> binary(source.getInt());
            case 0xca -> (double) source.getFloat();
            case 0xcb -> source.getDouble();
            case 0xcc -> (long) (source.get() & 0xff);
            case 0xcd -> (long) (source.getShort() & 0xffff);
            case 0xce -> source.getInt() & 0xffffffffL;
            case 0xcf, 0xd3 -> source.getLong();
            case 0xd0 -> (long) source.get();
            case 0xd1 -> (long) source.getShort();
            case 0xd2 -> (long) source.getInt();
            case 0xd9 -> text(source.get() & 0xff);
            case 0xda -> text(source.getShort() & 0xffff);
            case 0xdb -> text(source.getInt());
            case 0xdc -> list(source.getShort() & 0xffff);
            case 0xdd -> list(source.getInt());
            case 0xde -> map(source.getShort() & 0xffff);
            case 0xdf -> map(source.getInt());
            default -> throw new Fault("internal", "A message to the JVM has an unknown form.");
        };
    }

    private byte[] binary(int length) {
        byte[] content = new byte[length];
        source.get(content);
        return content;
    }

    private String text(int length) {
        return new String(binary(length), StandardCharsets.UTF_8);
    }

    private List<Object> list(int length) {
        List<Object> values = new ArrayList<>(length);
        for (int i = 0; i < length; i++) {
            values.add(value());
        }
        return values;
    }

    private Map<String, Object> map(int length) {
        Map<String, Object> values = new LinkedHashMap<>();
        for (int i = 0; i < length; i++) {
            String key = String.valueOf(value());
            values.put(key, value());
        }
        return values;
    }
}
