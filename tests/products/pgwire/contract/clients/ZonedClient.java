import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.util.List;
import java.util.TimeZone;

/**
 * Runs the statements of a file, one on each line, in each of some time zones of the client, and
 * prints `zone, number, way, value` with tabs between them. Arguments: URL, user, password, file,
 * zones.
 */
public class ZonedClient {
    public static void main(String[] arguments) throws Exception {
        List<String> texts = Files.readAllLines(Path.of(arguments[3]));
        for (int at = 4; at < arguments.length; at++) {
            TimeZone.setDefault(TimeZone.getTimeZone(arguments[at]));
            for (String mode : new String[] {"simple", "extended"}) {
                String url = arguments[0] + "?preferQueryMode=" + mode;
                try (Connection gate = DriverManager.getConnection(url, arguments[1], arguments[2])) {
                    for (int number = 0; number < texts.size(); number++) {
                        System.out.println(
                            String.join("\t", arguments[at], "" + number, mode, run(gate, texts.get(number))));
                    }
                }
            }
        }
    }

    private static String run(Connection gate, String text) {
        try (PreparedStatement statement = gate.prepareStatement(text)) {
            if (text.contains("?")) {
                statement.setTimestamp(1, Timestamp.valueOf("2024-03-01 02:30:00"));
            }
            if (!statement.execute()) {
                return "count " + statement.getUpdateCount();
            }
            ResultSet rows = statement.getResultSet();
            StringBuilder found = new StringBuilder();
            while (rows.next()) {
                for (int column = 1; column <= rows.getMetaData().getColumnCount(); column++) {
                    found.append(rows.getMetaData().getColumnTypeName(column)).append(' ');
                    found.append(rows.getString(column)).append(' ').append(rows.getObject(column)).append("; ");
                }
            }
            return found.toString();
        } catch (SQLException error) {
            return "! " + error.getSQLState();
        }
    }
}
