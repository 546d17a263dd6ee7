import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.Trigger;

/**
 * Loads a folder of text into a Paimon table with Spark's own streaming sink of Paimon, as if the process had died after the sink's commit and
 * before that of the checkpoint. Arguments: warehouse, source folder, checkpoint. Prints the rows after each of the two lives.
 */
public class Sink {
    public static void main(String[] given) throws Exception {
        Path checkpoint = Path.of(given[2]);
        SparkSession spark = SparkSession.builder().master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.sql.catalog.paimon", "org.apache.paimon.spark.SparkCatalog")
            .config("spark.sql.catalog.paimon.warehouse", given[0])
            .config("spark.sql.extensions", "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions")
            .getOrCreate();
        spark.sql("CREATE TABLE paimon.default.sunk (value STRING)");
        live(spark, given[0], given[1], checkpoint);
        // What a kill at the wrong moment leaves: the batch is in the table, and the checkpoint does not know.
        try (var commits = Files.list(checkpoint.resolve("commits"))) {
            for (Path commit : commits.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(commit);
            }
        }
        live(spark, given[0], given[1], checkpoint);
        spark.stop();
    }

    private static void live(SparkSession spark, String warehouse, String source, Path checkpoint) throws Exception {
        Dataset<Row> lines = spark.readStream().text(source);
        lines.writeStream().format("paimon").outputMode("append").option("checkpointLocation", checkpoint.toString())
            .trigger(Trigger.AvailableNow()).start(warehouse + "/default.db/sunk").awaitTermination();
        System.out.println("rows " + spark.table("paimon.default.sunk").orderBy("value").toJSON().collectAsList());
    }
}
