"""The tables of information_schema that MySQL has, with their columns. Drivers and tools ask for them by name."""

from __future__ import annotations

COLUMNS: dict[str, tuple[str, ...]] = {
    name: tuple(columns.split())
    for name, columns in {
        "character_sets": "character_set_name default_collate_name description maxlen",
        "collations": "collation_name character_set_name id is_default is_compiled sortlen",
        "column_privileges": """
            grantee table_catalog table_schema table_name column_name privilege_type is_grantable
        """,
        "columns": """
            table_catalog table_schema table_name column_name ordinal_position column_default
            is_nullable data_type character_maximum_length character_octet_length numeric_precision
            numeric_scale datetime_precision character_set_name collation_name column_type column_key
            extra privileges column_comment generation_expression srs_id
        """,
        "events": """
            event_catalog event_schema event_name definer time_zone event_body event_definition
            event_type execute_at interval_value interval_field sql_mode starts ends status
            on_completion created last_altered last_executed event_comment originator
            character_set_client collation_connection database_collation
        """,
        "key_column_usage": """
            constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name
            column_name ordinal_position position_in_unique_constraint referenced_table_schema
            referenced_table_name referenced_column_name
        """,
        "parameters": """
            specific_catalog specific_schema specific_name ordinal_position parameter_mode
            parameter_name data_type character_maximum_length character_octet_length numeric_precision
            numeric_scale datetime_precision character_set_name collation_name dtd_identifier
            routine_type
        """,
        "partitions": """
            table_catalog table_schema table_name partition_name subpartition_name
            partition_ordinal_position subpartition_ordinal_position partition_method
            subpartition_method partition_expression subpartition_expression partition_description
            table_rows avg_row_length data_length max_data_length index_length data_free create_time
            update_time check_time checksum partition_comment nodegroup tablespace_name
        """,
        "referential_constraints": """
            constraint_catalog constraint_schema constraint_name unique_constraint_catalog
            unique_constraint_schema unique_constraint_name match_option update_rule delete_rule
            table_name referenced_table_name
        """,
        "routines": """
            specific_name routine_catalog routine_schema routine_name routine_type data_type
            character_maximum_length character_octet_length numeric_precision numeric_scale
            datetime_precision character_set_name collation_name dtd_identifier routine_body
            routine_definition external_name external_language parameter_style is_deterministic
            sql_data_access sql_path security_type created last_altered sql_mode routine_comment definer
            character_set_client collation_connection database_collation
        """,
        "schema_privileges": "grantee table_catalog table_schema privilege_type is_grantable",
        "schemata": "catalog_name schema_name default_character_set_name default_collation_name sql_path",
        "statistics": """
            table_catalog table_schema table_name non_unique index_schema index_name seq_in_index
            column_name collation cardinality sub_part packed nullable index_type comment index_comment
            is_visible expression
        """,
        "table_constraints": """
            constraint_name constraint_catalog constraint_schema table_schema table_name constraint_type
            enforced
        """,
        "table_privileges": "grantee table_catalog table_schema table_name privilege_type is_grantable",
        "tables": """
            table_catalog table_schema table_name table_type engine version row_format table_rows
            avg_row_length data_length max_data_length index_length data_free auto_increment create_time
            update_time check_time table_collation checksum create_options table_comment
        """,
        "triggers": """
            trigger_catalog trigger_schema trigger_name event_manipulation event_object_catalog
            event_object_schema event_object_table action_order action_condition action_statement
            action_orientation action_timing action_reference_old_table action_reference_new_table
            action_reference_old_row action_reference_new_row created sql_mode definer
            character_set_client collation_connection database_collation
        """,
        "user_privileges": "grantee table_catalog privilege_type is_grantable",
        "views": """
            table_catalog table_schema table_name view_definition check_option is_updatable definer
            security_type character_set_client collation_connection
        """,
    }.items()
}
