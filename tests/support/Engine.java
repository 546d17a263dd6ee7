import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Spark with Delta and Iceberg on the JVM, driven by lines: a verb and its arguments, each in base64.
 * SQL home text: one statement with the catalog of that home as `lading`. Answers: ANSWER and the rows as JSON, or ERROR.
 * OPEN name settings: a session in which `lading` is another catalog, in lines of Iceberg's words, `type=rest` and such;
 * those that begin with `fs.` are Hadoop's. SQL takes the name in the place of a home. Answers: ANSWER, or ERROR.
 * READ format place: the rows that a reader of this format finds there, as SQL answers them.
 */
public class Engine {
    public static void main(String[] given) throws Exception {
        SparkSession first = SparkSession.builder().master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.databricks.delta.snapshotPartitions", "1")
            // A few rows: what is generated and compiled for a query takes longer than the query.
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
            .config("spark.sql.adaptive.enabled", "false")
            .config("spark.sql.jsonGenerator.ignoreNullFields", "false")
            // Not UTC: a time without a zone would be read as another moment.
            .config("spark.sql.session.timeZone", "Asia/Tokyo")
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension,"
                + "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
            .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
            .getOrCreate();
        Map<String, SparkSession> sessions = new HashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("READY");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            String home = decoded(words[1]);
            try {
                if (words[0].equals("OPEN")) {
                    sessions.put(home, opened(first, decoded(words[2])));
                    System.out.println("ANSWER " + encoded("[]"));
                    System.out.flush();
                    continue;
                }
                if (words[0].equals("READ")) {
                    System.out.println("ANSWER " + rows(reading(first).read().format(home).load(decoded(words[2]))));
                    System.out.flush();
                    continue;
                }
                SparkSession spark = sessions.computeIfAbsent(home, name -> session(first, name));
                System.out.println("ANSWER " + rows(spark.sql(decoded(words[2]))));
            } catch (Throwable error) {
                System.out.println("ERROR " + encoded(told(error)));
            }
            System.out.flush();
        }
        first.stop();
    }

    /** A path needs no catalog, but Iceberg makes one before it looks: by default of Hive, whose jars are not here. */
    private static SparkSession reading(SparkSession first) {
        SparkSession made = first.newSession();
        made.conf().set("spark.sql.catalog.default_iceberg", "org.apache.iceberg.spark.SparkCatalog");
        made.conf().set("spark.sql.catalog.default_iceberg.type", "hadoop");
        made.conf().set("spark.sql.catalog.default_iceberg.warehouse", "file:///nowhere");
        return made;
    }

    private static String rows(Dataset<Row> found) {
        return encoded(found.toJSON().collectAsList().toString());
    }

    private static SparkSession session(SparkSession first, String home) {
        SparkSession made = first.newSession();
        String catalog = "spark.sql.catalog.lading";
        made.conf().set(catalog, "org.apache.iceberg.spark.SparkCatalog");
        made.conf().set(catalog + ".type", "jdbc");
        made.conf().set(catalog + ".uri", "jdbc:sqlite:" + home + "/catalog.db?busy_timeout=20000");
        made.conf().set(catalog + ".jdbc.schema-version", "V1");
        made.conf().set(catalog + ".warehouse", home + "/warehouse");
        made.conf().set(catalog + ".cache-enabled", "false");
        return made;
    }

    private static SparkSession opened(SparkSession first, String settings) {
        SparkSession made = first.newSession();
        made.conf().set("spark.sql.catalog.lading", "org.apache.iceberg.spark.SparkCatalog");
        made.conf().set("spark.sql.catalog.lading.cache-enabled", "false");
        for (String setting : settings.split("\n")) {
            String[] parts = setting.split("=", 2);
            made.conf().set(parts[0].startsWith("fs.") ? parts[0] : "spark.sql.catalog.lading." + parts[0], parts[1]);
        }
        return made;
    }

    private static String told(Throwable error) {
        StringBuilder all = new StringBuilder(String.valueOf(error));
        for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
            all.append("\nCaused by: ").append(cause);
        }
        return all.toString();
    }

    private static String decoded(String text) {
        return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }

    private static String encoded(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
