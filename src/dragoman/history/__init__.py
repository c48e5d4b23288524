"""A conversation made fit for the model that is asked next: `fit`, and a vault for seals that clients lose.

Histories come from other models and providers, from clients that drop half of what they were told, and from turns that
broke off. `fit` makes of each a conversation that the target takes; a healthy one passes untouched. What a protocol
cannot say is left to its renderer, ids in the form of the target too.
"""

from dragoman.history.fit import fit
from dragoman.history.hand_over import ThinkingPolicy
from dragoman.history.signature_vault import Seal, SignatureVault, SignatureWatch, Vault, keys_of, put_back

__all__ = ["Seal", "SignatureVault", "ThinkingPolicy", "Vault", "SignatureWatch", "fit", "keys_of", "put_back"]
