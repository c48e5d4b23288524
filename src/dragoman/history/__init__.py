"""Make a conversation fit for the model that is asked next: `fit`, and a vault for signatures that clients lose.

Histories come from other models and providers, from clients that drop half of what they received, and from turns that
broke off. `fit` turns each into a conversation that the target accepts; a valid one passes unchanged. What a protocol
cannot express is left to its renderer, as are ids in the target's form.
"""

from dragoman.history.fit import fit
from dragoman.history.hand_over import ThinkingPolicy
from dragoman.history.signature_vault import Seal, SignatureVault, SignatureWatch, Vault, keys_of, put_back

__all__ = ["Seal", "SignatureVault", "ThinkingPolicy", "Vault", "SignatureWatch", "fit", "keys_of", "put_back"]
