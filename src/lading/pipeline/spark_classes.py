"""What plans of Spark 4.3 may consist of, by the names of their classes. What is not named here is never run.

A list of what is allowed, and not of what is forbidden: a new version of Spark brings new ways to read files and to run
programs, and those are refused until somebody has looked at them. `tests/service/test_plan_check.py` compares the lists
with Spark: each function that may be called has its class here, and no function that is refused.
"""

from __future__ import annotations

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_PLANS = "org.apache.spark.sql.catalyst.plans."
_ANALYSIS = "org.apache.spark.sql.catalyst.analysis."

_ROW_FUNCTIONS = """
Abs Acos Acosh AddMonths AesDecrypt AesEncrypt ArrayAggregate ArrayAppend ArrayCompact ArrayContains ArrayDistinct
ArrayExcept ArrayExists ArrayFilter ArrayForAll ArrayInsert ArrayIntersect ArrayJoin ArrayMax ArrayMin ArrayPosition
ArrayPrepend ArrayRemove ArrayRepeat ArraySize ArraySort ArrayTransform ArrayUnion ArraysOverlap ArraysZip Ascii Asin
Asinh Atan Atan2 Atanh BRound Base32 Base64 Between Bin BitLength BitmapBitPosition BitmapBucketNumber BitmapCount
BitwiseCount BitwiseGet Cast Cbrt Chr Coalesce Collation Concat ConcatWs Conv ConvertTimezone Cos Cosh Cot Crc32
CreateArray CreateMap CreateNamedStruct Csc CsvToStructs CurrentDate CurrentTime CurrentTimeZone DateAdd DateDiff
DateFormatClass DateFromUnixDate DateSub DayName DayOfMonth DayOfWeek DayOfYear Decode ElementAt Elt Encode EqualNull
EulerNumber Exp Expm1 Extract Factorial FindInSet Flatten FormatNumber FormatString FromUTCTimestamp FromUnixTime Get
GetJsonObject Greatest Hex HllSketchEstimate Hmac Hypot ILike If InitCap IsNaN IsNotNull IsNull IsValidUTF8
JaroWinkler JsonObjectKeys JsonToStructs LastDay Least Left Length LengthOfJsonArray Levenshtein Like Log Log10 Log1p
Log2 Logarithm Lower Luhncheck MakeDTInterval MakeDate MakeInterval MakeTime MakeValidUTF8 MakeYMInterval MapConcat
MapContainsKey MapEntries MapFilter MapFromArrays MapFromEntries MapKeys MapValues MapZipWith Md5 MicrosToTimestamp
MillisToTimestamp Month MonthName MonthsBetween Murmur3Hash NaNvl NanosToTimestamp NextDay NullIf NullIfZero Nvl Nvl2
OctetLength Overlay ParseToDate ParseToTimestamp ParseUrl Pi Pmod Pow Quarter Quote RLike Rand RandStr Randn
RegExpCount RegExpExtract RegExpExtractAll RegExpInStr RegExpReplace RegExpSubStr Remainder Reverse Right Rint Round
SchemaOfCsv SchemaOfJson Sec SecondsToTimestamp Sentences Sequence Sha1 Sha2 ShiftLeft ShiftRight ShiftRightUnsigned
Shuffle Signum Sin Sinh Size Slice SortArray SoundEx SplitPart Sqrt StringLocate StringRepeat StringReplace
StringSpace StringSplit StringToMap StringTranslate StringTrim StringTrimBoth StringTrimLeft StringTrimRight
StructsToCsv StructsToJson StructsToXml Substring SubstringIndex Tan Tanh TimeDiff TimeFromMicros TimeFromMillis
TimeFromSeconds TimeToMicros TimeToMillis TimeToSeconds TimeTrunc ToBinary ToDegrees ToNumber ToRadians ToTime
ToUTCTimestamp ToUnixTimestamp TransformKeys TransformValues TruncDate TruncTimestamp TryAdd TryAesDecrypt TryDivide
TryElementAt TryMakeInterval TryMod TryMultiply TryParseUrl TrySubtract TryToBinary TryToNumber TryUrlDecode
TryValidateUTF8 TypeOf UnBase32 UnBase64 UnaryMinus UnaryPositive Unhex Uniform UnixDate UnixMicros UnixMillis
UnixNanos UnixSeconds UnixTimestamp Upper UrlDecode UrlEncode Uuid ValidateUTF8 VectorCosineSimilarity
VectorInnerProduct VectorL2Distance VectorNorm VectorNormalize WeekDay WeekOfYear WidthBucket XxHash64 Year ZeroIfNull
ZipWith variant.IsValidVariant variant.IsVariantNull variant.SchemaOfVariant variant.ToVariantObject
variant.VariantDelete
"""
"""Of the functions that a mapping may call."""

