//! What a file's columns become: the same values, or a refusal with the row.
use super::super::target::tests::target;
use super::*;
use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::types::{Decimal128Type, Int32Type, TimestampMillisecondType};
use arrow_array::{
    BinaryArray, BooleanArray, Date64Array, Decimal128Array, DictionaryArray, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, LargeStringArray, NullArray,
    StringArray, StringViewArray, Time32SecondArray, Time64NanosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
};
use arrow_schema::{Fields, TimeUnit as Unit};

/// A column `c` of this type, from such an array.
fn become_column(sql: &str, array: ArrayRef) -> Result<ArrayRef, String> {
    let field = ArrowField::new("c", array.data_type().clone(), true);
    let file = ArrowSchema::new(vec![field]);
    let plan = Plan::new(&file, &target(&format!("c {sql}")))?;
    let rows = RecordBatch::try_new(Arc::new(file), vec![array]).expect("one column");
    match plan.convert(&rows) {
        Ok(rows) => Ok(ArrayRef::clone(rows.column(0))),
        Err(misfit) => Err(format!("row {} {}: {}", misfit.at, misfit.path, misfit.what)),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the arrays of a test are made where they are passed")]
fn same(sql: &str, from: ArrayRef, to: ArrayRef) {
    assert_eq!(become_column(sql, from).expect(sql).as_ref(), to.as_ref(), "{sql}");
}

fn refused(sql: &str, from: ArrayRef, words: &[&str]) {
    let told = become_column(sql, from).expect_err(sql);
    assert!(words.iter().all(|word| told.contains(word)), "{sql}: {told}");
}

#[test]
fn integers_of_other_widths_are_taken_if_each_value_fits() {
    same(
        "BIGINT",
        Arc::new(Int32Array::from(vec![Some(-1), None])),
        Arc::new(Int64Array::from(vec![Some(-1), None])),
    );
    same("TINYINT", Arc::new(Int64Array::from(vec![-128, 127])), Arc::new(Int8Array::from(vec![-128, 127])));
    same("SMALLINT", Arc::new(UInt64Array::from(vec![32_767])), Arc::new(Int16Array::from(vec![32_767])));
    refused("TINYINT", Arc::new(Int64Array::from(vec![0, 128])), &["row 1 c", "found 128", "TINYINT"]);
    refused("BIGINT", Arc::new(UInt64Array::from(vec![u64::MAX])), &["row 0", "18446744073709551615"]);
}

#[test]
fn floats_take_what_they_hold_exactly_and_nothing_else() {
    same(
        "DOUBLE",
        Arc::new(Float32Array::from(vec![1.5, f32::MAX])),
        Arc::new(Float64Array::from(vec![1.5, f64::from(f32::MAX)])),
    );
    same(
        "FLOAT",
        Arc::new(Float64Array::from(vec![0.5, f64::INFINITY])),
        Arc::new(Float32Array::from(vec![0.5, f32::INFINITY])),
    );
    same(
        "DOUBLE",
        Arc::new(Int64Array::from(vec![1 << 53])),
        Arc::new(Float64Array::from(vec![9_007_199_254_740_992.0])),
    );
    refused("FLOAT", Arc::new(Float64Array::from(vec![0.5, 0.1])), &["row 1", "found 0.1", "FLOAT"]);
    refused("DOUBLE", Arc::new(Int64Array::from(vec![(1 << 53) + 1])), &["row 0", "9007199254740993"]);
    refused("DOUBLE", Arc::new(Int64Array::from(vec![i64::MAX])), &["row 0"]);
    refused("BIGINT", Arc::new(Float64Array::from(vec![1.0])), &["Float64", "BIGINT", "integers"]);
}

#[test]
fn decimals_take_other_scales_and_integers_exactly() {
    let decimal = |values: Vec<i128>, precision, scale| -> ArrayRef {
        let values = Decimal128Array::from(values);
        Arc::new(values.with_precision_and_scale(precision, scale).expect("a decimal"))
    };
    same("DECIMAL(12, 2)", decimal(vec![15, -1], 5, 1), decimal(vec![150, -10], 12, 2));
    same("DECIMAL(5, 1)", decimal(vec![1_500], 12, 3), decimal(vec![15], 5, 1));
    same("DECIMAL(12, 2)", Arc::new(Int32Array::from(vec![7])), decimal(vec![700], 12, 2));
    refused("DECIMAL(5, 1)", decimal(vec![100, 1_501], 12, 3), &["row 1", "1.501", "DECIMAL(5, 1)"]);
    refused("DECIMAL(3, 1)", decimal(vec![1_000], 5, 1), &["row 0", "100.0"]);
    refused("DECIMAL(3, 1)", Arc::new(Int64Array::from(vec![99, 100])), &["row 1", "found 100"]);
    refused("DECIMAL(12, 2)", Arc::new(Float64Array::from(vec![1.5])), &["Float64", "cast"]);
    // A file may state fewer digits than its values have.
    let lying = Arc::new(Decimal128Array::from(vec![1_000]).with_data_type(ArrowType::Decimal128(3, 1)));
    refused("DECIMAL(3, 1)", lying, &["row 0", "no value of DECIMAL(3, 1)"]);
    assert_eq!(
        become_column("DECIMAL(3, 1)", decimal(vec![5], 3, 1))
            .expect("the same")
            .as_primitive::<Decimal128Type>()
            .value(0),
        5
    );
}

#[test]
fn texts_and_bytes_come_in_all_forms_of_arrow() {
    let plain: ArrayRef =
        Arc::new(StringArray::from(vec![Some("a"), None, Some("longer than twelve bytes")]));
    for form in [ArrowType::LargeUtf8, ArrowType::Utf8View] {
        same("STRING", cast(&plain, &form).expect("a text"), Arc::clone(&plain));
    }
    let dictionary: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("a")].into_iter().collect();
    same("STRING", Arc::new(dictionary), Arc::new(StringArray::from(vec![Some("a"), None, Some("a")])));
    let fixed = FixedSizeBinaryArray::try_from_iter([[1, 2], [3, 4]].into_iter()).expect("two bytes each");
    same("BINARY(2)", Arc::new(fixed), Arc::new(BinaryArray::from(vec![&[1, 2][..], &[3, 4]])));
    refused("CHAR(2)", Arc::new(LargeStringArray::from(vec!["äö", "abc"])), &["row 1", "abc", "CHAR(2)"]);
    refused("BINARY(1)", Arc::new(BinaryArray::from(vec![&[1, 2][..]])), &["row 0", "BINARY(1)"]);
    refused("STRING", Arc::new(BinaryArray::from(vec![&b"a"[..]])), &["Binary", "STRING"]);
    refused("STRING", Arc::new(Int32Array::from(vec![1])), &["Int32", "it takes strings"]);
    refused("BYTES", Arc::new(StringViewArray::from(vec!["a"])), &["Utf8View", "BYTES"]);
}

#[test]
fn times_come_in_other_units_where_no_digit_is_lost() {
    let nanoseconds = TimestampNanosecondArray::from(vec![1_000_000, -2_000_000]);
    let found = become_column("TIMESTAMP(3)", Arc::new(nanoseconds)).expect("whole milliseconds");
    assert_eq!(found.as_primitive::<TimestampMillisecondType>().values().as_ref(), &[1, -2]);
    refused("TIMESTAMP(3)", Arc::new(TimestampNanosecondArray::from(vec![0, 1])), &["row 1", "TIMESTAMP(3)"]);
    refused("TIMESTAMP(9)", Arc::new(TimestampSecondArray::from(vec![i64::MAX])), &["row 0"]);
    // Milliseconds are how TIMESTAMP(1) is stored, but it has one digit.
    refused("TIMESTAMP(1)", Arc::new(TimestampMicrosecondArray::from(vec![100_000, 10_000])), &["row 1"]);
    let berlin = TimestampSecondArray::from(vec![7]).with_timezone("Europe/Berlin");
    let found = become_column("TIMESTAMP_LTZ(3)", Arc::new(berlin)).expect("an instant");
    assert_eq!(found.data_type(), &ArrowType::Timestamp(Unit::Millisecond, Some("UTC".into())));
    assert_eq!(found.as_primitive::<TimestampMillisecondType>().value(0), 7_000);
    refused("TIMESTAMP_LTZ(3)", Arc::new(TimestampSecondArray::from(vec![7])), &["with a time zone"]);
    let zoned = TimestampSecondArray::from(vec![7]).with_timezone("UTC");
    refused("TIMESTAMP(3)", Arc::new(zoned), &["without a time zone"]);
    same(
        "TIME(9)",
        Arc::new(Time32SecondArray::from(vec![1])),
        Arc::new(Time64NanosecondArray::from(vec![1_000_000_000])),
    );
    refused("TIME(0)", Arc::new(Time64NanosecondArray::from(vec![1])), &["row 0"]);
    refused("TIME(0)", Arc::new(Time32SecondArray::from(vec![0, 86_400])), &["row 1"]);
    refused("DATE", Arc::new(Date64Array::from(vec![86_400_000, 1])), &["row 1", "DATE"]);
}

#[test]
fn nulls_are_refused_where_none_may_be_at_every_depth() {
    refused("INT NOT NULL", Arc::new(Int32Array::from(vec![Some(1), None])), &["row 1 c", "NOT NULL"]);
    refused("INT NOT NULL", Arc::new(NullArray::new(1)), &["Null", "INT"]);
    let nulls = become_column("ARRAY<INT>", Arc::new(NullArray::new(2))).expect("it may be null");
    assert_eq!(nulls.null_count(), 2);
    let mut lists = ListBuilder::new(Int32Builder::new());
    lists.append_value([Some(1)]);
    lists.append_value([]);
    lists.append_value([Some(2), None]);
    let lists: ArrayRef = Arc::new(lists.finish());
    refused("ARRAY<INT NOT NULL>", Arc::clone(&lists), &["row 2 c.element", "NOT NULL"]);
    // Of a slice too the row is that of the slice.
    refused("ARRAY<INT NOT NULL>", lists.slice(1, 2), &["row 1 c.element"]);
    // A field of a ROW that is null is not seen.
    let below = Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef;
    let fields = Fields::from(vec![ArrowField::new("a", ArrowType::Int32, true)]);
    let rows = StructArray::new(fields, vec![below], Some(NullBuffer::from(vec![true, false])));
    become_column("ROW<a INT NOT NULL>", Arc::new(rows)).expect("its only null lies below a null");
}

#[test]
fn lists_maps_and_rows_are_converted_below_too() {
    let mut lists = ListBuilder::new(Int32Builder::new());
    lists.append_value([Some(1), None]);
    lists.append_null();
    let lists: ArrayRef = Arc::new(lists.finish());
    for form in [
        lists.data_type().clone(),
        ArrowType::LargeList(Arc::new(ArrowField::new("item", ArrowType::Int32, true))),
    ] {
        let found = become_column("ARRAY<BIGINT>", cast(&lists, &form).expect("a list")).expect("wider");
        assert_eq!(
            found.as_list::<i32>().value(0).as_ref(),
            &Int64Array::from(vec![Some(1), None]) as &dyn Array
        );
        assert!(found.is_null(1));
    }
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    maps.append(true).expect("a map without entries");
    maps.keys().append_value("k");
    maps.values().append_value(300);
    maps.append(true).expect("a map of one entry");
    let maps: ArrayRef = Arc::new(maps.finish());
    let found = become_column("MAP<STRING, BIGINT>", Arc::clone(&maps)).expect("wider");
    assert_eq!(found.as_map().values().as_ref(), &Int64Array::from(vec![300]) as &dyn Array);
    refused("MAP<STRING, TINYINT>", maps, &["row 1 c.value", "found 300"]);
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for keys in [&["a", "b"][..], &[], &["b", "a", "b"]] {
        for key in keys {
            maps.keys().append_value(key);
        }
        maps.values().append_slice(&vec![1; keys.len()]);
        maps.append(true).expect("as many values as keys");
    }
    refused("MAP<STRING, INT>", Arc::new(maps.finish()), &["row 2 c", "a key stands in it twice"]);
}

#[test]
fn fields_of_a_row_are_found_by_name() {
    let row = |names: &[&str]| -> ArrayRef {
        let fields: Fields =
            names.iter().map(|name| ArrowField::new(*name, ArrowType::Int32, true)).collect();
        Arc::new(StructArray::new(
            fields,
            vec![Arc::new(Int32Array::from(vec![1])) as ArrayRef; names.len()],
            None,
        ))
    };
    let found = become_column("ROW<a BIGINT, b INT, x STRING>", row(&["b", "a"])).expect("x is null");
    let found = found.as_struct();
    assert_eq!(found.column(0).as_ref(), &Int64Array::from(vec![1]) as &dyn Array);
    assert!(found.column(2).is_null(0));
    refused("ROW<a INT>", row(&["a", "y"]), &["field \"y\""]);
    refused("ROW<a INT, b INT NOT NULL>", row(&["a"]), &["no field \"b\"", "NOT NULL"]);
    refused("ROW<a STRING>", row(&["a"]), &["column c.a", "Int32", "STRING"]);
}

#[test]
fn columns_are_found_by_name_and_others_left_to_the_node() {
    let file = ArrowSchema::new(vec![
        ArrowField::new("x", ArrowType::Boolean, true),
        ArrowField::new("b", ArrowType::Int32, true),
    ]);
    let table = target("a INT DEFAULT 5, b BIGINT");
    assert!(Plan::new(&file, &table).expect_err("x").contains("\"x\""));
    let chosen = Target { is_chosen: true, ..target("b BIGINT") };
    let plan = Plan::new(&file, &chosen).expect("b is there");
    assert_eq!(plan.places(), [1]);
    let rows = RecordBatch::try_from_iter([
        ("x", Arc::new(BooleanArray::from(vec![true])) as ArrayRef),
        ("b", Arc::new(Int32Array::from(vec![7])) as ArrayRef),
    ]);
    let rows = rows.expect("two columns").project(plan.places()).expect("one of them");
    let found = plan.convert(&rows).expect("it fits");
    assert_eq!((found.num_columns(), found.schema().field(0).name().as_str()), (1, "b"));
    assert!(Plan::new(&ArrowSchema::empty(), &table).expect_err("nothing").contains("no column"));
}
