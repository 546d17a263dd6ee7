"""Names of the functions of Spark 4.3, by what they do to rows.

Every function of Spark is either in one of the lists or refused, with the reason; `tests/service/test_plan_check.py`
compares them with Spark's own list.
"""

from __future__ import annotations

_SCALAR = """
abs acos acosh add_months aes_decrypt aes_encrypt array array_append array_compact array_contains array_distinct
array_except array_insert array_intersect array_join array_max array_min array_position array_prepend array_remove
array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii asin asinh atan atan2 atanh base64
between bigint bin binary bit_count bit_get bit_length bitmap_bit_position bitmap_bucket_number bitmap_count boolean
bround btrim cardinality cast cbrt ceil ceiling char char_length character_length chr coalesce collate collation
concat concat_ws contains conv convert_timezone cos cosh cot crc32 csc curdate current_date current_time
current_timestamp current_timezone date date_add date_diff date_format date_from_unix_date date_part date_sub
date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees double e
element_at elt encode endswith equal_null exists exp expm1 extract factorial filter find_in_set flatten float floor
forall format_number format_string from_base32 from_csv from_json from_unixtime from_utc_timestamp get get_json_object
getbit greatest hash hex hll_sketch_estimate hmac hour hypot if ifnull ilike initcap instr int is_valid_utf8
is_valid_variant is_variant_null isnan isnotnull isnull jaro_winkler_similarity json_array_length json_object_keys
last_day lcase least left len length levenshtein like ln localtime localtimestamp locate log log10 log1p log2 lower
lpad ltrim luhn_check make_date make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz
make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat map_contains_key map_entries map_filter
map_from_arrays map_from_entries map_keys map_values map_zip_with mask md5 minute mod month monthname months_between
named_struct nanvl negative next_day now nullif nullifzero nvl nvl2 octet_length overlay parse_json parse_url pi pmod
position positive pow power printf quarter quote radians rand randn random randstr regexp regexp_count regexp_extract
regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right rint rlike round
rpad rtrim schema_of_csv schema_of_json schema_of_variant sec second sentences sequence sha sha1 sha2 shiftleft
shiftright shiftrightunsigned shuffle sign signum sin sinh size slice smallint sort_array soundex space split
split_part sqrt startswith str_to_map string struct substr substring substring_index tan tanh time time_bucket
time_diff time_from_micros time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc
timestamp timestamp_micros timestamp_millis timestamp_nanos timestamp_seconds timestampadd timestampdiff tinyint
to_base32 to_binary to_char to_csv to_date to_json to_number to_time to_timestamp to_timestamp_ltz to_timestamp_ntz
to_unix_timestamp to_utc_timestamp to_varchar to_variant_object to_xml transform transform_keys transform_values
translate trim trunc try_add try_aes_decrypt try_divide try_element_at try_make_interval try_make_timestamp
try_make_timestamp_ltz try_make_timestamp_ntz try_mod try_multiply try_parse_json try_parse_url try_subtract
try_to_binary try_to_date try_to_number try_to_time try_to_timestamp try_url_decode try_validate_utf8
try_variant_array_append try_variant_get try_variant_insert try_variant_set typeof ucase unbase64 unhex uniform
unix_date unix_micros unix_millis unix_nanos unix_seconds unix_timestamp upper url_decode url_encode uuid
validate_utf8 variant_array_append variant_delete variant_get variant_insert variant_set variant_strip_nulls
vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize weekday weekofyear
width_bucket xxhash64 year zeroifnull zip_with
"""

_AGGREGATE = """
aggregate any any_value approx_count_distinct approx_percentile approx_top_k array_agg avg bit_and bit_or bit_xor
bitmap_agg bitmap_and_agg bitmap_construct_agg bitmap_intersect bitmap_or_agg bitmap_union bitmap_union_count bool_and
bool_or collect_list collect_set corr count count_distinct count_if count_min_sketch covar_pop covar_samp every first
first_value group_bit_and group_bit_or group_bit_xor group_concat grouping grouping_id histogram histogram_numeric
hll_raw_agg hll_sketch_agg hll_union hll_union_agg kurtosis last last_value listagg max max_by mean median min min_by
mode multi_distinct_count multi_distinct_sum ndv percentile percentile_approx percentile_array percentile_cont
percentile_disc product regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
retention sequence_count sequence_match skewness some std stddev stddev_pop stddev_samp string_agg sum sum0 topn
topn_array topn_weighted try_avg try_sum var_pop var_samp variance variance_pop variance_samp window_funnel
"""

