"""What may leave: secrets are masked in every text of a message before it is encoded.

Two signs tell a secret: the name that it is given (`names`; `assignments`, `pairs`, `unquoted` find what stands beside
one), and a form of its own (`keys`, `shapes`). `values` says whether a value shows the secret, or is code that fetches
it. `tokens` are the cluster's own, masked always; `own` is what users add. `endings`: half a secret is one, too.

`scrubber` puts them in order and is what others use, `walk` leads it through a message, `payloads` through those of
events, `codes` gives code its hash.
"""
