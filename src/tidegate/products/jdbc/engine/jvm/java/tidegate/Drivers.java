package tidegate;

import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The drivers of this process, from one set of jars. Their class loader sees the Java platform and
 * these jars only, and drivers are called directly: DriverManager refuses foreign class loaders.
 */
final class Drivers {
    private final Map<String, Driver> loaded = new ConcurrentHashMap<>();
    private volatile Driver latest;
    private ClassLoader loader;

    /**
     * Load a driver, once for each class. Body: {@code jars}, which the first call decides for all,
     * {@code url}, {@code driver} (a class name, or none), {@code usual} (the class that is taken
     * without one, if the jars have it and it reads the URL).
     */
    synchronized Object load(Body body) throws Exception {
        if (loader == null) {
            loader = loader(body);
        }
        String name = body.text("driver");
        Driver driver =
                name == null ? choose(body.text("usual"), body.text("url")) : named(name);
        loaded.putIfAbsent(driver.getClass().getName(), driver);
        latest = driver;
        Thread.currentThread().setContextClassLoader(loader);
        Map<String, Object> about = new LinkedHashMap<>();
        about.put("driver", driver.getClass().getName());
        about.put("version", driver.getMajorVersion() + "." + driver.getMinorVersion());
        about.put("java", System.getProperty("java.version"));
        return about;
    }

    /** Connect by the driver of a class that was loaded; by the one loaded last if none is named. */
    Connection connect(String name, String url, Properties properties) throws SQLException {
        Driver driver = name == null ? latest : loaded.get(name);
        Thread.currentThread().setContextClassLoader(driver.getClass().getClassLoader());
        Connection connection = driver.connect(url, properties);
        if (connection == null) {
            throw new Fault(
                    "driver.url",
                    "The driver " + driver.getClass().getName() + " does not read this URL.");
        }
        return connection;
    }

    private Driver choose(String usual, String url) throws Exception {
        Fault missing = null;
        if (usual != null) {
            try {
                Driver known = named(usual);
                if (known.acceptsURL(url)) {
                    return known;
                }
            } catch (Fault absent) {
                missing = absent; // another version may have moved it
            }
        }
        try {
            return find(loader, url);
        } catch (Fault none) {
            throw missing == null ? none : missing;
        }
    }

    private Driver named(String name) throws Exception {
        Driver known = loaded.get(name);
        return known == null ? instantiate(loader, name) : known;
    }

    private static ClassLoader loader(Body body) throws MalformedURLException {
        URL[] jars = new URL[body.list("jars").size()];
        for (int i = 0; i < jars.length; i++) {
            jars[i] = Path.of((String) body.list("jars").get(i)).toUri().toURL();
        }
        return new URLClassLoader(jars, ClassLoader.getPlatformClassLoader());
    }

    private static Driver find(ClassLoader loader, String url) throws SQLException {
        for (Driver each : ServiceLoader.load(Driver.class, loader)) {
            if (each.acceptsURL(url)) {
                return each;
            }
        }
        throw new Fault("driver.missing", "None of the driver's jars has a driver for this URL.");
    }

    private static Driver instantiate(ClassLoader loader, String name) throws Exception {
        Class<?> found;
        try {
            // Not initialized: a class that is no driver shall run nothing.
            found = Class.forName(name, false, loader);
        } catch (ClassNotFoundException missing) {
            throw new Fault("driver.missing", "The driver's jars have no class " + name + ".");
        }
        if (!Driver.class.isAssignableFrom(found)) {
            throw new Fault("driver.missing", "The class " + name + " is no JDBC driver.");
        }
        return (Driver) found.getDeclaredConstructor().newInstance();
    }
}
