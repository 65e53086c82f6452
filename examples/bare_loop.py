"""Parts of assay in your own training loop: a secondary loss, SAM, and averaged weights.

    python examples/bare_loop.py

Only the four marked lines are special to assay.
"""

import torch
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

from assay import Predictions, evaluate
from assay.nn.data import batches, load
from assay.nn.losses import cross_entropy, sb_ece_lb
from assay.nn.networks import mlp
from assay.nn.optim import SAM, cosine, recompute_batch_norm, swa

EPOCHS, AVERAGED = 10, 3

torch.manual_seed(0)
digits = load("digits")
train = next(batches(digits.train, len(digits.train)))
test = next(batches(digits.test, len(digits.test)))
loader = DataLoader(TensorDataset(train.x, train.y), batch_size=64, shuffle=True)

model = mlp(10, inputs=64)
optimizer = SAM(SGD(model.parameters(), lr=0.1, momentum=0.9), rho=0.05)  # assay
schedule = cosine(until=1.5)
scheduler = LambdaLR(optimizer, lambda epoch: schedule(epoch, EPOCHS))
average = swa()  # assay

for epoch in range(EPOCHS):
    for x, y in loader:

        def closure(x: torch.Tensor = x, y: torch.Tensor = y) -> torch.Tensor:
            optimizer.zero_grad()
            logits = model(x)
            loss = cross_entropy(logits, y) + 0.5 * sb_ece_lb(logits, y)  # assay
            loss.backward()
            return loss

        loss = optimizer.step(closure)
    scheduler.step()
    if epoch >= EPOCHS - AVERAGED:
        average.update(model)
    print(f"epoch {epoch}: loss {loss.item():.3f}")

average.copy_to(model)
recompute_batch_norm(model, (x for x, _ in loader))  # assay; this network has no BatchNorm, yours may

with torch.no_grad():
    found = evaluate(Predictions.from_logits(model(test.x), test.y))
print({key: round(found[key], 4) for key in ("accuracy", "ece", "auroc", "aurc")})
