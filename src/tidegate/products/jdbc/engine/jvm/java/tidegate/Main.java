package tidegate;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * The process that JDBC drivers live in.
 *
 * <p>Standard input brings requests, standard output takes replies. Each is MessagePack after its
 * length, four bytes, the lowest first. A request is {@code [number, channel, verb, body]}, a reply
 * {@code [number, fault or nil, body]}. A channel is one connection; each works through its own
 * requests in order, on a thread of its own. The verb {@code interrupt} overtakes them and has no
 * reply. The process ends with its input.
 */
public final class Main {
    static final int MOST_BYTES = 134_217_728;

    private final OutputStream target;
    private final ExecutorService canceller = Executors.newCachedThreadPool(Main::daemon);
    private final Map<Long, Channel> channels = new ConcurrentHashMap<>();
    private final Drivers drivers = new Drivers();

    private Main(OutputStream target) {
        this.target = target;
    }

    public static void main(String[] arguments) {
        InputStream source = new FileInputStream(FileDescriptor.in);
        OutputStream target = new FileOutputStream(FileDescriptor.out);
        // What a driver prints, or asks a person for, must not meet the frames.
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        System.setIn(InputStream.nullInputStream());
        int status = 0;
        try {
            new Main(target).serve(new DataInputStream(new BufferedInputStream(source)));
        } catch (IOException end) {
            status = 0;
        } catch (Throwable fatal) {
            status = 70;
        }
        Runtime.getRuntime().halt(status);
    }

    private void serve(DataInputStream source) throws IOException {
        while (true) {
            int length = Integer.reverseBytes(source.readInt());
            if (length < 0 || length > MOST_BYTES) {
                throw new IOException("a frame is too long");
            }
            byte[] content = new byte[length];
            source.readFully(content);
            List<?> request = (List<?>) new Unpacker(content).value();
            dispatch(
                    (Long) request.get(0),
                    (Long) request.get(1),
                    (String) request.get(2),
                    request.get(3));
        }
    }

    private void dispatch(long number, long channel, String verb, Object body) {
        switch (verb) {
            // On a thread of its own: a driver's class may take long to load, or never end.
            case "setup" -> daemon(() -> answer(number, () -> drivers.load(Body.of(body)))).start();
            case "interrupt" -> {
                Channel running = channels.get(channel);
                if (running != null) {
                    canceller.execute(() -> running.interrupt(number));
                }
            }
            case "connect" -> {
                Channel opened = new Channel(drivers);
                channels.put(channel, opened);
                opened.submit(() -> answer(number, () -> opened.connect(Body.of(body))));
            }
            case "disconnect" -> {
                Channel closed = channels.remove(channel);
                if (closed == null) {
                    answer(number, () -> null);
                } else {
                    closed.leave(() -> answer(number, closed::disconnect));
                }
            }
            default -> {
                Channel running = channels.get(channel);
                if (running == null) {
                    answer(number, () -> {
                        throw new Fault("driver.failed", "There is no such connection.");
                    });
                } else {
                    running.submit(() -> {
                        running.begin(number);
                        try {
                            answer(number, () -> running.answer(verb, Body.of(body)));
                        } finally {
                            running.end();
                        }
                    });
                }
            }
        }
    }

    private interface Answer {
        Object give() throws Exception;
    }

    private void answer(long number, Answer answer) {
        Packer reply = new Packer(1_024);
        try {
            Object body = answer.give();
            reply.array(3);
            reply.integer(number);
            reply.nil();
            reply.value(body);
        } catch (Exception | LinkageError | StackOverflowError thrown) {
            List<Object> fields = new ArrayList<>(3);
            fields.add(number);
            fields.add(Fault.of(thrown).packed());
            fields.add(null);
            reply.clear();
            reply.value(fields);
        }
        send(reply);
    }

    private synchronized void send(Packer reply) {
        byte[] head = {
            (byte) reply.size(),
            (byte) (reply.size() >>> 8),
            (byte) (reply.size() >>> 16),
            (byte) (reply.size() >>> 24)
        };
        try {
            target.write(head);
            reply.writeTo(target);
        } catch (IOException gone) {
            Runtime.getRuntime().halt(0);
        }
    }

    static Thread daemon(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    }
}
