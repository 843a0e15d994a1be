//! Tests valid files, and files that are rejected with line and rule.

use super::*;

fn reading(format: Format, label: Label, categorical: &[&str], classify: bool) -> Reading {
    Reading { format, label, categorical: categorical.iter().map(|&c| c.to_owned()).collect(), classify }
}

fn csv(text: &str, classify: bool) -> Result<Input, InputError> {
    read("data.csv", text, &reading(Format::Csv, Label::Last, &[], classify))
}

fn refused(result: Result<Input, InputError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn formats_have_the_names_of_job_files() {
    for name in ["csv", "libsvm", "parquet", "arrow"] {
        let format: Format = name.parse().unwrap();
        assert_eq!(serde_json::to_value(format).unwrap(), name);
    }
    let refused = "json".parse::<Format>().unwrap_err().to_string();
    assert_eq!(refused, "'json' is not a format: csv, libsvm, parquet or arrow");
}

#[test]
fn csv_with_and_without_names() {
    let plain = csv("1,2,3.5\n4,5,6\n", false).unwrap();
    assert_eq!(plain.data.labels, [3.5, 6.0]);
    assert_eq!((plain.data.len(), plain.data.width(), &plain.schema), (2, 2, &Schema::unnamed(2, Label::Last)));
    let titled = csv("x,y,label\n1,2,3.5\n4,5,6\n", false).unwrap();
    assert_eq!((titled.data, titled.schema.label), (plain.data, Label::Named("label".into())));
    let names: Vec<Option<String>> = titled.schema.columns.into_iter().map(|c| c.name).collect();
    assert_eq!(names, [Some("x".to_owned()), Some("y".to_owned())]);
    let named = csv("1,2,setosa\n4,5,virginica\n0,0,setosa\n", true).unwrap();
    assert_eq!((named.data.labels, named.classes), (vec![0.0, 1.0, 0.0], vec!["setosa".into(), "virginica".into()]));
    let numbers = csv("1,2,10\n4,5,-1\n0,0,9.0\n1,1,9\n", true).unwrap();
    assert_eq!((numbers.data.labels, numbers.classes.len()), (vec![2.0, 0.0, 1.0, 1.0], 3));
    let all = read("x", "1,2\n3,4", &reading(Format::Csv, Label::None, &[], false)).unwrap();
    assert_eq!((all.data.width(), all.data.labels.len()), (2, 0));
}

#[test]
fn a_label_is_named_and_categories_become_features() {
    let text = "age,class,colour\n1,yes,red\n2,no,blue\n3,yes,red\n";
    let input = read("d.csv", text, &reading(Format::Csv, Label::Named("class".into()), &["colour"], true)).unwrap();
    let rows: Vec<Vec<f64>> = input.data.rows().collect();
    assert_eq!(rows, [[1.0, 0.0, 1.0], [2.0, 1.0, 0.0], [3.0, 0.0, 1.0]]);
    assert_eq!((input.data.labels, input.classes), (vec![1.0, 0.0, 1.0], vec!["no".to_owned(), "yes".into()]));
    assert_eq!(input.schema.columns[1].values, ["blue", "red"]);
    let as_model = |text: &str, wanted: LabelsToRead<'_>| read_as("n.csv", text, Format::Csv, &input.schema, wanted);
    // Columns are found by their names, in any order; a label that is present is ignored.
    let again = as_model("colour,class,age\nblue,?,7\n", LabelsToRead::Nothing).unwrap();
    assert_eq!(again.data.rows().collect::<Vec<_>>(), [[7.0, 1.0, 0.0]]);
    assert!(again.data.labels.is_empty());
    let classes = ["no".to_owned(), "yes".to_owned()];
    let labelled = as_model("class,colour,age\nyes,red,7\n", LabelsToRead::Classes(None, &classes)).unwrap();
    assert_eq!(labelled.data.labels, [1.0]);
    for (text, wanted) in [
        (
            "colour,age\ngreen,7\n",
            "n.csv:2: column 1 ('colour') is 'green', which is not in the training data: it has 'blue', 'red'",
        ),
        ("colour,age\n,7\n", "n.csv:2: column 1 ('colour') is missing: name a category, or leave the row out"),
        ("colour,age\nred,\n", "n.csv:2: column 2 ('age') is missing: fill it in, or leave the row out"),
        (
            "colour\nred\n",
            "n.csv:1: there is no column 'age', with which the model was trained; the columns are 'colour'",
        ),
        ("colour,age,size\nred,1,2\n", "n.csv:1: column 3 ('size') is not one of the model's"),
        ("colour,age,age\nred,1,2\n", "n.csv:1: two columns have the name 'age'"),
        ("1,2,3\n", "n.csv:1: has 3 columns, and the model was trained with 2"),
    ] {
        assert_eq!(refused(as_model(text, LabelsToRead::Nothing)), wanted);
    }
    let unknown = as_model("colour,age,class\nred,1,perhaps\n", LabelsToRead::Classes(None, &classes));
    assert_eq!(refused(unknown), "n.csv:2: the label is 'perhaps', and the model knows 'no', 'yes'");
    let unlabelled = as_model("colour,age\nred,1\n", LabelsToRead::Classes(None, &classes));
    assert_eq!(refused(unlabelled), "n.csv:1: there is no column 'class'; the columns are 'colour', 'age'");
}

#[test]
fn categories_and_labels_by_name_keep_their_rules() {
    let with = |text: &str, label: &str, categorical: &[&str]| {
        refused(read("d.csv", text, &reading(Format::Csv, Label::from(label.to_owned()), categorical, true)))
    };
    let text = "age,colour,class\n1,red,yes\n2,blue,no\n";
    assert_eq!(
        with(text, "class", &[]),
        "d.csv:2: column 2 ('colour') is 'red', and must be a finite number; for categories, say categorical = [\"colour\"]"
    );
    assert_eq!(with(text, "kind", &[]), "d.csv:1: there is no column 'kind'; the columns are 'age', 'colour', 'class'");
    assert!(with(text, "last", &["size"]).contains("there is no column 'size'"));
    assert_eq!(with(text, "last", &["class"]), "d.csv:1: column 'class' is the label, and cannot be `categorical`");
    let ids: String = (0..1_002).map(|id| format!("i{id},1\n")).collect();
    let many = with(&format!("id,class\n{ids}"), "last", &["id"]);
    assert_eq!(many, "d.csv:1002: column 1 ('id') has more than 1000 different values; is it a category?");
    let svm = read("a.svm", "1 1:1", &reading(Format::Libsvm, Label::Last, &["x"], true));
    assert!(refused(svm).contains("`categorical` is for CSV"));
}

#[test]
fn a_model_without_names_takes_columns_in_their_order_and_no_others() {
    let schema = csv("1,2,10\n4,5,9\n", false).unwrap().schema;
    let rows = |text: &str, wanted: LabelsToRead<'_>| read_as("n.csv", text, Format::Csv, &schema, wanted);
    assert_eq!(rows("1,2\n", LabelsToRead::Nothing).unwrap().data.width(), 2);
    assert_eq!(rows("x,y\n1,2\n", LabelsToRead::Nothing).unwrap().data.len(), 1);
    assert_eq!(refused(rows("1\n", LabelsToRead::Nothing)), "n.csv:1: has 1 columns, and the model was trained with 2");
    assert_eq!(rows("1,2,3\n", LabelsToRead::Numbers(None)).unwrap().data.labels, [3.0]);
    assert_eq!(rows("3,1,2\n", LabelsToRead::Numbers(Some(&Label::First))).unwrap().data.labels, [3.0]);
    assert_eq!(
        refused(rows("1,2\n", LabelsToRead::Numbers(None))),
        "n.csv:1: has 2 columns, and the model was trained with 2 and the label"
    );
    let svm = |text: &str| read_as("n.svm", text, Format::Libsvm, &schema, LabelsToRead::Nothing);
    assert_eq!(svm("? 2:1\n").unwrap().data.width(), 2);
    assert_eq!(refused(svm("? 3:1\n")), "n.svm:1: has a column 3, and the model was trained with 2");
}

#[test]
fn bad_csv_is_refused_with_line_and_rule() {
    assert_eq!(refused(csv("1,2\n1,x,3\n", false)), "data.csv:2: has 3 columns, and the first line has 2");
    let text = "1,2,3\n4,abc,6\n";
    assert_eq!(refused(csv(text, false)), "data.csv:2: column 2 is 'abc', and must be a finite number");
    assert_eq!(refused(csv("1,2,3\n4,inf,6\n", false)), "data.csv:2: column 2 is 'inf', and must be a finite number");
    assert_eq!(refused(csv("1,2,3\n4,5,x\n", false)), "data.csv:2: the label is 'x', and must be a finite number");
    assert_eq!(refused(csv("1,2,3\n4,5,\n", true)), "data.csv:2: the label is empty, and must name a class");
    // This holds also in the first line, which is not taken for a line of names.
    assert_eq!(refused(csv("1,x,3\n4,5,6\n", false)), "data.csv:1: column 2 is 'x', and must be a finite number");
    let missing = "data.csv:1: column 2 is missing: fill it in, or leave the row out";
    assert_eq!(refused(csv("1,,3\n4,5,6\n", false)), missing);
    assert_eq!(refused(csv("y,x,3\n4,5,6\n", false)), "data.csv:1: column 1 is 'y', and must be a finite number");
    assert_eq!(refused(csv("1,x,yes\n4,5,no\n", true)), "data.csv:1: column 2 is 'x', and must be a finite number");
    assert_eq!(refused(csv("", false)), "data.csv:1: there are no rows");
    assert_eq!(refused(csv("a,b\n", false)), "data.csv:1: there are no rows");
    assert!(refused(csv("1\n2\n", false)).contains("has no features"));
}

#[test]
fn spellings_of_a_missing_value_are_neither_categories_nor_classes() {
    let with = |colour: &str, age: &str, class: &str| {
        let text = format!("colour,age,class\nred,1,yes\n{colour},{age},{class}\nblue,3,no\n");
        read("d.csv", &text, &reading(Format::Csv, Label::Last, &["colour"], true))
    };
    for cell in ["?", "NA", "N/A", "n/a", "<NA>", "nan", "NaN", " null", "NULL "] {
        let name = cell.trim();
        let rule = format!("d.csv:3: column 1 ('colour') is missing ('{name}'): name a category, or leave the row out");
        assert_eq!(refused(with(cell, "2", "yes")), rule);
        let rule = format!("d.csv:3: column 2 ('age') is missing ('{name}'): fill it in, or leave the row out");
        assert_eq!(refused(with("red", cell, "yes")), rule);
        let rule = format!("d.csv:3: the label is missing ('{name}'), and must name a class");
        assert_eq!(refused(with("red", "2", cell)), rule);
    }
    // These are words.
    assert!(with("na", "2", "none").is_ok());
}

#[test]
fn libsvm_good_and_bad() {
    let svm = |text: &str| read("a.svm", text, &reading(Format::Libsvm, Label::Last, &[], true));
    let input = svm("+1 1:0.5 3:2 # comment\n\n-1 2:1\n").unwrap();
    assert_eq!((input.data.labels.clone(), input.data.width()), (vec![1.0, 0.0], 3));
    assert_eq!(input.classes, ["-1", "+1"]);
    assert_eq!(refused(svm("1 1:1\n1 0:5")), "a.svm:2: '0:5': columns are between 1 and 1000000");
    assert_eq!(refused(svm("1 2:1 2:1")), "a.svm:1: column 2 comes after column 2; columns must rise");
    assert_eq!(refused(svm("1 nonsense")), "a.svm:1: 'nonsense' is not column:value");
    assert_eq!(refused(svm("1 1:inf")), "a.svm:1: column 1 is 'inf', and must be a finite number");
}
