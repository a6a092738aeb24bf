"""The parser's nodes, as tables of data: those that only read, and what the others would do.

A node on neither list makes a statement unknown; so do nodes that a newer parser may bring.
"""

from __future__ import annotations

from tidegate.sql.dialects.model import words

_STRUCTURE = words("""
    Alias Aliases All Any AtTimeZone Boolean Bracket CharacterSet CollateColumnConstraint Column
    ColumnConstraint ColumnDef Columns Comprehension Connect ConnectByRoot CTE Cube DataType
    DataTypeParam DefaultColumnConstraint Describe Distinct Dot Except Fetch Filter ForIn FormatJson
    From Group GroupingSets Having HavingMax HexString Identifier IgnoreNulls IndexTableHint
    Intersect Interval IntervalSpan Introducer Join JSON JSONColumnDef JSONExtractQuote JSONKeyValue
    JSONPath JSONPathFilter JSONPathKey JSONPathRecursive JSONPathRoot JSONPathScript
    JSONPathSelector JSONPathSlice JSONPathSubscript JSONPathUnion JSONPathWildcard JSONSchema
    JSONValue Kwarg Lambda Lateral Limit LimitOptions Literal National NotNullColumnConstraint Null
    ObjectIdentifier Offset OnCondition Order Ordered Parameter Paren Partition Pivot PivotAlias
    PivotAny Placeholder PositionalColumn Prior PropertyEQ PseudoType Qualify RecursiveWithSearch
    RespectNulls Returning Rollup Schema Select Slice Star Subquery Summarize Table TableAlias
    TableColumn TableFromRows TableSample TranslateCharacters Tuple Union UnpivotColumns Values Var
    Variadic Version Where Window WindowSpec With WithinGroup XMLKeyValueOption XMLNamespace
    """)

_OPERATORS = words("""
    Add Adjacent Between BitString BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr
    BitwiseRightShift BitwiseXor Collate Distance DistanceNd Div DPipe EQ Escape ExtendsLeft
    ExtendsRight Glob GT GTE ILike In IntDiv Is Like LT LTE Match Mod Mul Neg NEQ Not NullSafeEQ
    NullSafeNEQ Operator Overlaps SimilarTo Sub
    """)

