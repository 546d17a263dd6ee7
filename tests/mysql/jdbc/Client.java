import java.sql.*;
import java.util.*;

/** What tools that speak JDBC ask: a line for each answer. Ends with the first exception that is not expected. */
public class Client {
    static void say(String name, Object value) {
        System.out.println(name + " = " + value);
    }

    static List<String> column(ResultSet rows, String name) throws SQLException {
        List<String> found = new ArrayList<>();
        try (rows) {
            while (rows.next()) found.add(rows.getString(name));
        }
        return found;
    }

    static List<String> first(ResultSet rows) throws SQLException {
        List<String> found = new ArrayList<>();
        try (rows) {
            while (rows.next()) found.add(rows.getString(1));
        }
        return found;
    }

    static void meta(Connection connection) throws SQLException {
        DatabaseMetaData meta = connection.getMetaData();
        say("product", meta.getDatabaseProductName());
        say("version", meta.getDatabaseProductVersion());
        say("user", meta.getUserName());
        say("read only", meta.isReadOnly());
        say("catalogs", column(meta.getCatalogs(), "TABLE_CAT"));
        say("schemas", first(meta.getSchemas()));
        say("table types", new TreeSet<>(first(meta.getTableTypes())));
        say("tables", column(meta.getTables("sales", null, "%", null), "TABLE_NAME"));
        say("only tables", column(meta.getTables("sales", null, "%", new String[] {"TABLE"}), "TABLE_NAME"));
        say("one table", column(meta.getTables("sales", null, "ord%", null), "TABLE_NAME"));
        say("columns", column(meta.getColumns("sales", null, "orders", "%"), "COLUMN_NAME"));
        say("types", column(meta.getColumns("sales", null, "orders", "%"), "TYPE_NAME"));
        say("nullable", column(meta.getColumns("sales", null, "orders", "%"), "IS_NULLABLE"));
        say("keys", column(meta.getPrimaryKeys("sales", null, "orders"), "COLUMN_NAME"));
        say("indexes", column(meta.getIndexInfo("sales", null, "orders", false, true), "INDEX_NAME"));
        say("imported", column(meta.getImportedKeys("sales", null, "orders"), "PKTABLE_NAME"));
        say("exported", column(meta.getExportedKeys("sales", null, "orders"), "PKTABLE_NAME"));
        say("procedures", column(meta.getProcedures("sales", null, "%"), "PROCEDURE_NAME"));
        say("functions", column(meta.getFunctions("sales", null, "%"), "FUNCTION_NAME"));
        say("privileges", column(meta.getTablePrivileges("sales", null, "orders"), "PRIVILEGE"));
        say("type info", first(meta.getTypeInfo()).size() > 10);
        say("keywords", meta.getSQLKeywords().length() > 10);
    }

    static void talk(Connection connection) throws SQLException {
        say("valid", connection.isValid(5));
        connection.setCatalog("sales");
        say("catalog", connection.getCatalog());
        connection.setAutoCommit(false);
        connection.commit();
        connection.rollback();
        connection.setAutoCommit(true);
        say("isolation", connection.getTransactionIsolation());
        connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        connection.setReadOnly(true);
        connection.setReadOnly(false);
        try (Statement statement = connection.createStatement()) {
            say("shown", first(statement.executeQuery("SHOW TABLES")));
            ResultSet rows = statement.executeQuery("SELECT 1 + 1 AS two, 'ä💧' AS text, NULL AS nothing, 1.50 AS price");
            rows.next();
            say("constants", rows.getInt("two") + " " + rows.getString("text") + " " + rows.getObject("nothing") + " "
                + rows.getBigDecimal("price"));
            rows.close();
            say("jobs", first(statement.executeQuery("SELECT Name FROM jobs(\"type\"=\"insert\")")));
            say("update", statement.executeUpdate("CREATE DATABASE IF NOT EXISTS more"));
            say("warnings", statement.getWarnings());
            boolean has = statement.execute("SHOW DATABASES; SHOW TABLES FROM sales; USE sales");
            int results = 0;
            while (has || statement.getUpdateCount() != -1) {
                results++;
                if (has) first(statement.getResultSet());
                has = statement.getMoreResults();
            }
            say("several", results);
        }
        try (Statement stream = connection.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY)) {
            stream.setFetchSize(Integer.getInteger("fetch", 1));
            say("streamed", first(stream.executeQuery("SELECT COLUMN_NAME FROM information_schema.columns "
                + "WHERE TABLE_NAME = 'orders' ORDER BY ORDINAL_POSITION")));
        }
        try (PreparedStatement asked = connection.prepareStatement(
                "SELECT COLUMN_NAME, ORDINAL_POSITION FROM information_schema.columns "
                + "WHERE TABLE_NAME = ? AND ORDINAL_POSITION >= ? AND COLUMN_NAME <> ? ORDER BY 2")) {
            for (int from = 1; from <= 2; from++) {
                asked.setString(1, "orders");
                asked.setInt(2, from);
                asked.setString(3, "it's \"x\" \\ ä");
                ResultSet rows = asked.executeQuery();
                List<String> found = new ArrayList<>();
                while (rows.next()) found.add(rows.getString(1) + rows.getLong(2));
                say("prepared " + from, found);
            }
        }
        for (String wrong : List.of("SELCT 1", "USE nowhere", "SELECT * FROM sales.nothing", "DROP USER nobody")) {
            try (Statement statement = connection.createStatement()) {
                statement.execute(wrong);
                say("no error", wrong);
            } catch (SQLException error) {
                say("error " + wrong, error.getErrorCode() + " " + error.getSQLState());
            }
        }
        say("still valid", connection.isValid(5));
    }

    public static void main(String[] given) throws Exception {
        for (String url : given) {
            say("url", url.replaceAll("//[^/]*/", "//…/"));
            try (Connection connection = DriverManager.getConnection(url, "root", "")) {
                meta(connection);
                talk(connection);
            }
        }
    }
}
