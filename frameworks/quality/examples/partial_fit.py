"""A program for the quality framework: scikit-learn's SGDClassifier on its digits, by `partial_fit`."""

import base64
import pickle
import sys
from pathlib import Path

# The module can be copied beside this file instead.
sys.path.append(str(Path(__file__).resolve().parent / "../../../python/src/tepui"))
from training import Training


def main():
    training = Training(checkpoints=True)

    # Imported after Training has replaced standard output: output of these libraries is not read as protocol lines.
    from sklearn.datasets import load_digits
    from sklearn.linear_model import SGDClassifier
    from sklearn.metrics import log_loss
    from sklearn.model_selection import train_test_split

    rows, labels = load_digits(return_X_y=True)
    rows, held, labels, held_labels = train_test_split(rows / 16.0, labels, test_size=0.2, random_state=1)
    # pickle is safe here: only this program writes the checkpoints that it reads.
    model = SGDClassifier(loss="log_loss", alpha=1e-3, random_state=1)
    if training.checkpoint:
        model = pickle.loads(base64.b64decode(training.checkpoint))

    def state():
        return base64.b64encode(pickle.dumps(model)).decode()

    for _ in training:
        model.partial_fit(rows, labels, classes=range(10))
        training.report(
            log_loss(labels, model.predict_proba(rows)),
            accuracy=model.score(rows, labels),
            validation={
                "loss": log_loss(held_labels, model.predict_proba(held)),
                "accuracy": model.score(held, held_labels),
            },
            samples=len(rows),
            state=state,
        )


if __name__ == "__main__":
    main()
