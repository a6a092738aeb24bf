import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Driver;
import java.sql.DriverPropertyInfo;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.logging.Logger;

/** A JDBC driver that does what a statement's text names, and nothing of what it should. */
public class HostileDriver implements Driver {
    public Connection connect(String url, Properties properties) {
        if (!acceptsURL(url)) {
            return null;
        }
        while (url.endsWith(":hang")) {
            try {
                Thread.sleep(1_000_000);
            } catch (InterruptedException ignored) {
                continue;
            }
        }
        return (Connection) of(Connection.class, (self, method, arguments) ->
                switch (method.getName()) {
                    case "createStatement" -> of(Statement.class, HostileDriver::statement);
                    case "getMetaData" -> of(DatabaseMetaData.class, HostileDriver::nothing);
                    default -> nothing(self, method, arguments);
                });
    }

    private static Object statement(Object self, Method method, Object[] arguments)
            throws Throwable {
        if (method.getName().equals("execute")) {
            String text = (String) arguments[0];
            if (text.contains("exit")) {
                System.exit(7);
            } else if (text.contains("print")) {
                System.out.println("noise");
                System.err.println("noise");
            } else if (text.contains("forge")) {
                try (FileOutputStream frames = new FileOutputStream(FileDescriptor.out)) {
                    frames.write(new byte[] {1, 0, 0, 0, 'x'});
                    Thread.sleep(1_000_000);
                }
            } else if (text.contains("fill")) {
                List<byte[]> heap = new ArrayList<>();
                while (true) {
                    heap.add(new byte[1_000_000]);
                }
            } else if (text.contains("hang")) {
                while (true) {
                    try {
                        Thread.sleep(1_000_000);
                    } catch (InterruptedException ignored) {
                        continue;
                    }
                }
            } else if (text.contains("deep")) {
                return statement(self, method, arguments);
            } else if (text.contains("throw")) {
                throw new IllegalStateException("the driver broke on /home/someone/secret.txt");
            }
            return false;
        }
        return nothing(self, method, arguments);
    }

    private static Object nothing(Object self, Method method, Object[] arguments) {
        Class<?> kind = method.getReturnType();
        if (kind == boolean.class) {
            return false;
        }
        if (kind == int.class) {
            return 0;
        }
        return kind == long.class ? (Object) 0L : null;
    }

    private static Object of(Class<?> kind, InvocationHandler handler) {
        return Proxy.newProxyInstance(
                HostileDriver.class.getClassLoader(), new Class<?>[] {kind}, handler);
    }

    public boolean acceptsURL(String url) {
        return url.startsWith("jdbc:hostile:") || url.startsWith(System.getProperty("also", "no"));
    }

    public DriverPropertyInfo[] getPropertyInfo(String url, Properties properties) {
        return new DriverPropertyInfo[0];
    }

    public int getMajorVersion() {
        return 1;
    }

    public int getMinorVersion() {
        return 0;
    }

    public boolean jdbcCompliant() {
        return false;
    }

    public Logger getParentLogger() {
        return null;
    }
}

/** No driver; it leaves a file where the system property `trace` says, if it is ever initialized. */
class Innocent {
    static {
        try {
            new java.io.File(System.getProperty("trace")).createNewFile();
        } catch (java.io.IOException failure) {
            throw new ExceptionInInitializerError(failure);
        }
    }
}