FUNCTIONS = words("""
    Abs Acos Acosh AddMonths AggFunc And Anonymous AnonymousAggFunc AnyValue ApproxDistinct
    ApproxPercentileAccumulate ApproxPercentileCombine ApproxPercentileEstimate ApproxQuantile
    ApproxQuantiles ApproxTopK ApproxTopKAccumulate ApproxTopKCombine ApproxTopKEstimate
    ApproxTopSum ArgMax ArgMin Array ArrayAgg ArrayAll ArrayAny ArrayAppend ArrayCompact ArrayConcat
    ArrayConcatAgg ArrayConstructCompact ArrayContainedBy ArrayContains ArrayContainsAll
    ArrayDistinct ArrayExcept ArrayFilter ArrayFirst ArrayInsert ArrayIntersect ArrayLast ArrayMax
    ArrayMin ArrayOverlaps ArrayPosition ArrayPrepend ArrayRemove ArrayRemoveAt ArrayReverse
    ArraySize ArraySlice ArraySort ArraySum ArraysZip ArrayToString ArrayUnionAgg ArrayUniqueAgg
    Ascii Asin Asinh Atan Atan2 Atanh Avg Base64DecodeBinary Base64DecodeString Base64Encode
    BitLength BitwiseAndAgg BitwiseCount BitwiseOrAgg BitwiseXorAgg Booland Boolnot Boolor
    BoolxorAgg ByteLength Case Cast CastToStrType Cbrt Ceil Chr Coalesce CodePointsToBytes
    CodePointsToString Collate Collation Columns CombinedAggFunc CombinedParameterizedAgg Compress
    Concat ConcatWs ConnectByRoot Contains Convert ConvertTimezone ConvertToCharset Corr Cos Cosh
    CosineDistance Cot Coth Count CountIf CovarPop CovarSamp Csc Csch CumeDist CurrentCatalog
    CurrentDatabase CurrentDate CurrentDatetime CurrentRole CurrentSchema CurrentSchemas CurrentTime
    CurrentTimestamp CurrentTimestampLTZ CurrentTimezone CurrentUser CurrentVersion Date DateAdd
    DateBin DateDiff DateFromParts DateFromUnixDate DateStrToDate DateSub Datetime DatetimeAdd
    DatetimeDiff DatetimeSub DatetimeTrunc DateToDateStr DateToDi DateTrunc Day Dayname DayOfMonth
    DayOfWeek DayOfWeekIso DayOfYear Decode DecodeCase Degrees DenseRank DiToDate DotProduct Elt
    Encode Encrypt EndsWith EqualNull EuclideanDistance Exists Exp Explode ExplodingGenerateSeries
    Extract Factorial First FirstValue Flatten Float64 Floor Format FromBase FromBase32 FromBase64
    FromISO8601Date FromISO8601Timestamp FromISO8601TimestampNanos FromJson Func GenerateDateArray
    GenerateSeries GenerateTimestampArray Getbit GetExtract GetIgnoreCase Greatest GroupConcat
    Grouping GroupingId Hex HexDecodeString Host Hour If Initcap Inline Int64 IsArray IsAscii IsInf
    IsNan IsNullValue JarowinklerSimilarity JSONArray JSONArrayAgg JSONArrayAppend JSONArrayContains
    JSONArrayInsert JSONBContains JSONBContainsAllTopKeys JSONBContainsAnyTopKeys
    JSONBContainsTopKey JSONBDeleteAtPath JSONBExists JSONBExtract JSONBExtractScalar JSONBObjectAgg
    JSONBool JSONBPathExists JSONCast JSONExists JSONExtract JSONExtractArray JSONExtractScalar
    JSONFormat JSONKeys JSONKeysAtDepth JSONObject JSONObjectAgg JSONRemove JSONSet JSONStripNulls
    JSONTable JSONType JSONValueArray JustifyDays JustifyHours JustifyInterval Kurtosis Lag Last
    LastDay LastValue LaxBool LaxFloat64 LaxInt64 LaxString Lead Least Left Length Levenshtein List
    Ln Localtime Localtimestamp Log LogicalAnd LogicalOr Lower LowerHex MakeInterval
    ManhattanDistance Map MapCat MapContainsKey MapDelete MapFromEntries MapInsert MapKeys MapPick
    MapSize MatchAgainst Max MD5 MD5Digest MD5NumberLower64 MD5NumberUpper64 Median Min Minute Mode
    Month Monthname MonthsBetween Nanvl Negative NextDay Normal Normalize NthValue Ntile Nullif
    NumberToStr Nvl2 ObjectAgg ObjectId ObjectInsert ObjectTransform Or Overlay Pad ParameterizedAgg
    ParseBignumeric ParseDatetime ParseIp ParseJSON ParseNumeric ParseTime ParseUrl PercentileCont
    PercentileDisc PercentRank Pi Posexplode PosexplodeOuter Pow PreviousDay Quantile Quarter
    Radians Rand Randn Rank Reduce RegexpCount RegexpExtract RegexpExtractAll RegexpFullMatch
    RegexpILike RegexpInstr RegexpLike RegexpReplace RegexpSplit RegexpSubstr RegrAvgx RegrAvgy
    RegrCount RegrIntercept RegrR2 RegrSlope RegrSxx RegrSxy RegrSyy RegrValx RegrValy Repeat
    Replace Reverse Right Rint Round RowNumber RtrimmedLength SafeAdd SafeConvertBytesToString
    SafeDivide SafeMultiply SafeNegate SafeSubtract Sec Sech Second SessionUser SHA SHA1Digest SHA2
    SHA2Digest Shuffle Sign Sin Sinh Skewness Soundex SoundexP123 Space Split SplitPart SplitToTable
    Sqrt StartsWith Stddev StddevPop StddevSamp StDistance StPoint String StringToArray
    StripNullValue StrPosition StrToDate Strtok StrtokSplitToTable StrtokToArray StrToMap StrToTime
    StrToUnix Struct StructExtract Stuff Substring SubstringIndex Sum Systimestamp Tan Tanh Time
    TimeAdd TimeDiff TimeFromParts TimeSlice Timestamp TimestampAdd TimestampDiff TimestampFromParts
    TimestampLtzFromParts TimestampSub TimestampTrunc TimestampTzFromParts TimeStrToDate
    TimeStrToTime TimeStrToUnix TimeSub TimeToStr TimeToTimeStr TimeToUnix TimeTrunc ToArray
    ToBase32 ToBase64 ToBinary ToBoolean ToChar ToCodePoints ToDays ToDecfloat ToDouble ToMap
    ToNumber ToVariant Transform Translate Trim Trunc Try TryBase64DecodeBinary
    TryBase64DecodeString TryCast TryHexDecodeBinary TryHexDecodeString TryToDecfloat TsOrDiToDi
    TsOrDsAdd TsOrDsDiff TsOrDsToDate TsOrDsToDateStr TsOrDsToDatetime TsOrDsToTime
    TsOrDsToTimestamp Typeof Unhex Unicode UnixDate UnixMicros UnixMillis UnixSeconds UnixToStr
    UnixToTime UnixToTimeStr Unnest Upper UtcDate UtcTime UtcTimestamp Uuid Variance VariancePop
    VarMap Week WeekOfYear WeekStart WeightString WidthBucket XMLElement XMLGet XMLTable Xor Year
    YearOfWeek YearOfWeekIso
    """)
"""Nodes of functions and of operators that the parser makes functions of. Their names are judged
by the dialect's list; these are here because they can also come about without a name."""

_CHANGE_PARTS = words("OnConflict When Whens")
"""Nodes that occur only within a change, and add nothing to it."""

READING = _CHANGE_PARTS | _STRUCTURE | _OPERATORS | FUNCTIONS

CHANGING: dict[str, str] = {
    "Alter": "write",
    "Create": "write",
    "Delete": "write",
    "Drop": "destructive",
    "Insert": "write",
    "Into": "write",
    "Lock": "write",
    "Merge": "write",
    "TruncateTable": "destructive",
    "Update": "write",
}
