"""Makes sklearn.json: what scikit-learn says of labels and predictions. Class 5 has no samples, class 6 is never predicted."""
import json, sys
import numpy as np, sklearn
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

rng = np.random.default_rng(7)
n, k = 400, 7
true = rng.choice([0, 1, 2, 3, 4, 6], n, p=[0.3, 0.2, 0.2, 0.1, 0.15, 0.05])
pred = np.where(rng.random(n) < 0.7, true, rng.integers(0, k, n))
pred[pred == 6] = 2
p, r, f, s = precision_recall_fscore_support(true, pred, labels=range(k), zero_division=0)
json.dump({"version": sklearn.__version__, "labels": true.tolist(), "predicted": pred.tolist(), "accuracy": accuracy_score(true, pred),
           "confusion": confusion_matrix(true, pred, labels=range(k)).tolist(),
           "precision": p.tolist(), "recall": r.tolist(), "f1": f.tolist(), "support": s.tolist()}, sys.stdout)
print()