_OPERATORS = """
Add Alias And AttributeReference BinaryPad BinaryPredicate BitmapExpressionUtils BitwiseAnd BitwiseNot BitwiseOr
BitwiseXor CaseWhen Ceil CheckOverflow Collate CommonExpressionDef CommonExpressionId CommonExpressionRef Contains
CurrentTimestamp DateAddInterval DateAddYMInterval DatetimeSub Divide DivideDTInterval DivideInterval DivideYMInterval
EndsWith EqualNullSafe EqualTo EvalMode ExprId ExpressionImplUtils ExtractANSIIntervalDays ExtractANSIIntervalHours
ExtractANSIIntervalMinutes ExtractANSIIntervalMonths ExtractANSIIntervalSeconds ExtractANSIIntervalYears
ExtractIntervalDays ExtractIntervalHours ExtractIntervalMinutes ExtractIntervalMonths ExtractIntervalSeconds
ExtractIntervalYears Floor GenericInternalRow GetArrayItem GetArrayStructFields GetMapValue GetStructField
GetTimestamp GreaterThan GreaterThanOrEqual Hour HoursOfTime In InSet IntegralDivide KnownNotContainsNull KnownNotNull
LambdaFunction LessThan LessThanOrEqual Literal LocalTimestamp MakeTimestamp MakeTimestampFromDateTime
MakeTimestampNTZ Mask Minute MinutesOfTime Multiply MultiplyDTInterval MultiplyInterval MultiplyYMInterval
NamedLambdaVariable Not Now NullIfResult NumericEvalContext Or ResolvedCollation RoundCeil RoundFloor Second
SecondWithFraction SecondsOfTime SecondsOfTimeWithFraction StartsWith StringDecode StringInstr
StringInstrWithOccurrence StringLPad StringRPad StringSplitSQL Subtract SubtractDates SubtractTimes SubtractTimestamps
TimeAddInterval TimeBucket TimestampAdd TimestampAddInterval TimestampAddYMInterval TimestampDiff ToCharacter
ToStringBase TryEval TryMakeTimestamp TryMakeTimestampFromDateTime UnresolvedCollation UnresolvedNamedLambdaVariable
UnsafeArrayData UnsafeMapData UnsafeRow UrlCodec VectorFunctionImplUtils With YearOfWeek csv.CsvToStructsEvaluator
csv.SchemaOfCsvEvaluator json.GetJsonObjectEvaluator json.JsonToStructsEvaluator json.PathInstruction
json.SchemaOfJsonEvaluator json.StructsToJsonEvaluator objects.Invoke objects.StaticInvoke url.ParseUrlEvaluator
variant.ArrayExtraction variant.ObjectExtraction variant.ParseJson variant.VariantArrayAppend variant.VariantCastArgs
variant.VariantExpressionEvalUtils variant.VariantGet variant.VariantInsert variant.VariantPathSegment
variant.VariantSet variant.VariantStripNulls xml.StructsToXmlEvaluator
"""
"""Operators, what Spark makes of functions, and what it puts between values of different types."""

_QUERY_FUNCTIONS = """
BitmapAndAgg BitmapConstructAgg BitmapOrAgg CumeDist DenseRank Grouping GroupingID HllUnion JsonTuple Lag Lead NTile
NthValue PercentRank Rank RowNumber SessionWindow Stack TimeWindow WindowTime aggregate.AnyValue aggregate.ApproxTopK
aggregate.ApproximatePercentile aggregate.Average aggregate.BitAndAgg aggregate.BitOrAgg aggregate.BitXorAgg
aggregate.BoolAnd aggregate.BoolOr aggregate.CollectList aggregate.CollectSet aggregate.Corr aggregate.Count
aggregate.CountIf aggregate.CovPopulation aggregate.CovSample aggregate.First aggregate.HistogramNumeric
aggregate.HllSketchAgg aggregate.HllUnionAgg aggregate.HyperLogLogPlusPlus aggregate.Kurtosis aggregate.Last
aggregate.ListAgg aggregate.Max aggregate.Median aggregate.Min aggregate.Percentile aggregate.RegrAvgX
aggregate.RegrAvgY aggregate.RegrCount aggregate.RegrIntercept aggregate.RegrR2 aggregate.RegrSXX aggregate.RegrSXY
aggregate.RegrSYY aggregate.RegrSlope aggregate.Skewness aggregate.StddevPop aggregate.StddevSamp aggregate.Sum
aggregate.VariancePop aggregate.VarianceSamp
"""
"""Of the other functions that a query may call."""

