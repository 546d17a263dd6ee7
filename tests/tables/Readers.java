import org.apache.spark.sql.SparkSession;

/** Reads tables with Delta and Iceberg on the JVM. Arguments: format, path, format, path, …; then the questions. */
public class Readers {
    public static void main(String[] given) {
        SparkSession spark = SparkSession.builder().master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.databricks.delta.snapshotPartitions", "1")
            // Six rows: what is generated and compiled for a query takes longer than the query.
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
            .config("spark.sql.adaptive.enabled", "false")
            // Not UTC: a time without a zone would be read as another moment.
            .config("spark.sql.session.timeZone", "Asia/Tokyo")
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
            .config("spark.sql.catalog.default_iceberg", "org.apache.iceberg.spark.SparkCatalog")
            .config("spark.sql.catalog.default_iceberg.type", "hadoop")
            .config("spark.sql.catalog.default_iceberg.warehouse", "nowhere")
            .getOrCreate();
        for (int table = 0; table < 2; table++) {
            spark.read().format(given[2 * table]).load(given[2 * table + 1]).createOrReplaceTempView("t");
            for (int question = 4; question < given.length; question++) {
                System.out.println("ANSWER " + spark.sql(given[question]).toJSON().collectAsList());
            }
        }
        spark.stop();
    }
}
