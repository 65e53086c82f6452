"""polars and pandas: predictions from a frame, results as a frame.

python examples/data_frames.py
"""

import polars

import assay
import assay.examples

given = assay.examples.load()
columns = {f"p_{i}": given.probabilities[:, i] for i in range(10)}
half = ["first"] * 5000 + ["second"] * 5000
frame = polars.DataFrame({**columns, "y": given.labels, "half": half})

predictions = assay.Predictions.from_dataframe(frame, label="y", probabilities="p_*", group="half")
table = assay.audit(predictions).to_frame("polars")
print(table.filter(polars.col("metric").is_in(["ece", "auroc"])).select("metric", "value", "low", "high").rows())
