// Paimon on the JVM, as its own engines use it: reads a table of a filesystem catalog, or commits one batch of numbers.

import java.util.List;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.types.RowType;

public class Paimon {
    public static void main(String[] words) throws Exception {
        Options options = new Options();
        options.set("warehouse", words[0]);
        try (Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(options))) {
            for (int at = 1; at < words.length; at++) {
                String[] task = words[at].split(":");
                Table table = catalog.getTable(Identifier.create("lake", task[1]));
                switch (task[0]) {
                    case "read" -> read(table);
                    case "batch" -> batch(table, Integer.parseInt(task[2]), Integer.parseInt(task[3]));
                    case "expire" -> ((FileStoreTable) table).newExpireSnapshots()
                            .config(org.apache.paimon.options.ExpireConfig.builder()
                                    .snapshotRetainMin(1).snapshotRetainMax(1)
                                    .snapshotTimeRetain(java.time.Duration.ZERO).build())
                            .expire();
                    case "orphans" -> orphans((FileStoreTable) table);
                    default -> throw new IllegalArgumentException(words[at]);
                }
                System.out.println("done " + words[at]);
            }
        }
    }

    private static void read(Table table) throws Exception {
        ReadBuilder builder = table.newReadBuilder();
        RowType type = table.rowType();
        try (RecordReader<InternalRow> rows = builder.newRead().createReader(builder.newScan().plan())) {
            rows.forEachRemaining(row -> {
                StringBuilder line = new StringBuilder("row ");
                for (int at = 0; at < type.getFieldCount(); at++) {
                    Object value = InternalRow.createFieldGetter(type.getTypeAt(at), at).getFieldOrNull(row);
                    line.append(at > 0 ? "|" : "").append(value);
                }
                System.out.println(line);
            });
        }
    }

    /** What a sink does for one micro-batch: it is given rows, and commits them. */
    private static void batch(Table table, int first, int count) throws Exception {
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        try (BatchTableWrite write = builder.newWrite(); BatchTableCommit commit = builder.newCommit()) {
            for (long id = first; id < first + count; id++) {
                write.write(GenericRow.of(id, BinaryString.fromString("row " + id)));
            }
            commit.commit(write.prepareCommit());
        }
    }

    private static void orphans(FileStoreTable table) throws Exception {
        long young = System.currentTimeMillis() + 86_400_000L;
        new org.apache.paimon.operation.LocalOrphanFilesClean(table, young).clean();
    }
}
