import java.sql.DriverManager;
import java.util.Properties;

/** Logs in over TLS and counts. Arguments: address, authority, secret, wish for channel binding. */
public class SecuredClient {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", "writer");
        properties.setProperty("password", arguments[2]);
        properties.setProperty("sslmode", "verify-full");
        properties.setProperty("sslrootcert", arguments[1]);
        properties.setProperty("channelBinding", arguments[3]);
        String url = "jdbc:postgresql://" + arguments[0] + "/shop";
        try (var connection = DriverManager.getConnection(url, properties);
                var rows = connection.createStatement().executeQuery("SELECT count(*) FROM item")) {
            rows.next();
            System.out.println(rows.getInt(1));
        }
    }
}