_WINDOW = "cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number session_window window window_time"

_ROWS = """
explode explode_bitmap explode_json_array_double explode_json_array_int explode_json_array_json
explode_json_array_string explode_json_object explode_map explode_numbers explode_outer explode_split
explode_variant_array inline inline_outer json_tuple parse_url_tuple posexplode posexplode_outer stack variant_explode
variant_explode_outer unnest
"""

SCALAR_FUNCTIONS = frozenset(_SCALAR.split())
"""One value from the values of one row."""
AGGREGATE_FUNCTIONS = frozenset(_AGGREGATE.split()) - {"aggregate"}
"""One value from many rows; of Spark and of Doris."""
WINDOW_FUNCTIONS = frozenset(_WINDOW.split())
"""Need the rows around a row."""
ROW_FUNCTIONS = frozenset(_ROWS.split())
"""Make many rows from one; of Spark and of Doris."""
SPARK_FUNCTIONS = SCALAR_FUNCTIONS | {"aggregate", "reduce"}
"""Functions that a mapping may call. `aggregate` and `reduce` work on one array."""

_CODE = "it calls any Java method: users who may load could run programs as the service"
_XML = "Spark's XML reader fetches the DTDs and entities that a text names, from any address or file"
_MACHINE = "it tells of the machine, the session or the user of Spark, which say nothing about a row"
_FILES = "it tells of files and partitions of Spark, which change when a batch is tried again"
_STOPS = "it stops a batch that is tried again for ever; use WHERE"
_LOADS = "it loads classes or descriptor files by name; read Avro and Protobuf with the format of the source"
_SKETCH = "its sketches are Spark's own, and no other function of Lading reads them"
_TABLE = "it makes a table of its own instead of values from rows"
_NEW = "Doris has no counterpart and nobody has checked what it does"
_REFUSED = {
    _CODE: "java_method reflect try_reflect",
    _XML: """from_xml schema_of_xml xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number
        xpath_short xpath_string""",
    _MACHINE: """current_catalog current_database current_path current_schema current_user session_user user version
        python_worker_logs collations sql_keywords""",
    _FILES: """input_file_block_length input_file_block_start input_file_name monotonically_increasing_id
        spark_partition_id""",
    _STOPS: "assert_true raise_error",
    _LOADS: "from_avro from_protobuf schema_of_avro to_avro to_protobuf",
    _SKETCH: """approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate
        kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double
        kll_sketch_agg_float kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float
        kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float
        kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float kll_sketch_merge_bigint
        kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
        kll_sketch_to_string_float theta_difference theta_intersection theta_intersection_agg theta_sketch_agg
        theta_sketch_estimate theta_union theta_union_agg tuple_difference_double tuple_difference_integer
        tuple_difference_theta_double tuple_difference_theta_integer tuple_intersection_agg_double
        tuple_intersection_agg_integer tuple_intersection_double tuple_intersection_integer
        tuple_intersection_theta_double tuple_intersection_theta_integer tuple_sketch_agg_double
        tuple_sketch_agg_integer tuple_sketch_estimate_double tuple_sketch_estimate_integer
        tuple_sketch_summary_double tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer
        tuple_union_agg_double tuple_union_agg_integer tuple_union_double tuple_union_integer
        tuple_union_theta_double tuple_union_theta_integer""",
    _TABLE: "range",
    _NEW: """collect_union counter_diff measure schema_of_variant_agg st_asbinary st_geogfromwkb st_geomfromwkb
        st_setsrid st_srid vector_avg vector_sum when""",
}
REFUSED_FUNCTIONS = {name: reason for reason, names in _REFUSED.items() for name in names.split()}
"""Functions of Spark that nobody may call, with the reason."""
