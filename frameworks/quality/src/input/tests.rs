//! Valid files, and files that are rejected with line and rule.

use super::*;

fn csv(text: &str, classify: bool) -> Result<Input, InputError> {
    read("data.csv", text, Format::Csv, Label::Last, classify)
}

fn refused(result: Result<Input, InputError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn csv_with_and_without_names() {
    let plain = csv("1,2,3.5\n4,5,6\n", false).unwrap();
    assert_eq!(plain.data.labels, [3.5, 6.0]);
    assert_eq!((plain.data.len(), plain.data.width()), (2, 2));
    assert_eq!(csv("x,y,label\n1,2,3.5\n4,5,6\n", false).unwrap(), plain);
    let named = csv("1,2,setosa\n4,5,virginica\n0,0,setosa\n", true).unwrap();
    assert_eq!((named.data.labels, named.classes), (vec![0.0, 1.0, 0.0], vec!["setosa".into(), "virginica".into()]));
    let numbers = csv("1,2,10\n4,5,-1\n0,0,9.0\n1,1,9\n", true).unwrap();
    assert_eq!((numbers.data.labels, numbers.classes.len()), (vec![2.0, 0.0, 1.0, 1.0], 3));
    let all = read("x", "1,2\n3,4", Format::Csv, Label::None, false).unwrap();
    assert_eq!((all.data.width(), all.data.labels.len()), (2, 0));
}

#[test]
fn bad_csv_is_refused_with_line_and_rule() {
    assert_eq!(refused(csv("1,2\n1,x,3\n", false)), "data.csv:2: has 3 columns, and the first line has 2");
    let text = "1,2,3\n4,abc,6\n";
    assert_eq!(refused(csv(text, false)), "data.csv:2: column 2 is 'abc', and must be a finite number");
    assert_eq!(refused(csv("1,2,3\n4,NaN,6\n", false)), "data.csv:2: column 2 is 'NaN', and must be a finite number");
    assert_eq!(refused(csv("1,2,3\n4,5,x\n", false)), "data.csv:2: the label is 'x', and must be a finite number");
    assert_eq!(refused(csv("1,2,3\n4,5,\n", true)), "data.csv:2: the label is empty, and must name a class");
    // Also in the first line, which is not taken for names.
    assert_eq!(refused(csv("1,x,3\n4,5,6\n", false)), "data.csv:1: column 2 is 'x', and must be a finite number");
    assert_eq!(refused(csv("1,,3\n4,5,6\n", false)), "data.csv:1: column 2 is '', and must be a finite number");
    assert_eq!(refused(csv("y,x,3\n4,5,6\n", false)), "data.csv:1: column 1 is 'y', and must be a finite number");
    assert_eq!(refused(csv("1,x,yes\n4,5,no\n", true)), "data.csv:1: column 2 is 'x', and must be a finite number");
    assert_eq!(refused(csv("", false)), "data.csv:1: there are no rows");
    assert_eq!(refused(csv("a,b\n", false)), "data.csv:1: there are no rows");
    assert!(refused(csv("1\n2\n", false)).contains("has no features"));
}

#[test]
fn libsvm_good_and_bad() {
    let svm = |text: &str| read("a.svm", text, Format::Libsvm, Label::Last, true);
    let input = svm("+1 1:0.5 3:2 # comment\n\n-1 2:1\n").unwrap();
    assert_eq!((input.data.labels.clone(), input.data.width()), (vec![1.0, 0.0], 3));
    assert_eq!(input.classes, ["-1", "+1"]);
    assert_eq!(refused(svm("1 1:1\n1 0:5")), "a.svm:2: '0:5': columns are between 1 and 1000000");
    assert_eq!(refused(svm("1 2:1 2:1")), "a.svm:1: column 2 comes after column 2; columns must rise");
    assert_eq!(refused(svm("1 nonsense")), "a.svm:1: 'nonsense' is not column:value");
    assert_eq!(refused(svm("1 1:inf")), "a.svm:1: column 1 is 'inf', and must be a finite number");
}
