"""Keys and tokens whose makers publish their form, so that scanners know them."""

from __future__ import annotations

import re

from daskscope.privacy.forms import Form


def _keys(triggers: str, pattern: str, before: int = 0) -> tuple[Form, ...]:
    """Not in the midst of a word."""
    compiled = re.compile(rf"(?<![A-Za-z0-9]){pattern}")
    return tuple(Form(trigger, compiled, before, bool) for trigger in triggers.split())


_PREFIXED = (
    "lin_api_ ntn_ sntrys_ sntryu_ dckr_pat_ sbp_ pscale_tkn_ pscale_pw_ pscale_oauth_ tskey- PMAK- NRAK- rzp_live_ "
    "rzp_test_ dt0c01. pul- sq0atp- sq0csp- glc_ glsa_ whsec_ dop_v1_ doo_v1_ dor_v1_"
)
"""Of many services: a prefix of their own, and at least a dozen characters with a digit among them."""

_PART = r"(?:[a-z]{1,15}\d{0,4}|\d{1,6})"
"""Of a package's name, `sk-image-extras-2024`: a key is not made of those alone."""

FORMS: tuple[Form, ...] = (
    *_keys("AKIA ASIA ABIA ACCA", r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),  # AWS
    *_keys("ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_\w{4,255}"),  # GitHub
    *_keys("github_pat_", r"github_pat_\w{4,255}"),
    *_keys("glpat- gldt- glrt- glptt- glcbt- glsoat- glagent-", r"gl[a-z]{2,5}-[\w.-]{8,255}"),  # GitLab
    *_keys("xox xapp-", r"(?:xox[a-z](?:\.xox[a-z])?|xapp)-[\w.-]{8,255}"),  # Slack
    *_keys("_live_ _test_ _prod_", r"[srp]k_(?:live|test|prod)_[A-Za-z0-9]{4,255}", 2),  # Stripe
    *_keys(
        "sk-", rf"sk-(?!{_PART}(?:[.-]{_PART}){{1,20}}(?![\w-]))(?=[\w-]{{0,40}}[0-9A-Z])[\w-]{{18,255}}"
    ),  # OpenAI, Anthropic
    *_keys("hf_", r"hf_(?=[a-z]{0,30}[A-Z0-9])[A-Za-z0-9]{16,255}"),  # Hugging Face
    *_keys("npm_", r"npm_(?=[a-z]{0,30}[A-Z0-9])[A-Za-z0-9]{16,255}"),
    *_keys("pypi-", r"pypi-(?:AgE[\w-]{8,255}|[\w-]{50,255})"),
    *_keys("AIza", r"AIza[\w-]{16,255}"),  # Google
    *_keys("ya29.", r"ya29\.[\w-]{16,2000}"),
    *_keys("GOCSPX-", r"GOCSPX-[\w-]{12,255}"),
    *_keys("eyJ", r"eyJ[\w+/-]{12,8000}={0,2}(?:\.[\w-]{0,8000}){0,4}"),  # JSON in Base64: web tokens, Docker's logins
    *_keys("LS0tLS1CRUdJTi", r"LS0tLS1CRUdJTi[\w+/=-]{8,16000}"),  # a block of a key in Base64
    *_keys("SG.", r"SG\.[\w-]{12,255}\.[\w-]{12,255}"),  # SendGrid
    *_keys("SK AC", r"(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9])"),  # Twilio
    *_keys("dapi dose dkea", r"d(?:api|ose|kea)[0-9a-f]{32}(?:-\d)?"),  # Databricks
    *_keys("hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{16,255}"),  # Vault
    *_keys("ATATT ATCTT", r"AT[AC]TT[\w=-]{16,300}"),  # Atlassian
    *_keys("shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{16,64}"),  # Shopify
    *_keys(_PREFIXED, r"\w{3,10}[._-](?=[\w.+/=-]{0,40}\d)[\w.+/=-]{12,255}"),
    *_keys("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{8,80}"),
    *(each for n in (8, 9, 10) for each in _keys(":AA", r"\d{8,10}:AA[\w-]{30,40}", n)),  # Telegram
    *_keys(" ".join(f"-us{n}" for n in range(1, 10)), r"[0-9a-f]{32}-us\d{1,2}(?!\w)", 32),  # Mailchimp
    *_keys("$", r"\$(?:1|2[aby]|5|6|y|argon2\w{0,3}|pbkdf2[\w-]{0,12})\$[./A-Za-z0-9$=,+]{8,255}"),  # hashed passwords
)
