"""A conversation made fit for the model that is asked next: `fit`, and a vault for seals that clients lose.

Histories come from other models and providers, from clients that drop half of what they were told, and from turns that
broke off. `fit` makes of each a conversation that the target takes; a healthy one passes untouched. What a protocol
cannot say is left to its renderer, ids in the form of the target too.
"""

from dragoman.history.answers import ThinkingPolicy
from dragoman.history.fitting import fit
from dragoman.history.vault import Seal, SignatureVault, Vault, Watch, keys_of, put_back

__all__ = ["Seal", "SignatureVault", "ThinkingPolicy", "Vault", "Watch", "fit", "keys_of", "put_back"]
