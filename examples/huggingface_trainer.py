"""A small BERT with Hugging Face's Trainer: focal loss, SAM and metrics of trust, over accumulated batches.

    pip install 'assay-ml[integrations]' && python examples/huggingface_trainer.py

The text is made up: the class of a sentence is its most frequent word.
"""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import assay
from assay.integrations import huggingface as hf
from assay.nn.losses import focal

torch.manual_seed(0)
words = torch.randint(4, 40, (600, 12))
labels = torch.randint(0, 3, (600,))
words[:, :5] = labels[:, None]
labels[::7] = torch.randint(0, 3, (86,))  # some sentences are labeled at random
rows = [{"input_ids": w, "attention_mask": torch.ones_like(w), "labels": y} for w, y in zip(words, labels, strict=True)]
size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
model = BertForSequenceClassification(BertConfig(vocab_size=40, num_labels=3, **size))
settings = {"num_train_epochs": 3, "per_device_train_batch_size": 8, "gradient_accumulation_steps": 4}
quiet = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "use_cpu": True, "logging_strategy": "no"}
arguments = TrainingArguments(output_dir=tempfile.mkdtemp(), learning_rate=3e-3, **settings, **quiet)

trust = {"compute_loss_func": hf.loss(focal), "compute_metrics": hf.compute_metrics()}
trainer = Trainer(model, arguments, train_dataset=rows[:400], eval_dataset=rows[400:], **trust)
hf.sharpness_aware(trainer, rho=0.05).train()

print(assay.audit(hf.predictions(trainer.predict(rows[400:]))))
found = trainer.evaluate()
print({key: round(found[f"eval_{key}"], 4) for key in ("accuracy", "ece", "auroc")})
