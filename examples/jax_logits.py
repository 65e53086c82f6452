"""JAX, and likewise Keras: arrays go in as they are, bfloat16 too.

pip install 'assay-ml[integrations]' && python examples/jax_logits.py
"""

import jax
import jax.numpy as jnp
from sklearn.datasets import load_digits

import assay

x, y = (jnp.asarray(part) for part in load_digits(return_X_y=True))
x = x / 16


def loss(weights: jax.Array) -> jax.Array:
    """Cross-entropy of a linear classifier."""
    return -jax.nn.log_softmax(x[:900] @ weights)[jnp.arange(900), y[:900]].mean()


weights = jnp.zeros((64, 10))
for _ in range(200):
    weights -= 0.5 * jax.grad(loss)(weights)

predictions = assay.Predictions.from_logits((x[900:] @ weights).astype(jnp.bfloat16), y[900:])
print(assay.audit(predictions))
print({key: round(value, 4) for key, value in assay.evaluate(predictions, ["accuracy", "ece"]).items()})
