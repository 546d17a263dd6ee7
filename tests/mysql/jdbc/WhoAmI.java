import java.sql.*;

/** Log in at each URL and say as whom. */
public class WhoAmI {
    public static void main(String[] urls) throws SQLException {
        for (String url : urls) {
            try (Connection connection = DriverManager.getConnection(url);
                    ResultSet rows = connection.createStatement().executeQuery("SELECT USER()")) {
                rows.next();
                System.out.println(rows.getString(1));
            }
        }
    }
}