_QUERY_OPERATORS = """
Ascending Cube CurrentRow Descending Exists Explode GeneratorOuter GroupingSets InSubquery Inline KnownNullable
LateralColumnAliasReference LateralSubquery ListQuery NamedArgumentExpression NullIndex NullsFirst NullsLast
OuterReference PosExplode PreciseTimestampConversion RangeFrame Rollup RowFrame ScalarSubquery SortOrder
SpecifiedWindowFrame UnboundedFollowing UnboundedPreceding UnresolvedWindowExpression UnspecifiedFrame VirtualColumn
WindowExpression WindowSpecDefinition WindowSpecReference aggregate.AggregateExpression aggregate.Complete
aggregate.CountMinSketchAgg aggregate.MaxBy aggregate.MaxMinByK aggregate.MinBy aggregate.Mode aggregate.NoOp
aggregate.PearsonCorrelation aggregate.PercentileCont aggregate.PercentileDisc aggregate.RegrReplacement
json.JsonTupleEvaluator variant.VariantExplode
"""
"""Subqueries, windows, orders and groups."""

_UNRESOLVED = "UnresolvedAlias UnresolvedAttribute UnresolvedExtractValue UnresolvedFunction"
_UNRESOLVED_QUERY = """
MultiAlias ResolvedInlineTable UnresolvedGenerator UnresolvedHaving UnresolvedInlineTable UnresolvedOrdinal
UnresolvedRelation UnresolvedStar UnresolvedStarExceptOrReplace UnresolvedSubqueryColumnAliases UnresolvedTVFAliases
UnresolvedTableValuedFunction
"""
_NODES = """
Cross ExistenceJoin FullOuter Inner LeftAnti LeftOuter LeftSemi LeftSingle NaturalJoin RightOuter UsingJoin
logical.Aggregate logical.CTERelationDef logical.CTERelationRef logical.Distinct logical.Except logical.Expand
logical.Filter logical.Generate logical.GlobalLimit logical.Intersect logical.Join logical.JoinHint
logical.LateralJoin logical.LocalLimit logical.LocalRelation logical.Offset logical.OneRowRelation logical.Project
logical.Sample logical.SampleMethod logical.Sort logical.SubqueryAlias logical.Union logical.UnionLoop
logical.UnionLoopRef logical.UnresolvedWith logical.Window logical.WithCTE logical.WithWindowDefinition
"""
"""Plans that read what they are given, and nothing else. What stands behind a view of ours is not looked at."""
_STATIC = """
Base32 Base64 BitmapExpressionUtils Encode ExpressionImplUtils StringDecode UnBase32 UrlCodec VectorFunctionImplUtils
variant.SchemaOfVariant variant.VariantExpressionEvalUtils
"""
_VALUES = """
java.lang.Boolean java.lang.Byte java.lang.Character java.lang.Double java.lang.Float java.lang.Integer java.lang.Long
java.lang.Short java.lang.invoke.SerializedLambda java.util.UUID
java.util.concurrent.atomic.AtomicReference org.apache.datasketches.hll.TgtHllType org.apache.spark.QueryContextType
org.apache.spark.sql.catalyst.AliasIdentifier org.apache.spark.sql.catalyst.FunctionIdentifier
org.apache.spark.sql.catalyst.trees.SQLQueryContext org.apache.spark.sql.catalyst.trees.TreePattern
org.apache.spark.sql.util.CaseInsensitiveStringMap org.apache.spark.util.collection.ImmutableBitSet scala.Enumeration
scala.None scala.Some scala.Tuple2 scala.Tuple3 scala.runtime.ModuleSerializationProxy
"""

STATIC = frozenset(_EXPRESSIONS + name for name in _STATIC.split()) | {
    "org.apache.spark.unsafe.array.ByteArrayMethods",
    "org.apache.spark.unsafe.types.ByteArray",
}
"""Classes whose static methods Spark itself calls for functions that are allowed."""
METHODS = frozenset(("isValid", "makeValid"))
"""Methods of a value that Spark itself calls for functions that are allowed."""
VALUE_PACKAGES = (
    "java.math.",
    "java.time.",
    "scala.collection.",
    "scala.math.",
    "org.apache.spark.sql.types.",
    "org.apache.spark.sql.internal.types.",
    "org.apache.spark.sql.catalyst.util.",
    "org.apache.spark.unsafe.types.",
)
"""Numbers, texts, types and collections: they hold data and run nothing."""

MAPPING_CLASSES = (
    frozenset(_EXPRESSIONS + name for name in (_ROW_FUNCTIONS + _OPERATORS).split())
    | {_ANALYSIS + name for name in _UNRESOLVED.split()}
    | frozenset(_VALUES.split())
    | STATIC
)
"""For a mapping: no plan at all, hence no subquery and no table."""
QUERY_CLASSES = (
    MAPPING_CLASSES
    | {_EXPRESSIONS + name for name in (_QUERY_FUNCTIONS + _QUERY_OPERATORS).split()}
    | {_ANALYSIS + name for name in _UNRESOLVED_QUERY.split()}
    | {_PLANS + name for name in _NODES.split()}
)
FUNCTION_CLASSES = frozenset(_EXPRESSIONS + name for name in (_ROW_FUNCTIONS + _QUERY_FUNCTIONS).split())
"""The part of the lists that follows from the functions that may be called."""
