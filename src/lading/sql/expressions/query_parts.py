"""What may stand in a query over tables. What is not named here never reaches Spark.

The list says what is allowed, and not what is forbidden: a new version of Spark or sqlglot brings new ways to read
files and to call programs, and those are refused until somebody has looked at them.
"""

from __future__ import annotations

from sqlglot import exp

from lading.sql.expressions.functions import RENAMED, REWRITTEN
from lading.sql.expressions.spark_functions import AGGREGATE_FUNCTIONS, ROW_FUNCTIONS, SPARK_FUNCTIONS, WINDOW_FUNCTIONS

NODES: frozenset[type[exp.Expr]] = frozenset(
    (
        # Queries and their clauses.
        exp.Select, exp.Subquery, exp.Union, exp.Intersect, exp.Except, exp.Values, exp.With, exp.CTE,
        exp.From, exp.Table, exp.TableAlias, exp.TableSample, exp.Join, exp.Lateral, exp.Where, exp.Group, exp.Having,
        exp.Qualify, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Distinct, exp.Cube, exp.Rollup,
        exp.GroupingSets, exp.Window, exp.WindowSpec, exp.Filter, exp.Star, exp.Alias, exp.Aliases,
        exp.Exists, exp.Any, exp.All,
        # Expressions.
        exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.And, exp.Or, exp.Xor, exp.Not,
        exp.Paren, exp.Tuple, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ,
        exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Escape, exp.RegexpLike, exp.Collate,
        exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift,
        exp.Case, exp.If, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Interval, exp.IntervalSpan,
        exp.Extract, exp.Trim, exp.Substring, exp.StrPosition, exp.Bracket, exp.Array, exp.Concat, exp.Lambda,
        exp.Anonymous, exp.Literal, exp.Null, exp.Boolean, exp.Column, exp.ColumnDef, exp.Identifier, exp.Var, exp.Dot,
        exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.Localtime, exp.Localtimestamp,
    )
)  # fmt: skip
"""Parts of a tree that read, and do nothing else."""

TABLE_PARTS = frozenset(("this", "db", "catalog", "alias", "sample", "joins", "laterals"))
"""An older version of a table, and metadata of one, are not among them."""

QUERY_FUNCTIONS = (
    SPARK_FUNCTIONS | AGGREGATE_FUNCTIONS | WINDOW_FUNCTIONS | ROW_FUNCTIONS | RENAMED.keys() | REWRITTEN.keys()
)
"""Functions that a query may call. See `spark_functions` for those that nobody may."""
